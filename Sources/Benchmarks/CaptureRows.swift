import Jetstream
import Observation

/// Writes to models that belong to a scope, with the observers and change sets that follow.
func captureRows() -> [Row] {
  [
    Row(name: "write, attached", unit: "ns", peerName: "@Observable, untracked") {
      let ours = AttachedShapes(watching: false)
      let peer = Thousand.of { ObservedShape() }
      return Probes(ours: ours.measure, peer: { timeToWrite { writeAll(peer, $0) } })
    },
    Row(
      name: "write, observer on another property", unit: "ns", peerName: "@Observable, tracked"
    ) {
      let ours = AttachedShapes(watching: true)
      let peer = Thousand.of { ObservedShape() }
      let watcher = Watcher()
      for shape in peer { watcher.trackOther(shape) }
      return Probes(ours: ours.measure, peer: { timeToWrite { writeAll(peer, $0) } })
    },
    Row(
      name: "write observed and captured, 100 a tick", unit: "ns",
      peerName: "@Observable, tracked", bar: 0.4
    ) {
      let ours = WatchedShapes(writesToEach: 100)
      let peer = TrackedShapes(writesToEach: 100)
      return Probes(ours: ours.measure, peer: peer.measure)
    },
    Row(
      name: "write observed and captured, 100 models a tick", unit: "ns",
      peerName: "@Observable, tracked"
    ) {
      let ours = WatchedShapes(writesToEach: 1)
      let peer = TrackedShapes(writesToEach: 1)
      return Probes(ours: ours.measure, peer: peer.measure)
    },
    Row(name: "1,000,000 writes over 10,000 models to one set", unit: "ns", bar: 60) {
      let ours = OneChangeSet()
      return Probes(ours: ours.measure)
    },
  ]
}

private let writesPerTick = 100

private func timeToWrite(_ write: (Int) -> Void) -> Double {
  let passes = 200
  // No value is written twice.
  let start = AttachedShapes.values
  AttachedShapes.values += passes
  return nanoseconds { for pass in 1...passes { write(start + pass) } }
    / Double(passes * Thousand.count)
}

/// A thousand shapes in a scope without observers of the property that is written. The changes are captured; each pass
/// over all shapes is one tick.
private final class AttachedShapes {
  nonisolated(unsafe) static var values = 0  // Sound: everything here is on one thread.

  private let ticker = Ticker.manual()
  private let scope: Scope
  private let shapes: ContiguousArray<Shape>
  private var calls = 0

  init(watching: Bool) {
    let (canvas, shapes) = Shape.canvas(of: Thousand.count)
    self.shapes = shapes
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    let home = ticker.isolation
    if watching {
      for shape in shapes { shape.observeChange(self, \.x, isolation: home) { $0.calls += 1 } }
    }
  }

  func measure() -> Double {
    let time = timeToWrite { writeAll(shapes, $0) }
    ticker.advance(by: .milliseconds(10))
    precondition(calls == 0, "An observer of another property was called.")
    return time
  }
}

/// A thousand shapes in a scope, each with a coalesced observer. Each tick has a hundred writes and ends in a change
/// set, which a listener takes.
private final class WatchedShapes {
  private let ticker = Ticker.manual()
  private let scope: Scope
  private let shapes: ContiguousArray<Shape>
  private let writesToEach: Int
  private var calls = 0
  private var sets = 0
  private var value = 0

  init(writesToEach: Int) {
    self.writesToEach = writesToEach
    let (canvas, shapes) = Shape.canvas(of: Thousand.count)
    self.shapes = shapes
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    scope.onChanges.listen(self) { me, set in me.sets += set.fragments.count }
    let home = ticker.isolation
    for shape in shapes { shape.observeChange(self, \.level, isolation: home) { $0.calls += 1 } }
  }

  func measure() -> Double {
    let perTick = writesPerTick / writesToEach
    (calls, sets) = (0, 0)
    let time = nanoseconds {
      for start in stride(from: 0, to: shapes.count, by: perTick) {
        for shape in shapes[start..<(start + perTick)] {
          for _ in 0..<writesToEach {
            value += 1
            shape.level = value
          }
        }
        ticker.advance(by: .milliseconds(10))
      }
    }
    precondition(calls == shapes.count && sets == shapes.count, "Something was not delivered.")
    return time / Double(shapes.count * writesToEach)
  }
}

/// The same with the Observation module: `onChange` notes what has changed, and once per tick the observer runs and
/// tracking starts again. There are no change sets here.
private final class TrackedShapes {
  /// The objects that have changed since the last tick. Sound: everything is on one thread.
  private final class Changed: @unchecked Sendable {
    var places: ContiguousArray<Int> = []
  }

  private let changed = Changed()
  private let shapes: ContiguousArray<ObservedShape>
  private let writesToEach: Int
  private var calls = 0
  private var value = 0

  init(writesToEach: Int) {
    self.writesToEach = writesToEach
    shapes = Thousand.of { ObservedShape() }
    for place in shapes.indices { arm(place) }
  }

  private func arm(_ place: Int) {
    let shape = shapes[place]
    withObservationTracking {
      _ = shape.level
    } onChange: { [changed] in
      changed.places.append(place)
    }
  }

  private func tick() {
    let places = changed.places
    changed.places = []
    for place in places {
      calls += 1
      arm(place)
    }
  }

  func measure() -> Double {
    let perTick = writesPerTick / writesToEach
    calls = 0
    let time = nanoseconds {
      for start in stride(from: 0, to: shapes.count, by: perTick) {
        for shape in shapes[start..<(start + perTick)] {
          for _ in 0..<writesToEach {
            value += 1
            shape.level = value
          }
        }
        tick()
      }
    }
    precondition(calls == shapes.count, "Something was not delivered.")
    return time / Double(shapes.count * writesToEach)
  }
}

/// A million writes that become one change set. The time includes making it.
private final class OneChangeSet {
  private let ticker = Ticker.manual()
  private let scope: Scope
  private let shapes: ContiguousArray<Shape>
  private var sets: [ChangeSet] = []
  private var value = 0

  init() {
    let (canvas, shapes) = Shape.canvas(of: 10_000)
    self.shapes = shapes
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    scope.onChanges.listen(self) { me, set in me.sets.append(set) }
  }

  func measure() -> Double {
    let passes = 100
    sets = []
    let time = nanoseconds {
      for _ in 0..<passes {
        value += 1
        for shape in shapes { shape.level = value }
      }
      ticker.advance(by: .milliseconds(10))
    }
    precondition(sets.count == 1 && sets[0].fragments.count == shapes.count, "A change is missing.")
    return time / Double(passes * shapes.count)
  }
}
