import Jetstream
import Synchronization

/// A queue of a log whose work is done when its time has come on the virtual clock, one piece after the
/// other.
final class SimulatedLogQueue: LogQueue {
  private struct Piece {
    let due: Duration
    let work: @Sendable () -> Void
  }

  private struct State {
    var random: SimulationRandom
    var now: Duration
    var pieces: [Piece] = []
  }

  private let state: Mutex<State>
  private let delay: ClosedRange<Int>

  /// - Parameter delay: how long a piece takes at least and at most, in milliseconds; now and then it takes
  ///   seconds.
  init(random: SimulationRandom, delay: ClosedRange<Int>, now: Duration) {
    state = Mutex(State(random: random, now: now))
    self.delay = delay
  }

  func run(_ work: @escaping @Sendable () -> Void) { run(after: .zero, work) }

  func run(after pause: Duration, _ work: @escaping @Sendable () -> Void) {
    state.withLock { state in
      var due = state.now + pause + .milliseconds(state.random.number(in: delay))
      // Now and then something else keeps the disk busy.
      if state.random.chance(0.01) { due += .milliseconds(state.random.number(in: 200...3_000)) }
      let last = state.pieces.last?.due ?? .zero
      state.pieces.append(Piece(due: max(due, last), work: work))
    }
  }

  /// What is asked for from now on is asked for at this time.
  func setTime(_ now: Duration) { state.withLock { $0.now = now } }

  /// When the next piece is due; nil if there is none.
  var deadline: Duration? { state.withLock { $0.pieces.first?.due } }

  /// Does the next piece if it is due by then, or whenever it is due. False if there is none.
  func step(until time: Duration? = nil) -> Bool {
    let piece = state.withLock { state -> Piece? in
      guard let first = state.pieces.first, first.due <= time ?? first.due else { return nil }
      return state.pieces.removeFirst()
    }
    piece?.work()
    return piece != nil
  }
}
