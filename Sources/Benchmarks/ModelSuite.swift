import Jetstream
import Observation

let modelSuite = Suite(name: "model", summary: "properties, objects, trees and change sets") {
  memoryRows() + accessRows() + creationRows() + captureRows() + treeRows()
}

/// Reads and writes of one property, with nobody watching.
private func accessRows() -> [Row] {
  let passes = 2000
  func row<Peer: AnyObject>(
    _ name: String, peer peerName: String, bar: Double?, _ make: @escaping () -> Peer,
    ours: @escaping (ContiguousArray<Shape>, Int) -> Void,
    peer: @escaping (ContiguousArray<Peer>, Int) -> Void
  ) -> Row {
    Row(name: name, unit: "ns", peerName: peerName, bar: bar) {
      let shapes = Thousand.of { Shape() }
      let others = Thousand.of(make)
      let operations = Double(passes * Thousand.count)
      return Probes(
        ours: { nanoseconds { for pass in 0..<passes { ours(shapes, pass) } } / operations },
        peer: { nanoseconds { for pass in 0..<passes { peer(others, pass) } } / operations })
    }
  }
  return [
    row("read a property", peer: "plain class", bar: 1.6, PlainShape.init) { shapes, _ in
      read(shapes)
    } peer: { shapes, _ in
      read(shapes)
    },
    row("read a property", peer: "@Observable", bar: 0.1, ObservedShape.init) { shapes, _ in
      read(shapes)
    } peer: { shapes, _ in
      read(shapes)
    },
    row("write, nobody watching", peer: "plain class", bar: nil, PlainShape.init) {
      write(to: $0, $1)
    } peer: {
      write(to: $0, $1)
    },
    row("write, nobody watching", peer: "@Observable", bar: nil, ObservedShape.init) {
      write(to: $0, $1)
    } peer: {
      write(to: $0, $1)
    },
  ]
}

// The loops, once for each class: what is measured is the code that an app would have, so there is
// nothing generic about them.

@inline(never)
private func read(_ shapes: ContiguousArray<Shape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func read(_ shapes: ContiguousArray<PlainShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func read(_ shapes: ContiguousArray<ObservedShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func write(to shapes: ContiguousArray<Shape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

@inline(never)
private func write(to shapes: ContiguousArray<PlainShape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

@inline(never)
private func write(to shapes: ContiguousArray<ObservedShape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

/// Making objects.
private func creationRows() -> [Row] {
  func create<Peer: AnyObject>(
    _ name: String, peer peerName: String, bar: Double?, _ peer: @escaping () -> Peer
  ) -> Row {
    Row(name: name, unit: "ns", peerName: peerName, bar: bar, rounds: 25) {
      Probes(ours: { timeToMake { Shape() } }, peer: { timeToMake(peer) })
    }
  }
  return [
    create("create a model", peer: "@Observable", bar: 0.75) { ObservedShape() },
    create("create a model", peer: "plain class", bar: nil) { PlainShape() },
  ]
}

/// Stands first, as long as no large piece of memory was freed that objects could be put into.
private func memoryRows() -> [Row] {
  [
    Row(name: "memory of a model", unit: "bytes", peerName: "@Observable", bar: 1, rounds: 3) {
      Probes(ours: MemoryProbe { Shape() }.measure, peer: MemoryProbe { ObservedShape() }.measure)
    }
  ]
}

/// What it takes to make an object, its `init` and all. Letting go of it is not in the figure.
@inline(__always)
private func timeToMake<Object: AnyObject>(_ make: () -> Object) -> Double {
  let passes = 50
  var time = 0.0
  for _ in 0..<passes {
    var objects: ContiguousArray<Object> = []
    objects.reserveCapacity(Thousand.count)
    time += nanoseconds { for _ in 0..<Thousand.count { objects.append(make()) } }
    Sink.take(objects[objects.count / 2])
  }
  return time / Double(passes * Thousand.count)
}
