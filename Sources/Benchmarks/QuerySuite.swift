import Jetstream

let querySuite = Suite(name: "queries", summary: "live queries, beside filtering and sorting again")
{
  let sizes = [1000, 10_000, 100_000]
  let rows = sizes.flatMap { size in
    [1, 100].map { changes in
      Row(
        name: "\(changes) changed of \(size), per row", unit: "ns",
        peerName: "filter and sort again", bar: nil, rounds: size > 10_000 ? 5 : 9
      ) {
        let desk = QueriedDesk(size)
        return Probes(
          ours: { desk.measure(changes: changes) }, peer: { desk.measureAgain(changes: changes) })
      }
    }
  }
  return rows + [
    Row(name: "1 changed, growth from 1000 to 100,000", unit: "x", bar: 4, rounds: 9) {
      let small = QueriedDesk(1000)
      let large = QueriedDesk(100_000)
      return Probes(ours: { large.measure(changes: 1) / small.measure(changes: 1) })
    },
    Row(name: "100 changed, growth from 1000 to 100,000", unit: "x", bar: 4, rounds: 9) {
      let small = QueriedDesk(1000)
      let large = QueriedDesk(100_000)
      return Probes(ours: { large.measure(changes: 100) / small.measure(changes: 100) })
    },
    Row(
      name: "100 changed of 100,000, making a CollectionDifference", unit: "ns",
      peerName: "without", rounds: 5
    ) {
      let (desk, other) = (QueriedDesk(100_000), QueriedDesk(100_000))
      desk.makesDifference = true
      return Probes(
        ours: { desk.measure(changes: 100) }, peer: { other.measure(changes: 100) })
    },
    Row(name: "insert or remove, 100 sections of 100,000", unit: "ns", rounds: 9) {
      let desk = QueriedDesk(100_000)
      return Probes(ours: { desk.measureSections() })
    },
    Row(name: "1 changed of 100,000, a limit of 100", unit: "ns", rounds: 5) {
      let desk = QueriedDesk(100_000)
      desk.limit = 100
      return Probes(ours: { desk.measure(changes: 1) })
    },
    Row(name: "1 changed of 100,000, a sum", unit: "ns", rounds: 5) {
      let desk = QueriedDesk(100_000)
      return Probes(ours: { desk.measureSum() })
    },
    Row(
      name: "make a query of 100,000, per row", unit: "ns", peerName: "filter and sort", rounds: 5
    ) {
      let desk = QueriedDesk(100_000)
      return Probes(
        ours: { desk.measureMaking() }, peer: { desk.measureAgain(changes: 1) / 100_000 })
    },
  ]
}

/// A canvas whose shapes are queried: about half of them, by their level.
private final class QueriedDesk {
  private let ticker = Ticker.manual()
  private let scope: Scope
  private let canvas: Canvas
  private let shapes: ContiguousArray<Shape>
  private let size: Int
  private var live: LiveQuery<Shape>?
  private var updates = 0
  /// True if the observer asks for the difference instead of offsets.
  var makesDifference = false
  /// The number of rows that the query shows, from the middle on; nil for all.
  var limit: Int?
  private var random: UInt64 = 1

  init(_ size: Int) {
    self.size = size
    (canvas, shapes) = Shape.canvas(of: size)
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    for shape in shapes { shape.level = next(size) }
    ticker.advance(by: .milliseconds(10))
  }

  private var query: Query<Shape> {
    scope.query(Shape.self).filter { $0.level % 2 == 0 }.sorted(by: \.level)
  }

  private func next(_ bound: Int) -> Int {
    random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(random >> 33) % bound
  }

  /// Nanoseconds a changed row: the tick that evaluates it, moves it and tells the difference.
  func measure(changes: Int) -> Double {
    if live == nil {
      live = (limit.map { query.limit($0, offset: size / 4) } ?? query).live(
        isolation: ticker.isolation)
      live?.observe(self) { me, update in
        me.updates +=
          me.makesDifference ? update.difference.count : update.inserted.count + update.moved.count
      }
    }
    let ticks = max(1, 400 / changes)
    var time = 0.0
    for _ in 0..<ticks {
      for _ in 0..<changes { shapes[next(size)].level = next(size) }
      // The change set that is due at this tick is not measured.
      _ = scope.takeFragments()
      time += nanoseconds { ticker.tick() }
    }
    Sink.take(updates)
    return time / Double(ticks * changes)
  }

  /// Nanoseconds a changed row: the tick that evaluates it and adds it up.
  func measureSum() -> Double {
    let sum = scope.query(Shape.self).filter { $0.level % 2 == 0 }.sum(
      of: \.level, isolation: ticker.isolation)
    sum.observe(self) { me, _ in me.updates += 1 }
    var time = 0.0
    for _ in 0..<400 {
      shapes[next(size)].level = next(size)
      _ = scope.takeFragments()
      time += nanoseconds { ticker.tick() }
    }
    Sink.take(updates + sum.value)
    return time / 400
  }

  /// Nanoseconds a changed row, of filtering and sorting everything again after the changes.
  func measureAgain(changes: Int) -> Double {
    live = nil
    let ticks = size > 10_000 ? 2 : 10
    var time = 0.0
    for _ in 0..<ticks {
      for _ in 0..<changes { shapes[next(size)].level = next(size) }
      _ = scope.takeFragments()
      time += nanoseconds {
        let rows = shapes.filter { $0.level % 2 == 0 }.sorted { $0.level < $1.level }
        Sink.take(rows.count)
      }
    }
    ticker.advance(by: .milliseconds(10))
    return time / Double(ticks * changes)
  }

  /// Returns the nanoseconds per inserted or removed row, with a hundred sections that are observed.
  func measureSections() -> Double {
    let sections = query.sections(by: { $0.level % 100 }).live(isolation: ticker.isolation)
    sections.observe(self) { me, update in me.updates += update.inserted.count }
    let made = (0..<100).map { _ in Shape() }
    var time = 0.0
    for _ in 0..<5 {
      for shape in made {
        shape.level = next(size)
        canvas.shapes.append(shape)
      }
      _ = scope.takeFragments()
      time += nanoseconds { ticker.tick() }
      for shape in made { canvas.shapes.remove(shape) }
      _ = scope.takeFragments()
      time += nanoseconds { ticker.tick() }
    }
    return time / 1000
  }

  /// Nanoseconds a model of the scope to make a query.
  func measureMaking() -> Double {
    var made: LiveQuery<Shape>?
    let time = nanoseconds { made = query.live(isolation: ticker.isolation) }
    Sink.take(made?.count ?? 0)
    return time / Double(size)
  }
}
