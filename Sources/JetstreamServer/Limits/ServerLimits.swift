/// The limits that keep hostile or broken clients from what others need. Nil means that there is no limit.
///
/// ```swift
/// var configuration = Server.Configuration()
/// configuration.limits.sessionsPerPrincipal = 10
/// ```
///
/// A limit that refuses something does so with a `WireError` whose type names it. ``Server/limitHits`` counts how
/// often each limit was reached.
public struct ServerLimits: Sendable, Hashable {
  /// The number of sessions, with or without a connection. Further clients are refused with `too-many-sessions`, and
  /// ask again after 30 seconds.
  public var sessions: Int? = 100_000
  /// The number of sessions whose ``Principal`` has the same id. A further one takes the place of the one that has
  /// been without a connection for the longest time. If all have one, the client is refused with
  /// `too-many-sessions-of-principal`, and asks again after 30 seconds.
  public var sessionsPerPrincipal: Int? = 1_000
  /// The number of sessions from the same address, with or without a connection. Further clients are refused with
  /// `too-many-sessions-of-address`, and ask again after 30 seconds. The addresses of an IPv6 network of 64 bits
  /// count as one. Behind a proxy, set ``Server/Configuration/trustedProxies``.
  public var sessionsPerAddress: Int? = 10_000
  /// The number of connections that have no session yet. Further ones are closed with `too-many-handshakes`, and
  /// their clients ask again after 5 seconds. A client that resumes a session needs a place only while another
  /// connection claims the same session. A client keeps its place for at most
  /// ``Server/Configuration/handshakeTimeout``, so that a flood of silent connections keeps others out for no
  /// longer; and then for as long as ``Server/authenticate`` takes, at most the same time again. As many sockets as
  /// this may be no WebSockets, which a socket only becomes when the server's actor has time for it: new ones beyond it
  /// are closed at once, and those on which the server waits longest for the answer to a close make room for all
  /// others.
  public var handshakes: Int? = 10_000
  /// The number of connections from the same address that have no session yet. Further ones are closed with
  /// `too-many-handshakes-of-address`, and their clients ask again after 5 seconds. The same number holds for sockets
  /// that are no WebSockets yet.
  public var handshakesPerAddress: Int? = 1_000
  /// The number of scopes that one session has fetched and not left. Further fetches are refused with
  /// `too-many-scopes`.
  public var scopesPerSession: Int? = 256
  /// The number of fragments of one change set. A longer one is rejected as a whole, with `too-many-fragments`.
  public var fragmentsPerChangeSet: Int? = 100_000
  /// The size of the fragments of one change set as JSON, in bytes. A larger one is rejected as a whole, with
  /// `change-set-too-large`. No change set is larger than ``Server/Configuration/maximumMessageBytes``.
  public var bytesPerChangeSet: Int? = 16 << 20

  /// The number of models of a scope. A change set that would add models beyond it is rejected as a whole, with
  /// `scope-full`. Changes and removals go on, and so do the app's own additions.
  public var modelsPerScope: Int? = 1_000_000
  /// The size of a scope's full state as JSON, in bytes. A change set that adds models to a larger scope, or makes
  /// values or collections longer than before, is rejected as a whole, with `scope-full`. Other changes and removals go
  /// on; values of up to 64 bytes count like numbers. The size is estimated: it is measured when the scope is hosted
  /// and while change sets come, and calculated from what comes and goes in between, so that a scope may get about half
  /// as large again.
  public var bytesPerScope: Int?
  // A client that exceeds one of the following rates is refused nothing: its connection is left unread until the rate
  // allows more.

