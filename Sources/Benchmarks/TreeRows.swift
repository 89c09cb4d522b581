import Jetstream

/// Collections that grow, and trees that come and go.
func treeRows() -> [Row] { appendRows() + insertRows() + attachRows() }

private func appendRows() -> [Row] {
  let sizes = [1000, 10_000, 100_000, 1_000_000]
  return sizes.map { size in
    Row(name: "append to an attached collection of \(size)", unit: "ns") {
      let collection = GrowingCollection(size)
      return Probes(ours: { collection.measure(perTick: 100) })
    }
  } + [
    growth("append, growth from 1000 to 1,000,000", of: sizes) { $0.measure(perTick: 100) },
    growth("append and its change set, growth", of: sizes) { $0.measureWithChangeSet() },
    // The bar is the square root of the growth in size.
    growth(
      "append with an immediate observer, growth", of: sizes.dropLast(), isObserved: true, bar: 10
    ) { $0.measure(perTick: 100) },
  ]
}

private func insertRows() -> [Row] {
  [1000, 10_000, 100_000].flatMap { size in
    [
      Row(name: "insert anywhere, attached collection of \(size)", unit: "ns") {
        let collection = GrowingCollection(size)
        return Probes(ours: { collection.measureInserts(perTick: 100) })
      },
      Row(
        name: "insert anywhere, \(size), with a copy held", unit: "ns",
        peerName: "Array, with a copy held"
      ) {
        let collection = GrowingCollection(size)
        let array = HeldArray(size)
        return Probes(
          ours: { collection.measureHeldInserts(count: 100) },
          peer: { array.measureHeldInserts(count: 100) })
      },
    ]
  }
}

private func attachRows() -> [Row] {
  let sizes = [10_000, 100_000, 1_000_000]
  func rows(
    _ name: String, bar: Bar?, _ figure: @escaping ((Double, Double, Double)) -> Double
  ) -> [Row] {
    sizes.map { size in
      Row(name: "\(name), tree of \(size)", unit: "ns", bar: bar, rounds: 3) {
        let tree = ComingTree(size)
        return Probes(ours: { figure(tree.measure()) })
      }
    }
  }
  return rows("attach a model", bar: 1000) { $0.0 }
    + rows("attach a model and take the set", bar: nil) { $0.1 }
    + rows("detach a model", bar: 1000) { $0.2 } + [
      Row(name: "detach, growth from 10,000 to 1,000,000", unit: "x", bar: 6, rounds: 3) {
        let trees = [sizes.first!, sizes.last!].map { ComingTree($0) }
        return Probes(ours: { trees[1].measure().detach / trees[0].measure().detach })
      }
    ]
}

/// The ratio between the largest and the smallest cost of an append.
private func growth(
  _ name: String, of sizes: [Int], isObserved: Bool = false, bar: Bar = 3,
  _ measure: @escaping (GrowingCollection) -> Double
) -> Row {
  Row(name: name, unit: "x", bar: bar, rounds: 5) {
    let collections = sizes.map { GrowingCollection($0, isObserved: isObserved) }
    return Probes(ours: {
      let figures = collections.map(measure)
      return figures.max()! / figures.min()!
    })
  }
}

/// A collection of an attached canvas, the changes of which are captured.
private final class GrowingCollection {
  private let ticker = Ticker.manual()
  private let scope: Scope
  private let canvas: Canvas
  private let size: Int

  /// - Parameter isObserved: true to observe another property of the canvas immediately.
  init(_ size: Int, isObserved: Bool = false) {
    self.size = size
    canvas = Shape.canvas(of: size).0
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    if isObserved { canvas.observeChangeImmediately(\.note) { Sink.take($1.count) } }
  }

  /// Nanoseconds an append, without the making of the change set that ends each tick.
  func measure(perTick: Int) -> Double {
    let ticks = 5
    var time = 0.0
    for _ in 0..<ticks {
      let shapes = (0..<perTick).map { _ in Shape() }
      time += nanoseconds { for shape in shapes { canvas.shapes.append(shape) } }
      restore()
    }
    return time / Double(ticks * perTick)
  }

  /// Nanoseconds a tick that appends one model and makes a change set.
  func measureWithChangeSet() -> Double {
    let shape = Shape()
    let time = nanoseconds {
      canvas.shapes.append(shape)
      ticker.advance(by: .milliseconds(10))
    }
    restore()
    return time
  }

  /// Nanoseconds an insertion at a random place, without the making of the change set.
  func measureInserts(perTick: Int) -> Double {
    let ticks = 5
    var time = 0.0
    for _ in 0..<ticks {
      let shapes = (0..<perTick).map { _ in Shape() }
      let places = (0..<perTick).map { _ in Int.random(in: 0...size) }
      time += nanoseconds {
        for (shape, place) in zip(shapes, places) { canvas.shapes.insert(shape, at: place) }
      }
      for shape in shapes { canvas.shapes.remove(shape) }
      ticker.advance(by: .milliseconds(10))
    }
    return time / Double(ticks * perTick)
  }

  /// Returns the nanoseconds per insertion at a random place of a collection of which a copy was just taken.
  func measureHeldInserts(count: Int) -> Double {
    let shapes = (0..<count).map { _ in Shape() }
    let places = (0..<count).map { _ in Int.random(in: 0...size) }
    let time = nanoseconds {
      for (shape, place) in zip(shapes, places) {
        let copy = canvas.shapes
        canvas.shapes.insert(shape, at: place)
        Sink.take(copy.count)
      }
    }
    for shape in shapes { canvas.shapes.remove(shape) }
    ticker.advance(by: .milliseconds(10))
    return time / Double(count)
  }

  /// Ends the tick, and takes out what was appended.
  private func restore() {
    ticker.advance(by: .milliseconds(10))
    while canvas.shapes.count > size { canvas.shapes.remove(at: size) }
    ticker.advance(by: .milliseconds(10))
  }
}

/// The peer without a framework: an array of objects.
private final class HeldArray {
  private var shapes: [PlainShape]

  init(_ size: Int) { shapes = (0..<size).map { _ in PlainShape() } }

  func measureHeldInserts(count: Int) -> Double {
    let size = shapes.count
    let fresh = (0..<count).map { _ in PlainShape() }
    let places = (0..<count).map { _ in Int.random(in: 0...size) }
    let time = nanoseconds {
      for (shape, place) in zip(fresh, places) {
        let copy = shapes
        shapes.insert(shape, at: place)
        Sink.take(copy.count)
      }
    }
    shapes.removeLast(count)
    return time / Double(count)
  }
}

/// A canvas that is put on a desk and taken away again.
private final class ComingTree {
  private let ticker = Ticker.manual()
  private let scope: Scope
  private let desk = Desk()
  private let size: Int

  init(_ size: Int) {
    self.size = size
    scope = Scope(name: "Desk", root: desk, ticker: ticker)
  }

  /// Nanoseconds a model for a tree of new models; `set` is attaching and the change set.
  func measure() -> (attach: Double, set: Double, detach: Double) {
    let canvas = Shape.canvas(of: size - 1).0
    let attach = nanoseconds { desk.canvas = canvas }
    let set = nanoseconds { ticker.advance(by: .milliseconds(10)) }
    precondition(scope.count == size + 1, "A model has not come.")
    let detach = nanoseconds { desk.canvas = nil }
    precondition(scope.count == 1, "A model has not gone.")
    ticker.advance(by: .milliseconds(10))
    let count = Double(size)
    return (attach / count, (attach + set) / count, detach / count)
  }
}
