/// The client's connection as a state machine: it is opened, watched, dropped, and opened again after a delay. Each due
/// time belongs to the state that it ends.
///
/// Each connection has a number. Both beginning a connection and ending one increase it, so that the engine can ignore
/// late events of an old connection.
package struct ClientConnection {
  enum State: Equatable {
    /// The app has not asked for a connection, or connecting is given up, with this error.
    case idle(after: SyncError?)
    case connecting
    /// SessionCreate was sent; the server has to answer by this time.
    case creating(due: Duration)
    /// The client has presented the session's token; the server has to answer by this time what it has received.
    case resuming(due: Duration)
    /// The session is usable. The next ping is due at this time.
    case online(pingDue: Duration)
    /// There is no connection until this time; nil for as long as the app permits none.
    case waiting(retryDue: Duration?)
    /// No scope needs a connection now.
    case resting
    case closed
  }

  /// An action that is due.
  enum Step {
    case open
    /// Drop the connection, for this reason.
    case fail(String)
    case ping
  }

  private(set) var state = State.idle(after: nil)
  /// The number of the current connection.
  package private(set) var number = 0
  /// The number of failures since the client was last online or began to connect.
  private(set) var failures = 0
  /// The reason why there is no connection.
  var problem: String?
  /// The time at which a connection on which nothing arrives is taken for dead.
  private var silenceDue = Duration.zero
  /// The number of bytes that had arrived when the connection was last found alive; 0 if the transport does not count
  /// them. A long message on a slow connection takes longer than a server may be silent.
  private(set) var arrived = 0

  /// Enters a state. Gives up a connection that the new state does not continue: events of it that arrive later carry
  /// an old number.
  mutating func enter(_ next: State) {
    switch next {
    case .creating, .resuming, .online: break
    case .idle, .connecting, .waiting, .resting, .closed: if isOpen { number += 1 }
    }
    switch next {
    case .creating, .resuming, .resting: break
    case .connecting: number += 1
    case .online: (failures, problem) = (0, nil)
    case .waiting(let due): if due != nil { failures += 1 }
    case .idle, .closed: failures = 0
    }
    state = next
  }

  /// Notes that something has arrived, so that the connection is alive until `silenceDue`. What the server repeats when it
  /// resumes a session may take long, so it has until `answerDue` to answer.
  mutating func heard(
    arrived: Int, aliveUntil silenceDue: Duration, answeringUntil answerDue: Duration
  ) {
    (self.arrived, self.silenceDue) = (arrived, silenceDue)
    if isResuming { state = .resuming(due: answerDue) }
  }

  var status: ClientStatus {
    switch state {
    case .idle, .closed: .offline
    case .connecting, .creating, .resuming: .connecting
    case .online: .online
    case .waiting: .waiting
    case .resting: .resting
    }
  }

  /// The error with which connecting was given up, until the app connects again; nil if it was not.
  var finalError: SyncError? {
    if case .idle(let error) = state { error } else { nil }
  }

  /// True from the attempt to open a connection until it is given up.
  var isOpen: Bool { status == .connecting || status == .online }

  /// True while the session is being created, so that only its reply may arrive.
  var isCreating: Bool {
    if case .creating = state { true } else { false }
  }

  /// True until the server has answered in each channel of a resumed session.
  var isResuming: Bool {
    if case .resuming = state { true } else { false }
  }

  /// The time at which ``step(at:)`` returns something.
  var deadline: Duration? {
    switch state {
    case .idle, .connecting, .resting, .closed: nil
    case .waiting(let due): due
    case .creating(let due), .resuming(let due), .online(let due): min(due, silenceDue)
    }
  }

  /// Returns the action that is due. A process that was suspended past several due times takes the connection for
  /// dead, instead of sending a ping on it.
  func step(at now: Duration) -> Step? {
    guard let deadline, deadline <= now else { return nil }
    switch state {
    case .idle, .connecting, .resting, .closed: return nil
    case .waiting: return .open
    case .creating(let due) where due <= now, .resuming(let due) where due <= now:
      return .fail("the server did not answer the handshake")
    case .online where now < silenceDue: return .ping
    case .creating, .resuming, .online: return .fail("the server fell silent")
    }
  }
}
