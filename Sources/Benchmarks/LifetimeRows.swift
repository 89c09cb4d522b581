import Jetstream
import Observation

/// The cost of making an object, of releasing it, of starting to observe it, and of keeping it in memory.
func lifetimeRows() -> [Row] {
  func create<Peer: AnyObject>(
    peer name: String, bar: Bar?, _ peer: @escaping () -> Peer
  ) -> Row {
    Row(name: "create a model", unit: "ns", peerName: name, bar: bar, rounds: 25) {
      Probes(ours: { lifetimes { Shape() }.make }, peer: { lifetimes(peer).make })
    }
  }
  func release<Peer: AnyObject>(peer name: String, _ peer: @escaping () -> Peer) -> Row {
    Row(name: "release a model", unit: "ns", peerName: name, rounds: 25) {
      Probes(ours: { lifetimes { Shape() }.release }, peer: { lifetimes(peer).release })
    }
  }
  return [
    create(peer: "plain class", bar: nil) { PlainShape() },
    create(peer: "hand-written didSet", bar: nil) { HandmadeShape() },
    create(peer: "@Observable", bar: 0.75) { ObservedShape() },
    release(peer: "plain class") { PlainShape() },
    release(peer: "hand-written didSet") { HandmadeShape() },
    release(peer: "@Observable") { ObservedShape() },
    Row(
      name: "register an observer", unit: "ns", peerName: "withObservationTracking", bar: 0.25,
      rounds: 25
    ) {
      Probes(ours: Registration.ours, peer: Registration.tracking)
    },
    Row(name: "register an observer", unit: "ns", peerName: "hand-written didSet", rounds: 25) {
      Probes(ours: Registration.ours, peer: Registration.handmade)
    },
  ]
}

/// Memory per object. Comes first, while no large piece of memory was freed that could be reused for objects.
func memoryRows() -> [Row] {
  let watcher = Watcher()
  let home = Ticker.manual().isolation
  return [
    Row(name: "memory of a model", unit: "bytes", peerName: "@Observable", bar: 1, rounds: 3) {
      Probes(ours: MemoryProbe { Shape() }.measure, peer: MemoryProbe { ObservedShape() }.measure)
    },
    Row(
      name: "memory of an observed model", unit: "bytes", peerName: "withObservationTracking",
      bar: 0.35, rounds: 3
    ) {
      Probes(
        ours: MemoryProbe {
          let shape = Shape()
          shape.observeChange(watcher, \.level, isolation: home) { $0.calls += 1 }
          return shape
        }.measure,
        peer: MemoryProbe {
          let shape = ObservedShape()
          watcher.track(shape)
          return shape
        }.measure)
    },
  ]
}

/// The observer, for Jetstream and for the peers.
final class Watcher: @unchecked Sendable {
  var calls = 0

  /// Registers once for the next change of the property, as the Observation module has it.
  @inline(__always)
  func track(_ shape: ObservedShape) {
    withObservationTracking {
      _ = shape.level
    } onChange: { [weak self] in
      self?.calls += 1
    }
  }

  /// The same for a property that is never written.
  func trackOther(_ shape: ObservedShape) {
    withObservationTracking {
      _ = shape.x
    } onChange: { [weak self] in
      self?.calls += 1
    }
  }
}

/// The nanoseconds to register one observer of one property with each of a thousand objects.
private enum Registration {
  static func ours() -> Double {
    let watcher = Watcher()
    let ticker = Ticker.on(MainActor.shared)
    return measure {
      Shape()
    } register: { shapes in
      for shape in shapes {
        shape.observeChange(watcher, \.level, isolation: MainActor.shared) { $0.calls += 1 }
      }
    } check: { shapes in
      for shape in shapes { shape.level = 1 }
      ticker.tick()
      precondition(watcher.calls >= shapes.count, "An observer was not called.")
    }
  }

  static func tracking() -> Double {
    let watcher = Watcher()
    return measure {
      ObservedShape()
    } register: { shapes in
      for shape in shapes { watcher.track(shape) }
    } check: { shapes in
      for shape in shapes { shape.level = 1 }
      precondition(watcher.calls >= shapes.count, "An observer was not called.")
    }
  }

  static func handmade() -> Double {
    let watcher = Watcher()
    return measure {
      HandmadeShape()
    } register: { shapes in
      for shape in shapes { shape.onLevel = { [weak watcher] in watcher?.calls += 1 } }
    } check: { shapes in
      for shape in shapes { shape.level = 1 }
      precondition(watcher.calls >= shapes.count, "An observer was not called.")
    }
  }

  private static func measure<Object: AnyObject>(
    _ make: () -> Object, register: (ContiguousArray<Object>) -> Void,
    check: (ContiguousArray<Object>) -> Void
  ) -> Double {
    let passes = 20
    var time = 0.0
    for _ in 0..<passes {
      let objects = Thousand.of(make)
      time += nanoseconds { register(objects) }
      check(objects)
    }
    return time / Double(passes * Thousand.count)
  }
}

/// Returns the time to make an object, including its `init`, and to release it.
@inline(__always)
private func lifetimes<Object: AnyObject>(
  _ make: () -> Object
) -> (make: Double, release: Double) {
  let passes = 50
  var making = 0.0
  var releasing = 0.0
  for _ in 0..<passes {
    var objects: ContiguousArray<Object> = []
    objects.reserveCapacity(Thousand.count)
    making += nanoseconds { for _ in 0..<Thousand.count { objects.append(make()) } }
    Sink.take(objects[objects.count / 2])
    releasing += nanoseconds { objects.removeAll(keepingCapacity: true) }
  }
  let count = Double(passes * Thousand.count)
  return (making / count, releasing / count)
}
