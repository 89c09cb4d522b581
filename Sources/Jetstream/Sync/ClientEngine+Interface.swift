import Foundation

/// What goes into the engine and what comes out of it.
extension ClientEngine {
  /// What the owner has to do.
  package enum Action {
    /// Open a connection, resuming the session with `token` if there is one. Everything that comes
    /// from it is given back with the same number, so that a late event of an old one is told apart.
    case connect(number: Int, token: String?)
    /// Send one frame.
    case send([UInt8])
    /// Close the connection.
    case disconnect
  }

  /// What the owner may want to tell the app.
  package enum Event {
    case statusChanged(ClientStatus)
    case sessionCreated(token: String)
    case sessionDenied(SyncError)
    /// The app has ended the session, or connecting is given up.
    case ended(SyncError)
    case rejected(Scope, SyncFragment, WireError, consequences: [SyncFragment])
    /// A message that was skipped, in words.
    case skipped(String)
    case waitingRepliesChanged(Int)
    /// The server has another history of the scope than the one that was known.
    case historyLost(Scope)
    /// The scope is not what the server has at this place of the order.
    case differs(Scope, Int)
    /// Models of the scope were not what the server has, and are now.
    case repaired(Scope, [UUID])
    /// A scope stands to the server in another way than before.
    case stateChanged(Scope)
    /// A scope is not synced any more.
    case left(Scope)
  }

  /// Times, and what is told to the server.
  package struct Configuration {
    package var version = "0.2.0+\(SemanticVersion.rebase)"
    package var pingInterval: Duration = .seconds(10)
    package var handshakeTimeout: Duration = .seconds(10)
    /// A connection on which nothing arrives for this long is taken for dead.
    package var silenceLimit: Duration = .seconds(32)
    package var backoff = Backoff()
    /// How much of what waits is sent ahead: change sets of one scope that are not decided, and bytes that
    /// a server of version 2 has not acknowledged. What is beyond that is sent when there is room again, so
    /// that neither side has to keep all of it at once.
    package var sendWindow = ReliableChannel.Limit(messages: 1000, bytes: 16 << 20)
    /// How many bytes a message may have: what servers take unless they are told otherwise. A change set that
    /// takes more is rejected here.
    package var maximumMessageBytes = 16 << 20
    /// The most fragments in one message to a server of version 1: the old Node server ends on some
    /// hundreds of additions. Larger sets are divided, except atomic ones and those for procedures.
    package var maximumFragments = 100
    /// How much may come in before it is acknowledged, although the next ping is not due: the server keeps
    /// what it has sent until then.
    package var acknowledgeAfter = ReliableChannel.Limit.acknowledgement
    /// How much of what comes for a paused scope is kept until it goes on. What is beyond that is asked for
    /// again then, from a server of version 2.
    package var pausedLimit = ReliableChannel.Limit(messages: 1000, bytes: 8 << 20)
    /// The form in which dates are sent; nil for the one that the version of the session asks for.
    package var dateForm: DateForm?
    /// How many of its own change sets each scope remembers, to notice that others have overwritten them.
    package var ownWrites = 256
    /// The highest version of the protocol that is spoken.
    package var highestVersion = 2
    /// True if a server of version 1 answers the sets of a scope in the order in which it has got them, as all known
    /// ones do. Then a set that it has passed over is rejected.
    package var answersAreOrdered = true
    /// Who the client is. Its change sets are numbered under this name, in all sessions.
    package var clientID = UUID()
    /// True if there are other credentials when the server refuses those of the last attempt.
    package var hasCredentials = false
    /// Gives another name, for when the server takes the client for somebody else.
    package var makeClientID: () -> UUID = { UUID() }
    package var onHistoryLoss = HistoryLoss.recover
    /// Tells what time it is, for change sets that have no date. Nil for none.
    package var date: () -> Date? = { nil }
    /// Says whether the network may be used now; without it, it may.
    package var permission: ((SyncActivity) -> SyncPermission)?

    package init() {}
  }
}
