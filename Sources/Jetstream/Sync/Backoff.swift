/// A rule for the delay between attempts: it grows with each failure, with jitter, up to a limit.
public struct Backoff: Sendable, Hashable {
  /// The longest delay after the first failure.
  package var first: Duration
  /// The longest delay after any number of failures.
  package var limit: Duration

  /// Creates a rule. The longest delay is `first` after the first failure, and doubles with each failure up to `limit`. Each
  /// delay is chosen at random between half of the longest one and all of it. A server may ask for more.
  public init(first: Duration = .milliseconds(500), limit: Duration = .seconds(30)) {
    self.first = first
    self.limit = limit
  }

  /// Returns the delay after a failure that `failure` others precede: a time that doubles with each failure, scaled
  /// by a factor between 0.5 and 1 that depends on `random`, a number from 0 up to 1.
  package func delay(failure: Int, random: Double) -> Duration {
    let whole = min(first * (1 << min(failure, 20)), limit)
    return whole * (0.5 + 0.5 * random)
  }

  /// Returns the delay after a failure that `failure` others precede: at least `pause`, which the server has asked
  /// for. Clients that were all turned away at the same time must not all come back at the same time.
  func delay(failure: Int, atLeast pause: Duration, random: () -> Double) -> Duration {
    let asked = pause * (1 + 0.1 * random())
    return max(delay(failure: failure, random: random()), asked)
  }
}

/// The state of a client's connection to its server.
public enum ClientStatus: Sendable, Hashable {
  /// The client is not connected and is not trying to connect.
  case offline
  /// The client is opening a connection, or creating or resuming the session.
  case connecting
  /// The client is connected and has a session.
  case online
  /// The connection failed or was lost; the client will try again, after a delay or once the app permits it.
  case waiting
  /// The client is not connected because no scope needs a connection now. The session continues with the next sync.
  /// See ``SyncMode``.
  case resting
}
