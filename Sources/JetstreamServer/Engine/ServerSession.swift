import Foundation
import Jetstream
import JetstreamWebSocket

/// The server's side of one session: what its client has been sent, and what the client has proved to have seen.
///
/// A session outlives its connections; see ``SessionLink``.
final class ServerSession {
  // In front: what is looked at for each change set that the session is told. It is mostly not in a cache by then. No
  // access to these is open while code runs that uses them: they are values, and the closures that their methods are
  // given read nothing of the session.
  /// The connection, and what goes out on it.
  @exclusivity(unchecked) var link: SessionLink
  /// The change sets of its scopes' streams that the client was sent and has not acknowledged.
  @exclusivity(unchecked) var waiting = StreamAmount()
  @exclusivity(unchecked) var channel: ReliableChannel
  @exclusivity(unchecked) var info: SessionInfo
  /// The version of the protocol that the session speaks.
  let version: Int
  /// True if the client rebases: it keeps its pending changes in front of what it is sent. Known by its version.
  let rebases: Bool
  /// The amounts that the client sends. Charging them calls a counter of limits, which reads nothing of the session.
  @exclusivity(unchecked) var traffic: ClientTraffic
  /// The scopes that the session has fetched and not left.
  let subscriptions = SubscriptionTable()
  /// The highest index received when the client was last asked to send missing messages again.
  var askedAt: Int?
  /// The work that the frame being handled asks for; nil if it asks for nothing.
  @exclusivity(unchecked) private var frameDemands: SessionDemands?
  /// The scopes whose digest the client was sent and which it has not reported to differ since.
  var checked: Set<Int> = []
  /// Tracks what a client of version 1 has received.
  @exclusivity(unchecked) var probe = ScriptProbe()
  /// The highest index sent when the client asked to resend, until it has resent its own messages.
  private var resumedAt: Int?
  @exclusivity(unchecked) var expiresAt: Duration
  /// The time at which the credentials of the session's principal expire; nil if they do not.
  var credentialsExpireAt: Duration?

  init(
    info: SessionInfo, version: Int, limit: ReliableChannel.Limit,
    limits: ServerLimits, connection: Int, expiresAt: Duration
  ) {
    self.info = info
    self.version = version
    rebases = version > 1 || SemanticVersion.names(SemanticVersion.rebase, in: info.version)
    // Old clients never fill a gap.
    self.channel = ReliableChannel(side: .server, acceptsGaps: version == 1, limit: limit)
    traffic = ClientTraffic(limits)
    link = SessionLink(connection: connection)
    probe.isPermitted = !rebases
    self.expiresAt = expiresAt
  }

  /// The number of the session on the server.
  var number: Int { info.number }

  /// The work that the frame being handled asks for.
  var demands: SessionDemands {
    get { frameDemands ?? SessionDemands() }
    set { frameDemands = newValue }
  }

  /// Removes and returns the work that the frame asks for; nil if it asks for nothing.
  func takeDemands() -> SessionDemands? {
    if case .none = frameDemands { return nil }
    defer { frameDemands = nil }
    return frameDemands
  }

  /// Numbers a message, adds it to the outbox of this turn and returns its index.
  @discardableResult
  func queue(_ message: Message) -> Int {
    let stamped = channel.stamp(message)
    link.put(stamped)
    return stamped.index
  }

  /// Returns a ping that acknowledges what was received and says what was sent.
  func ping() -> Ping {
    traffic.acknowledgement.acknowledged(upTo: channel.highestReceived)
    return Ping(ack: channel.highestReceived, sent: version > 1 ? channel.highestSent : nil)
  }

  /// The places up to which the client was sent the streams of scopes, if it has not acknowledged them. For subscriptions
  /// that have lapsed, the sequence that comes next: the client may have the last ones as replies, and fetches the scope
  /// in any case.
  var told: [Ping.Place] {
    subscriptions.inOrder.filter { $0.waiting.sets > 0 || $0.hasLapsed }.map {
      Ping.Place(scopeIndex: $0.index, sequence: $0.hasLapsed ? $0.host.sequence + 1 : $0.told)
    }
  }

