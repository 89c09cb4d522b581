import Foundation

/// The inputs and outputs of the engine.
extension ClientEngine {
  /// An action that the owner has to perform.
  package enum Action {
    /// Open a connection, resuming the session with `token` if there is one. The owner passes the same number with
    /// every event of this connection, so that the engine can ignore late events of an earlier one.
    case connect(number: Int, token: String?)
    /// Send one frame.
    case send([UInt8])
    /// Close the connection.
    case disconnect
  }

  /// An event that the owner may pass on to the app.
  package enum Event {
    case statusChanged(ClientStatus)
    case sessionCreated(token: String)
    case sessionDenied(SyncError)
    /// The app has ended the session, or connecting is given up.
    case ended(SyncError)
    case rejected(Scope, SyncFragment, WireError, consequences: [SyncFragment])
    case diagnostic(Diagnostic)
    case waitingRepliesChanged(Int)
    /// The server has another history of the scope than the one that the client knew.
    case historyLost(Scope)
    /// The scope differs from the server's at this sequence.
    case differs(Scope, Int)
    /// Models of the scope differed from the server's and were repaired.
    case repaired(Scope, [UUID])
    /// The sync state of a scope has changed.
    case stateChanged(Scope)
    /// A scope is no longer synced.
    case left(Scope)
  }

  /// The times, limits and callbacks of an engine.
  package struct Configuration {
    package var version = "0.2.0+\(SemanticVersion.rebase)"
    package var pingInterval: Duration = .seconds(10)
    package var handshakeTimeout: Duration = .seconds(10)
    /// A connection on which nothing arrives for this long is taken for dead.
    package var silenceLimit: Duration = .seconds(32)
    package var backoff = Backoff()
    package var limits = Limits()
    /// The form in which dates are sent; nil for the form that fits the session's version of the protocol.
    package var dateForm: DateForm?
    /// The highest version of the protocol that the client speaks.
    package var highestVersion = 2
    /// True if a server of version 1 answers the change sets of a scope in the order in which it received them, as
    /// all known ones do. The client then rejects a change set that the server has passed over.
    package var answersAreOrdered = true
    /// The client's identity, under which its change sets are numbered in all sessions.
    package var clientID = UUID()
    /// True if the app can provide other credentials when the server refuses the last ones.
    package var hasCredentials = false
    /// Makes another client identity, for when the server knows other change sets under this one.
    package var makeClientID: () -> UUID = { UUID() }
    package var onHistoryLoss = HistoryLoss.recover
    /// Returns the current time, for change sets that have no date; nil for no date.
    package var date: () -> Date? = { nil }
    /// Returns the current time, for the app's permission, which may be asked for long after the last event; nil for the
    /// time of that event.
    package var time: () -> Duration? = { nil }
    /// Decides whether the network may be used now; if nil, it always may.
    package var permission: ((SyncActivity) -> SyncPermission)?

    package init() {}
  }

  /// The limits of a client for what it sends, keeps and remembers.
  package struct Limits {
    /// The limit for what is sent ahead: undecided change sets of one scope, four times as many of all scopes together, and
    /// bytes that a server of version 2 has not acknowledged. The rest is sent when there is room again, so that
    /// neither side has to keep all of it at once. A connection that resumes a session sends again only what was sent
    /// within the limit before, and counts it.
    package var sendWindow = ReliableChannel.Limit(messages: 1000, bytes: 16 << 20)
    /// The most decisions about the change sets of one scope that a server of version 2 has to keep because the client has
    /// not said that it knows them. The rest is sent when their records are durable. It must not be smaller than
    /// ``decisionsPerRecord``.
    package var unknownDecisions = 10_000
    /// The number of decisions on change sets whose sequences are not reached that have one record.
    package var decisionsPerRecord = 64
    /// The most bytes that a message may have: the default limit of servers. The client itself rejects a change set
    /// that takes more.
    package var maximumMessageBytes = 16 << 20
    /// The most fragments in one message to a server of version 1: the old Node server crashes on some hundreds of
    /// additions. Larger change sets are split, except atomic ones and those for procedures.
    package var maximumFragments = 100
    /// The amount of incoming data after which the client acknowledges without waiting for the next ping, because
    /// the server keeps what it has sent until then.
    package var acknowledgeAfter = ReliableChannel.Limit.acknowledgement
    /// The most that is held for a paused scope until it resumes. A server of version 2 is asked again for the rest.
    package var pausedLimit = ReliableChannel.Limit(messages: 1000, bytes: 8 << 20)
    /// The number of its own change sets that each scope remembers, to notice that other clients overwrite them.
    package var ownWrites = 256
    /// The number of departed models that a scope keeps. Above it, those that no pending change set needs are dropped.
    package var departedModels = 1024

    package init() {}
  }
}
