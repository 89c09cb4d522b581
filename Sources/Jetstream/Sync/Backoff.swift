/// How long to wait before trying again: longer after each failure, with jitter, up to a limit.
public struct Backoff: Sendable, Hashable {
  /// The longest wait after the first failure.
  package var first: Duration
  /// The longest wait after any number of failures.
  package var limit: Duration

  /// Makes a rule; by default from half a second to half a minute.
  public init(first: Duration = .milliseconds(500), limit: Duration = .seconds(30)) {
    self.first = first
    self.limit = limit
  }

  /// The wait after `failure` failures before this one: between half of a time that doubles with each
  /// and the whole of it, by `random`, a number from 0 up to 1.
  package func delay(failure: Int, random: Double) -> Duration {
    let whole = min(first * (1 << min(failure, 20)), limit)
    return whole * (0.5 + 0.5 * random)
  }
}

/// How a client stands to its server.
public enum ClientStatus: Sendable, Hashable {
  /// Not connected, and not trying to be.
  case offline
  /// Opening a connection, or creating or resuming the session.
  case connecting
  /// Connected, with a session.
  case online
  /// The connection failed or was lost; another attempt follows.
  case waiting
  /// Not connected, because no scope needs that now; there is a session, which goes on with the next exchange.
  /// See ``SyncMode``.
  case resting
}