  /// The sequences of the scopes of which the client gets everything, if it has not acknowledged all of it.
  private var latest: [Ping.Place] {
    subscriptions.inOrder.filter {
      $0.hasBegun && ($0.limit == nil || $0.hasLapsed)
        && ($0.waiting.sets > 0 || $0.told < $0.host.sequence)
    }.map { Ping.Place(scopeIndex: $0.index, sequence: $0.host.sequence) }
  }

  /// Returns the answer to a client that resumes the session: a ping, and the messages that it has not acknowledged.
  func resent() -> [Message] {
    var messages = channel.resent()
    guard version > 1, case .ping(var ping)? = messages.first else { return messages }
    ping.latest = latest
    messages[0] = .ping(ping)
    return messages
  }

  /// Takes from a ping what the client knew when it made the messages behind it.
  ///
  /// A ping that asks to resend proves nothing: the client's own lost messages follow, and they may be older than what
  /// it acknowledges. A client that rebases sends a plain ping behind them. Other clients have resent them all when
  /// they acknowledge something newer.
  func saw(_ ping: Ping) {
    if ping.resendMissing {
      resumedAt = channel.highestSent
    } else if resumedAt.map({ rebases || ping.ack > $0 }) ?? true {
      resumedAt = nil
      acknowledged(ping.ack)
      probe.isPermitted = !rebases
    }
  }

  /// Takes from the probe which messages the client has handled by now.
  func takeProbed(at now: Duration) {
    if let index = probe.takeRead(by: now) { acknowledged(index) }
  }

  /// Notes that the client has seen the messages up to `index`.
  private func acknowledged(_ index: Int) {
    for subscription in subscriptions.all { subscription.acknowledge(upTo: index) }
  }

  // MARK: Scopes

  /// Leaves what the client has not acknowledged in the streams of its scopes, to be sent again.
  func rewind() {
    for subscription in subscriptions.all { subscription.rewind() }
  }

  func subscribe(to host: ScopeHost, as client: NumberingClient?) -> Subscription {
    let subscription = Subscription(
      version > 1 ? host.audience.scopeIndex : subscriptions.nextIndex, of: self, host: host,
      client: client)
    subscriptions.add(subscription)
    return subscription
  }

  func leave(_ subscription: Subscription) {
    guard subscription.isLive else { return }
    subscriptions.remove(subscription)
    checked.remove(subscription.index)
    subscription.end()
  }

  // MARK: Telling

  /// Continues to send the state of a scope, as far as the channel has room. Until the last message, it pauses while
  /// `window` bytes of all kinds are not acknowledged, so that messages about other scopes get through. It also pauses
  /// until the text of the next part was made.
  ///
  /// - Returns: true if all of the state was sent.
  func tellState(of subscription: Subscription, window: Int) -> Bool {
    while var state = subscription.untoldState {
      guard !state.waitsForText else {
        subscription.host.states.wait(subscription)
        return false
      }
      let message = state.takeMessage(subscription.index)
      guard channel.hasRoom, channel.keptBytes < window || !message.more else { return false }
      let index = queue(.scopeState(message))
      if message.more {
        subscription.untoldState = state
      } else {
        // A client that acknowledges the last part has seen all that the state contains.
        subscription.untoldState = nil
        subscription.sent.append((index, subscription.told))
      }
    }
    return true
  }

  /// The answer of a session to accepted change sets.
  enum Acceptance {
    /// All of them go out on a connection on which nothing else waits.
    case alone(connection: Int)
    /// They are in the session's outbox.
    case queued
    /// The session has them, or is sent them later.
    case refused
  }

  /// Takes accepted change sets for a session that listens. A client that cannot keep up, or that has no connection, is
  /// sent them later.
  ///
  /// - Parameters:
  ///   - end: the place in the stream behind them.
  ///   - window: the amount that may be sent before the client acknowledges it.
  func offer(
    _ run: StreamRun, upTo end: StreamPlace, within window: ScopeStream.Limit,
    of subscription: Subscription
  ) -> Acceptance {
    guard let connection = link.openConnection, hasRoom(for: subscription, within: window) else {
      subscription.fallBehind()
      return .refused
    }
    let told = subscription.told
    guard told < end.sequence else { return .refused }
    subscription.tell(upTo: end)
    if told == run.start, link.outbox.isEmpty { return .alone(connection: connection) }
    for part in run.parts(after: told, upTo: end.sequence) { link.put(part) }
    return .queued
  }

