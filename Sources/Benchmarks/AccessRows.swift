import Observation

/// Reads and writes of one property of a thousand objects, beside each of the peers.
func accessRows() -> [Row] { readRows() + unobservedWriteRows() }

private let passes = 2000

private func readRows() -> [Row] {
  func row<Peer: AnyObject>(
    peer name: String, bar: Bar?, _ make: @escaping () -> Peer,
    _ read: @escaping (ContiguousArray<Peer>) -> Void
  ) -> Row {
    Row(name: "read a property", unit: "ns", peerName: name, bar: bar) {
      let shapes = Thousand.of { Shape() }
      let others = Thousand.of(make)
      return Probes(
        ours: { perOperation { _ in readAll(shapes) } },
        peer: { perOperation { _ in read(others) } })
    }
  }
  return [
    row(peer: "plain class", bar: 1.6, PlainShape.init) { readAll($0) },
    row(peer: "hand-written didSet", bar: nil, HandmadeShape.init) { readAll($0) },
    row(peer: "@Observable", bar: 0.1, ObservedShape.init) { readAll($0) },
  ]
}

/// Writes without observers; Jetstream's objects belong to no scope.
private func unobservedWriteRows() -> [Row] {
  func row<Peer: AnyObject>(
    peer name: String, _ make: @escaping () -> Peer,
    _ write: @escaping (ContiguousArray<Peer>, Int) -> Void
  ) -> Row {
    Row(name: "write, unobserved", unit: "ns", peerName: name) {
      let shapes = Thousand.of { Shape() }
      let others = Thousand.of(make)
      return Probes(
        ours: { perOperation { writeAll(shapes, $0) } },
        peer: { perOperation { write(others, $0) } })
    }
  }
  return [
    row(peer: "plain class", PlainShape.init) { writeAll($0, $1) },
    row(peer: "hand-written didSet", HandmadeShape.init) { writeAll($0, $1) },
    row(peer: "@Observable", ObservedShape.init) { writeAll($0, $1) },
    Row(name: "change in place, unobserved", unit: "ns", peerName: "@Observable") {
      let shapes = Thousand.of { Shape() }
      let others = Thousand.of { ObservedShape() }
      return Probes(
        ours: { perOperation { _ in stepAll(shapes) } },
        peer: { perOperation { _ in stepAll(others) } })
    },
  ]
}

private func perOperation(_ body: (Int) -> Void) -> Double {
  nanoseconds { for pass in 0..<passes { body(pass) } } / Double(passes * Thousand.count)
}

// The loops, once for each class: what is measured is the code that an app would have, so there is
// nothing generic about them.

@inline(never)
private func readAll(_ shapes: ContiguousArray<Shape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func readAll(_ shapes: ContiguousArray<PlainShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func readAll(_ shapes: ContiguousArray<HandmadeShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
private func readAll(_ shapes: ContiguousArray<ObservedShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}

@inline(never)
func writeAll(_ shapes: ContiguousArray<Shape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

@inline(never)
func writeAll(_ shapes: ContiguousArray<PlainShape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

@inline(never)
func writeAll(_ shapes: ContiguousArray<HandmadeShape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

@inline(never)
func writeAll(_ shapes: ContiguousArray<ObservedShape>, _ value: Int) {
  for shape in shapes { shape.level = value }
}

// That the module changes the property in place must not make its reads slower: they are measured beside it.

@inline(never)
private func stepAll(_ shapes: ContiguousArray<Shape>) {
  for shape in shapes { shape.level += 1 }
}

@inline(never)
private func stepAll(_ shapes: ContiguousArray<ObservedShape>) {
  for shape in shapes { shape.level += 1 }
}

/// Reads after a class of the process has adopted `Observable`: from then on getters check whether it is their class.
/// Comes last, because that cannot be undone.
func bridgedRows() -> [Row] {
  [
    Row(
      name: "read, another class has adopted Observable", unit: "ns", peerName: "plain class"
    ) {
      _ = BridgedShape().schema
      let shapes = Thousand.of { Shape() }
      let others = Thousand.of { PlainShape() }
      return Probes(
        ours: { perOperation { _ in readAll(shapes) } },
        peer: { perOperation { _ in readAll(others) } })
    },
    Row(
      name: "read a model that has adopted Observable", unit: "ns", peerName: "@Observable"
    ) {
      let shapes = Thousand.of { BridgedShape() }
      let others = Thousand.of { ObservedShape() }
      return Probes(
        ours: { perOperation { _ in readAll(shapes) } },
        peer: { perOperation { _ in readAll(others) } })
    },
  ]
}

@inline(never)
private func readAll(_ shapes: ContiguousArray<BridgedShape>) {
  var sum = 0
  for shape in shapes { sum &+= shape.level }
  Sink.take(sum)
}
