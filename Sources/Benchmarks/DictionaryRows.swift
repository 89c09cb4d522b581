import Jetstream
import Observation

/// Entries of dictionaries of ten thousand models.
func dictionaryRows() -> [Row] {
  [
    Row(
      name: "read an entry, of 10,000", unit: "ns", peerName: "@Observable, a Swift dictionary",
      bar: 5
    ) {
      let (ours, peer) = (OurBoard(), ObservedBoard())
      return Probes(ours: ours.read, peer: peer.read)
    },
    Row(
      name: "put an entry, of 10,000, observed and captured", unit: "ns",
      peerName: "@Observable, tracked", bar: .figure(10_000)
    ) {
      let (ours, peer) = (OurBoard(), ObservedBoard())
      return Probes(ours: ours.put, peer: peer.put)
    },
  ]
}

private let count = 10_000
private let keys = (0..<count).map { "shape \($0)" }
/// The keys of a pass, in an order that is not theirs.
private let passKeys = (0..<1_000).map { keys[$0 * 7_919 % count] }

private final class Board: ModelObject {
  @Property var shapes: ModelDictionary<String, Shape> = [:]
}

/// A board in a scope. A pass is one tick, with one change set.
private final class OurBoard {
  private let ticker = Ticker.manual()
  private let board = Board()
  private let scope: Scope
  private let spare = (0..<2).map { _ in Shape() }
  private var passes = 0
  private var told = 0

  init() {
    var shapes: ModelDictionary<String, Shape> = [:]
    for key in keys { shapes[key] = Shape() }
    board.shapes = shapes
    scope = Scope(name: "Board", root: board, ticker: ticker)
    scope.flush()
    board.observeChange(self, \.shapes, isolation: ticker.isolation) { $0.told += 1 }
  }

  func read() -> Double {
    nanoseconds { for key in passKeys { Sink.take(board.shapes[key]?.level ?? 0) } }
      / Double(passKeys.count)
  }

  func put() -> Double {
    passes += 1
    let shape = spare[passes % 2]
    let time = nanoseconds {
      for key in passKeys { board.shapes[key] = shape }
      ticker.advance(by: .milliseconds(10))
    }
    precondition(told == passes, "The observer was not called once for each tick.")
    return time / Double(passKeys.count)
  }
}

@Observable
private final class ObservedBoardModel {
  var shapes: [String: ObservedShape] = [:]
}

private final class ObservedBoard {
  private let board = ObservedBoardModel()
  private let spare = (0..<2).map { _ in ObservedShape() }
  private var passes = 0

  init() { for key in keys { board.shapes[key] = ObservedShape() } }

  func read() -> Double {
    nanoseconds { for key in passKeys { Sink.take(board.shapes[key]?.level ?? 0) } }
      / Double(passKeys.count)
  }

  func put() -> Double {
    passes += 1
    let shape = spare[passes % 2]
    let time = nanoseconds {
      withObservationTracking({ _ = board.shapes.count }, onChange: {})
      for key in passKeys { board.shapes[key] = shape }
    }
    return time / Double(passKeys.count)
  }
}
