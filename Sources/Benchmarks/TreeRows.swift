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
    growth("growth from 1000 to 1000000, 100 appends a tick", bar: 3, perTick: 100, of: sizes),
    growth("growth from 1000 to 1000000, one append a tick", bar: 3, perTick: 1, of: sizes),
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
private func growth(_ name: String, bar: Double, perTick: Int, of sizes: [Int]) -> Row {
  Row(name: name, unit: "x", bar: bar, rounds: 5) {
    let collections = sizes.map { GrowingCollection($0) }
    return Probes(ours: {
      let figures = collections.map { $0.measure(perTick: perTick) }
      return figures.max()! / figures.min()!
    })
  }
}

/// A collection of an attached canvas. Each tick ends in a change set, the making of which is not in
/// the figures; since the set needs the content before, the first append of a tick finds it shared.
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

  /// Nanoseconds an append.
  func measure(perTick: Int) -> Double {
    let ticks = perTick == 1 ? 3 : 5
    var time = 0.0
    for _ in 0..<ticks {
      let shapes = (0..<perTick).map { _ in Shape() }
      time += nanoseconds { for shape in shapes { canvas.shapes.append(shape) } }
      ticker.advance(by: .milliseconds(10))
      while canvas.shapes.count > size { canvas.shapes.remove(at: size) }
      ticker.advance(by: .milliseconds(10))
    }
    return time / Double(ticks * perTick)
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
