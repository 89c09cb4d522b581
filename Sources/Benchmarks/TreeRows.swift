import Jetstream

/// Collections that grow, and trees that come and go.
func treeRows() -> [Row] {
  let sizes = [1000, 10_000, 100_000, 1_000_000]
  let appends = sizes.map { size in
    Row(name: "append to an attached collection of \(size)", unit: "ns") {
      let collection = GrowingCollection(size)
      return Probes(ours: { collection.measure(perTick: 100) })
    }
  }
  return appends + [
    growth("append, growth from 1000 to 1,000,000", of: sizes) { $0.measure(perTick: 100) },
    growth("append and its change set, growth", of: sizes) { $0.measureWithChangeSet() },
    Row(name: "attach 1,000,000 models", unit: "ns", bar: 1000, rounds: 3) {
      let tree = ComingTree(1_000_000)
      return Probes(ours: { tree.measure().attach })
    },
    Row(name: "attach 1,000,000 models and take the set", unit: "ns", rounds: 3) {
      let tree = ComingTree(1_000_000)
      return Probes(ours: { tree.measure().set })
    },
    Row(name: "detach 1,000,000 models", unit: "ns", bar: 1000, rounds: 3) {
      let tree = ComingTree(1_000_000)
      return Probes(ours: { tree.measure().detach })
    },
  ]
}

/// How much more an append costs where it costs most than where it costs least.
private func growth(
  _ name: String, of sizes: [Int], _ measure: @escaping (GrowingCollection) -> Double
) -> Row {
  Row(name: name, unit: "x", bar: 3, rounds: 5) {
    let collections = sizes.map { GrowingCollection($0) }
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

  init(_ size: Int) {
    self.size = size
    canvas = Shape.canvas(of: size).0
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
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

  /// Ends the tick, and takes out what was appended.
  private func restore() {
    ticker.advance(by: .milliseconds(10))
    while canvas.shapes.count > size { canvas.shapes.remove(at: size) }
    ticker.advance(by: .milliseconds(10))
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
