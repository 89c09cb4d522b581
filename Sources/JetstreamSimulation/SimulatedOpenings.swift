import Foundation

/// The openings and closings of a simulated server's scope that are under way.
///
/// The scope is open from the server's start. Once it was closed, the first fetch has it opened again, which takes a while
/// and may fail.
struct SimulatedOpenings {
  /// The end of an opening.
  struct Outcome {
    let at: Duration
    let fails: Bool
    /// True if the scope has been there since the server's start.
    var isFirst = false
    /// True if the observer has fetched the scope, which does not ask again.
    var observerWaits = false
  }

  private enum State {
    case open
    case closing
    /// No client has fetched the scope yet; the observer does so at a time.
    case closed(until: Duration)
    case opening(Outcome)
  }

  private var state = State.open
  private var observerWaits = false
  private var random: SimulationRandom

  init(random: SimulationRandom) { self.random = random }

  /// True if the scope is open.
  var isOpen: Bool { if case .open = state { true } else { false } }

  /// True if the log is being written, behind which the scope is closed.
  var isClosing: Bool { if case .closing = state { true } else { false } }

  /// The time of the next thing that happens by itself.
  var deadline: Duration? {
    switch state {
    case .open, .closing: nil
    case .closed(let time): observerWaits ? nil : time
    case .opening(let outcome): outcome.at
    }
  }

  mutating func beginClosing() { state = .closing }

  mutating func endClosing(now: Duration) {
    state = .closed(until: now + .milliseconds(random.number(in: 0...2_000)))
  }

  /// Notes that the scope is to be opened. At the first fetch it is there already.
  mutating func beginOpening(now: Duration) {
    if case .open = state {
      state = .opening(Outcome(at: now, fails: false, isFirst: true, observerWaits: true))
      return
    }
    let time = now + .milliseconds(random.number(in: 0...400))
    let fails = random.chance(0.2) && !observerWaits
    state = .opening(Outcome(at: time, fails: fails, observerWaits: observerWaits))
  }

  /// Has the opening fail at once, since the engine gives it up.
  mutating func giveUp(now: Duration) {
    if case .opening(let outcome) = state, !outcome.observerWaits {
      state = .opening(Outcome(at: now, fails: true))
    }
  }

  /// Returns the outcome of an opening that ends by a time.
  mutating func takeOutcome(now: Duration) -> Outcome? {
    guard case .opening(let outcome) = state, outcome.at <= now else { return nil }
    state = outcome.fails ? .closed(until: now + .milliseconds(500)) : .open
    observerWaits = false
    return outcome
  }

  /// Returns true, once, if the observer has to fetch the scope, since no client has for a while.
  mutating func takeWish(now: Duration) -> Bool {
    guard case .closed(let time) = state, time <= now, !observerWaits else { return false }
    observerWaits = true
    return true
  }
}