  /// The number of change sets that a session may send in a second, and ten times as many at once. The connection
  /// of one that sends more is left unread for a while: nothing is lost, and what the client sends meanwhile waits
  /// in its socket.
  public var changeSetsPerSecond: Int?
  /// The number of bytes that a session may send in a second, and ten times as many at once. The connection of one
  /// that sends more is left unread for a while.
  public var bytesPerSecond: Int?
  /// The number of change sets that all sessions together may send to a scope in a second, and ten times as many at
  /// once. Whichever session sends more is left unread for a while, so this should be well above
  /// ``changeSetsPerSecond``: one session could use up what the others need.
  public var changeSetsPerSecondInScope: Int?
  /// The number of bytes, as JSON, in the fragments of the change sets that all sessions together may send to a scope
  /// in a second, and ten times as many at once. Whichever session sends more is left unread for a while.
  public var bytesPerSecondInScope: Int?
  /// The number of scopes that a session may fetch in a second, and ten times as many at once. The connection of one
  /// that fetches more is left unread for a while.
  public var fetchesPerSecond: Int? = 1_000
  /// The number of full states that a session may be sent in a second, and ten times as many at once. The
  /// connection of one that asks for more is left unread for a while.
  public var fullStatesPerSecond: Int? = 1_000
  /// The number of pings that a session may send in a second, and ten times as many at once. The connection of one
  /// that sends more is left unread for a while. Clients send a ping every 10 seconds, and for each 256 change sets
  /// that they are told.
  public var pingsPerSecond: Int? = 10_000

  /// The number of bytes that may wait on all connections together, which is looked at once a second: those to be sent,
  /// and those of received messages that are not complete yet or that the server has not taken, also since it leaves a
  /// client unread for another limit. When there are more,
  /// the connections for which most waits are dropped, until less does; their clients resume their sessions.
  /// ``Server/Configuration/maximumOutboundBytes`` and ``Server/Configuration/maximumMessageBytes`` are the limits of a
  /// single connection. Connections that other HTTP servers have accepted do not count.
  public var unreadBytes: Int? = 1 << 30
  /// The number of bytes of the decisions and changes of one scope that its log has not made durable yet: the server
  /// holds them in memory, and tells no client of them. While there are more, as on a full disk, the connection of each
  /// client that sends a change set to the scope is left unread. Nothing is lost: the log is tried again every second,
  /// and all goes on where it was. Changes of the app's own models are not held back.
  public var unstoredBytes: Int? = 16 << 20
  /// The size of the decisions on one client's change sets of one scope that the client has not said it knows, in bytes:
  /// about 150 for each change set, and about 100 more for each of its fragments if one of them was rejected or changed.
  /// The server keeps them, in memory and in the log, so that the client learns them whenever it comes back. The session
  /// of a client that sends more beyond that ends with `too-many-decisions`; the client begins another one, in which it
  /// says what it knows. A client of this package says so with each change set.
  ///
  /// All clients without a session leave at most about sixteen times as much in a scope. Beyond that, the scope forgets
  /// the decisions of those with the most; they are told so when they come back, see `Client.onHistoryLoss`.
  public var unknownDecisionBytes: Int? = 16 << 20
  /// The most resident memory that the process should have, in bytes. The server looks once a second: from the second
  /// look in a row that finds more, until one finds a sixteenth less, new sessions, the opening of scopes that are
  /// closed, and change sets that add models, or make values or collections longer, are refused with `short-of-memory`;
  /// clients ask for sessions and scopes again after 5 seconds. Sessions go on: they are told everything, make other
  /// changes, also of values of up to 64 bytes, and remove models. Scopes are closed after ten idle seconds. The server
  /// reports when that begins and when it ends. On other systems than Linux, it reports that the limit does not hold.
  ///
  /// Choose it well below what the system lets the process have: what clients do between two looks comes on top of it.
  public var residentBytes: Int?

  /// Makes limits with default values.
  public init() {}

  /// The size of the decisions that all clients without a session leave in a scope together.
  var absentDecisionBytes: Int? {
    unknownDecisionBytes.map { 16.multipliedReportingOverflow(by: $0) }
      .map { $0.overflow ? .max : $0.partialValue }
  }
}