  /// Sends a session that listens the change sets of this turn up to a sequence before the others of the turn, since
  /// something comes behind them.
  func tellNews(upTo sequence: Int, of subscription: Subscription) {
    guard subscription.told < sequence, subscription.listens,
      let news = subscription.host.audience.news
    else { return }
    let parts = news.parts(after: subscription.told, upTo: sequence)
    if parts.isEmpty { return }
    for part in parts { link.put(part) }
    subscription.tell(upTo: min(sequence, news.last))
  }

  /// Returns true if the session can be sent more of the stream of a scope. The window is that of the scope: a client that
  /// has paused a scope acknowledges nothing of it, and goes on with others.
  func hasRoom(for subscription: Subscription, within window: ScopeStream.Limit) -> Bool {
    let own = subscription.waiting
    return own.sets < window.sets && own.bytes < window.bytes
      && channel.hasRoom(beside: waiting.sets, bytes: waiting.bytes)
  }

  func tell(
    _ item: StreamItem, of subscription: Subscription, asOwn number: Int? = nil
  ) {
    link.put(item.message(scopeIndex: subscription.index, asOwn: number))
    subscription.tell(upTo: item.sequence)
  }

  /// Notes changes that a session without operations will be sent by ``tell(_:upTo:newcomers:of:)``.
  func announce(_ fragments: [SyncFragment], newcomers: Set<UUID>, of subscription: Subscription) {
    if rebases { return }
    subscription.values.unacknowledgedWrites.wait(
      for: Self.writes(in: fragments, newcomers: newcomers))
  }

  /// Returns the properties that changes write, except those of models that the client cannot have had before: it
  /// proves that it has received such a model by naming it.
  private static func writes(
    in fragments: [SyncFragment], newcomers: Set<UUID>
  ) -> [PropertyKey] {
    fragments.lazy.filter { $0.kind == .change || !newcomers.contains($0.uuid) }.flatMap {
      fragment in
      fragment.properties.map { PropertyKey(uuid: fragment.uuid, name: $0.key) }
    }
  }

  /// Sends a session without operations the changes that were announced to it.
  func tell(
    _ fragments: [SyncFragment], as text: FragmentsText? = nil, upTo sequence: Int,
    newcomers: Set<UUID>, of subscription: Subscription
  ) {
    var message = ScopeSync(scopeIndex: subscription.index, fragments: fragments)
    message.text = text
    let index = queue(.scopeSync(message))
    subscription.sent.append((index, sequence))
    guard !rebases else { return }
    if fragments.contains(where: Self.inserts) { probe.isWanted = true }
    subscription.values.unacknowledgedWrites.send(
      Self.writes(in: fragments, newcomers: newcomers), in: index)
  }

  /// Returns whether a fragment may bring elements to a collection.
  private static func inserts(_ fragment: SyncFragment) -> Bool {
    fragment.properties.contains {
      if case .array(let elements) = $0.value { !elements.isEmpty } else { false }
    }
  }

  func submitter(of sync: ScopeSync, to subscription: Subscription) -> ScopeOrder.Submitter {
    var received = 0
    if probe.received > 0 {
      let last = subscription.sent.last { $0.index <= probe.received }
      received = last?.sequence ?? subscription.proven
    }
    var author: StreamItem.Author?
    if let client = subscription.client, let number = sync.number {
      author = StreamItem.Author(client: client, number: number)
    }
    var origin = version > 1 ? sync.origin : ChangeOrigin()
    // The client's own claims about its author and identity are not believed.
    origin.author = info.principal.flatMap {
      $0.name.utf8.count <= ChangeOrigin.longestAuthor ? $0.name : nil
    }
    origin.client = subscription.numbering?.publicName
    return ScopeOrder.Submitter(
      session: number, proven: subscription.proven, rebases: rebases,
      missed: subscription.values.unacknowledgedWrites, received: received,
      usesOperations: version > 1, author: author, origin: origin,
      info: subscription.host.order.policy.rules == nil ? nil : info)
  }
}
