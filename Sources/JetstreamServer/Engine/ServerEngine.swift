import Foundation
import Jetstream
import JetstreamWebSocket

/// The server's side of the protocol as a state machine: connections, frames and times go in, actions
/// come out. It does no I/O, reads no clock and draws no random numbers of its own.
package final class ServerEngine {
  /// An action that the owner has to carry out.
  package enum Action {
    /// Send a frame on each of the connections.
    case send(connections: [Int], [UInt8])
    case close(connection: Int, code: Int, reason: String)
    /// The connection has a session: from now on it may send messages of any size that the server reads.
    case admit(connection: Int)
    /// Send a WebSocket ping behind what was sent, and hand on ``Input/probed`` when it is answered.
    case probe(connection: Int)
    /// Make the text of fragments, away from the server's actor, and hand it to ``ServerEngine/encoded(_:of:now:)``. A
    /// scope has one of these under way at a time. There are no fragments if only others are to have their turn.
    case encode(scope: Int, [SyncFragment])
    /// Call ``ServerEngine/judge(now:)`` when others have had their turn.
    case judge
    /// Make the session known to the engine of another channel, with ``ServerEngine/join(_:now:)``, and hand what was done
    /// to ``ServerEngine/joined(_:now:)``.
    case join(Join)
    /// Open or close a scope.
    case scope(ScopeStep)
  }

  enum Connection {
    /// No message was received yet. Indirect, since each frame looks at a copy, mostly of a session.
    indirect case fresh(params: [String: String], request: HTTPRequest?, deadline: Duration)
    /// The client has asked for a session, and the app is asked about it.
    case authenticating(Applicant)
    case session(ServerSession)
  }

  /// The work that is done a piece at a time, between which others have their turn, and the memory that there is for it.
  struct Work {
    /// The scopes of which a part of a state is being encoded, by number.
    var encoding: [Int: ScopeHost] = [:]
    /// The large change sets that are being judged.
    var judgements = JudgementQueue()
    /// The scopes with change sets that have begun and are not decided.
    let undecidedHosts = UndecidedHosts()
    /// The memory pressure of the process.
    var memory = MemoryPressure()
    /// The subscriptions that are sent at the end of this turn what their fetches have asked for, once each.
    private var fetched: [ObjectIdentifier: Subscription] = [:]

    /// Has a subscription sent what its fetch has asked for at the end of this turn.
    mutating func catchUp(on subscription: Subscription) {
      subscription.awaitsCatchUp = true
      fetched[ObjectIdentifier(subscription)] = subscription
    }

    /// Removes and returns these subscriptions, in the order of their sessions and scopes.
    mutating func takeFetched() -> [Subscription] {
      if fetched.isEmpty { return [] }
      defer { fetched = [:] }
      for subscription in fetched.values { subscription.awaitsCatchUp = false }
      return fetched.values.filter(\.isLive).sorted {
        ($0.session.number, $0.index) < ($1.session.number, $1.index)
      }
    }
  }

  let configuration: Configuration
  let hooks: Hooks
  let perform: (Action) -> Void
  // No access to those that are marked is open while other code runs: each is read, put in or taken out in a single step.
  @exclusivity(unchecked) var connections: [Int: Connection] = [:]
  var sessions: [String: ServerSession] = [:]
  var hosts: [ObjectIdentifier: ScopeHost] = [:]
  @exclusivity(unchecked) var now: Duration = .zero
  /// The date of the turn, once it was asked for; see ``dateOfTurn()``.
  @exclusivity(unchecked) private var date: Date??
  /// The numbers of the next session and of the next hosted scope.
  var next = (session: 1, scope: 0, question: 0)
  /// Sessions with something in their outbox.
  @exclusivity(unchecked) var waiting: [ServerSession] = []
  /// True while an input is handled, or what it leads to is sent. What observers of the app do meanwhile is sent behind
  /// that.
  @exclusivity(unchecked) var isHandling = false
  /// The scopes with change sets that their sessions of version 2 are told at the end of this turn.
  @exclusivity(unchecked) var hostsWithNews: [ScopeHost] = []
  /// The work that others interrupt.
  @exclusivity(unchecked) var work = Work()
  /// The actions that are performed behind all others of this turn.
  @exclusivity(unchecked) var lastActions: [Action] = []
  /// The scopes that are opened when sessions fetch them.
  var openScopes: OpenScopes
  /// The sessions, and the connections without one, that are counted by principals and addresses.
  var quotas = Quotas()

  package init(
    configuration: Configuration = Configuration(), hooks: Hooks,
    perform: @escaping (Action) -> Void
  ) {
    self.configuration = configuration
    self.hooks = hooks
    self.perform = perform
    openScopes = OpenScopes(limits: configuration.openScopes)
  }

  deinit {
    // Subscriptions and hosts know each other.
    for host in hosts.values {
      host.letGo()
      host.order.onLocalChanges = nil
    }
  }

  /// Returns the date for what clients have sent without one and is applied in this turn: all of it has the same.
  func dateOfTurn() -> Date? {
    if let date { return date }
    let made = hooks.date()
    date = .some(made)
    return made
  }

  /// Ends a turn: what is applied from here on has a later date.
  func forgetDate() { date = nil }

  package var sessionCount: Int { sessions.count }
  package var connectionCount: Int { connections.count }

  /// Does what is due at a time: sends pings, ends expired sessions and handshakes, and sends what waits.
  package func advance(to now: Duration) {
    self.now = now
    for (id, connection) in connections {
      switch connection {
      case .fresh(_, _, let deadline) where deadline <= now:
        refuse(id, .sessionEstablishTimedOut)
      case .authenticating(let applicant) where applicant.deadline <= now:
        warn("could not find out in time who has connected", on: id)
        refuse(id, .notNow("The server is too slow", retryAfter: .seconds(1)))
      case .fresh, .authenticating, .session: break
      }
    }
    for session in Array(sessions.values) {
      endIfExpired(session)
      if session.link.hasEnded { continue }
      if session.expiresAt <= now {
        end(session, code: 4097, reason: "")
        continue
      }
      refuseLateFetches(of: session)
      if let pingAt = session.link.pingAt, pingAt <= now {
        let checks = checks(for: session)
        session.checked.formUnion(checks.map(\.scopeIndex))
        var ping = session.ping()
        (ping.told, ping.checks) = (session.told, checks)
        session.link.put(.ping(ping))
        waiting.append(session)
        schedulePing(session)
      }
      resendIfDue(session)
      endsForOverflow(session)
    }
    forgetSeen()
    dropExpired()
    advanceCalls()
    advanceOpenScopes()
    for host in hosts.values { host.states.forget(unusedSince: now - .seconds(1)) }
    flush()
  }

  /// Ends every session and closes all connections, for a server that stops.
  package func stop() {
    // The app's last changes belong in the logs, too.
    for host in hosts.values { host.content.sealAll() }
    if !isHandling { flush() }
    for session in Array(sessions.values) { end(session, code: 1001, reason: "the server stops") }
    for id in connections.keys { perform(.close(connection: id, code: 1001, reason: "")) }
    connections = [:]
    quotas = Quotas()
    for host in hosts.values { host.end() }
    hosts = [:]
    openScopes = OpenScopes(limits: configuration.openScopes)
  }
}
