import Jetstream
import Synchronization

/// A queue of a log that does its work, one piece after the other, when its time has come on the virtual clock.
final class SimulatedLogQueue: LogQueue {
  private struct Piece {
    let due: Duration
    let work: @Sendable () -> Void
  }

  private struct State {
    var random: SimulationRandom
    var now: Duration
    /// The work to be done one after the other.
    var pieces: [Piece] = []
    /// The work that was asked for with a pause, in the order in which it is due. Other work does not wait for it.
    var later: [Piece] = []

    /// True if the next piece to be done is one of `later`.
    var isLaterNext: Bool {
      guard let piece = later.first else { return false }
      return pieces.first.map { piece.due < $0.due } ?? true
    }

    var next: Piece? { isLaterNext ? later.first : pieces.first }
  }

  private let state: Mutex<State>
  private let delay: ClosedRange<Int>

  /// Creates an empty queue.
  ///
  /// - Parameter delay: the time that a piece of work takes, in milliseconds. Now and then a piece takes up to
  ///   three seconds longer.
  init(random: SimulationRandom, delay: ClosedRange<Int>, now: Duration) {
    state = Mutex(State(random: random, now: now))
    self.delay = delay
  }

  func run(_ work: @escaping @Sendable () -> Void) {
    state.withLock { state in
      var due = state.now + .milliseconds(state.random.number(in: delay))
      // Now and then something else keeps the disk busy.
      if state.random.chance(0.01) { due += .milliseconds(state.random.number(in: 200...3_000)) }
      let last = state.pieces.last?.due ?? .zero
      state.pieces.append(Piece(due: max(due, last), work: work))
    }
  }

  func run(after pause: Duration, _ work: @escaping @Sendable () -> Void) {
    state.withLock { state in
      let due = state.now + pause + .milliseconds(state.random.number(in: delay))
      let place = state.later.firstIndex { $0.due > due } ?? state.later.endIndex
      state.later.insert(Piece(due: due, work: work), at: place)
    }
  }

  /// Sets the time at which work is asked for from now on.
  func setTime(_ now: Duration) { state.withLock { $0.now = now } }

  /// True while there is work that was asked for without a pause.
  var isBusy: Bool { state.withLock { !$0.pieces.isEmpty } }

  /// The time at which the next piece is due; nil if there is none.
  var deadline: Duration? { state.withLock { $0.next?.due } }

  /// Does the next piece if it is due by `time`, or in any case if that is nil. Returns false if it has done
  /// none.
  func step(until time: Duration? = nil) -> Bool {
    let piece = state.withLock { state -> Piece? in
      guard let next = state.next, next.due <= time ?? next.due else { return nil }
      return state.isLaterNext ? state.later.removeFirst() : state.pieces.removeFirst()
    }
    piece?.work()
    return piece != nil
  }
}
