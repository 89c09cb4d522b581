import Foundation
import Jetstream
import JetstreamWebSocket

/// A client's session as the application sees it.
public struct SessionInfo: Sendable, Hashable {
  /// The token with which the client resumes the session. Whoever knows it can take the session over.
  public let token: String
  /// Headers and query parameters of the connection whose names begin with `x-jetstream-`; the rest
  /// of the name, in lower case, is the key.
  public let connectionParams: [String: String]
  /// What the client sent when it created the session.
  public let params: JSONValue
  /// The version that the client says it has.
  public let version: String
  /// Who the client is, in all its sessions; nil for one that does not number its change sets.
  public var client: UUID? = nil
  /// The request that has opened the connection on which the client created the session, with its headers and the
  /// address that it came from; nil for a connection that is not an HTTP upgrade.
  public var request: HTTPRequest? = nil
  /// The user, as ``Server/authorize`` has said.
  public internal(set) var author: String? = nil
}

/// One session: what its client has been told, and what it has proved to have seen.
final class ServerSession {
  let number: Int
  let info: SessionInfo
  /// The version of the protocol that the session speaks.
  let version: Int
  /// Whether the client keeps its pending changes in front of what it is told, as it says with its
  /// version.
  let rebases: Bool
  var channel: ReliableChannel
  /// What was acknowledged last, and how many bytes have come since.
  private(set) var acknowledgedIndex = 0
  var unacknowledgedBytes = 0
  /// The connection that the session uses now.
  var connection: Int?
  /// True once the engine has forgotten the session.
  var hasEnded = false
  /// The scopes that the session has fetched and not left, by their numbers.
  private(set) var subscriptions: [Int: Subscription] = [:]
  /// How many there have ever been.
  private var subscriptionCount = 0
  /// Messages of this turn, which go out in one frame.
  var outbox: [Message] = []
  /// The highest index that was handed to the current connection or an earlier one.
  var transmitted = 0
  /// Which scope is the first to be told what has waited, when there is room again.
  var turn = 0
  /// After a resume, nothing is sent until the client has said something: normally what it has seen.
  var isHeld = false
  /// What had been received when the client was asked to send again what is missing.
  var askedAt: Int?
  /// What the frame that is being handled asks for.
  var demands = Demands()
  /// True if the client has asked for what it has not received, and has not been answered.
  var wantsResend = false
  /// How often it may be answered.
  var resends = ResendAllowance()
  /// The scopes whose digest the client was told and has not called different since.
  var checked: Set<Int> = []
  /// Finds out what a client of version 1 has received.
  var probe = ScriptProbe()
  /// What had been sent when the client asked to resend, until it has resent its own messages.
  private var resumedAt: Int?
  var expiresAt: Duration
  var pingAt: Duration?

  init(
    number: Int, info: SessionInfo, version: Int, limit: ReliableChannel.Limit,
    expiresAt: Duration
  ) {
    self.number = number
    self.info = info
    self.version = version
    rebases = version > 1 || SemanticVersion.names(SemanticVersion.rebase, in: info.version)
    // Old clients never fill a gap.
    self.channel = ReliableChannel(side: .server, acceptsGaps: version == 1, limit: limit)
    probe.isPermitted = !rebases
    self.expiresAt = expiresAt
  }

  /// Numbers a message and puts it into the frame of this turn. Gives its index.
  @discardableResult
  func queue(_ message: Message) -> Int {
    let stamped = channel.stamp(message)
    outbox.append(stamped)
    return stamped.index
  }

  /// A ping that acknowledges, and says what was sent.
  func ping() -> Ping {
    (acknowledgedIndex, unacknowledgedBytes) = (channel.highestReceived, 0)
    return Ping(ack: channel.highestReceived, sent: version > 1 ? channel.highestSent : nil)
  }

  /// Takes what a ping proves of what the client knew when it made the messages behind it.
  ///
  /// A ping that asks to resend proves nothing: the client's own lost messages follow, and they may
  /// be older than what it acknowledges. A client that rebases sends a plain ping behind them; of
  /// others it is known that they are through when they acknowledge something newer.
  func saw(_ ping: Ping) {
    if ping.resendMissing {
      resumedAt = channel.highestSent
    } else if resumedAt.map({ rebases || ping.ack > $0 }) ?? true {
      resumedAt = nil
      acknowledged(ping.ack)
      probe.isPermitted = !rebases
    }
  }

  /// Takes what a probe proves by now.
  func takeProbed(at now: Duration) {
    if let index = probe.takeRead(by: now) { acknowledged(index) }
  }

  /// The client has seen our messages up to `index`.
  private func acknowledged(_ index: Int) {
    for subscription in subscriptions.values { subscription.acknowledge(upTo: index) }
  }

  // MARK: Scopes

  /// Whether the session ever had a scope.
  var hasFetched: Bool { subscriptionCount > 0 }

  /// The scopes in the order in which the session has fetched them.
  var inOrder: [Subscription] { subscriptions.values.sorted { $0.index < $1.index } }

  func subscription(to host: ScopeHost) -> Subscription? {
    subscriptions.values.first { $0.host === host }
  }

  func subscribe(to host: ScopeHost, as client: UUID?) -> Subscription {
    let subscription = Subscription(subscriptionCount, of: self, host: host, client: client)
    subscriptionCount += 1
    subscriptions[subscription.index] = subscription
    return subscription
  }

  func leave(_ subscription: Subscription) {
    guard subscription.isLive else { return }
    subscriptions[subscription.index] = nil
    subscription.end()
  }

  // MARK: Telling

  /// Goes on telling the state of a scope, in messages of about `bytes`, as far as there is room. Until its
  /// last message, it leaves off when `window` bytes of all kinds are under way: what other scopes have to tell
  /// gets through.
  ///
  /// - Returns: whether all of it is told.
  func tellState(of subscription: Subscription, bytes: Int, window: Int) -> Bool {
    while var state = subscription.untoldState {
      let message = state.takeMessage(subscription.index, bytes: bytes)
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

  /// Tells a session that listens what was accepted. A client that cannot keep up, or that is not there, is told
  /// later.
  ///
  /// - Returns: whether it is told now.
  func offer(_ item: StreamItem, of subscription: Subscription) -> Bool {
    guard channel.hasRoom, connection != nil, !isHeld else {
      subscription.fallBehind()
      return false
    }
    tell(item, of: subscription)
    return true
  }

  /// Answers a set, behind everything that is in front of it in the order; but at once where the client does
  /// not want to be told of that.
  func answer(_ reply: ScopeSyncReply, after sequence: Int, of subscription: Subscription) {
    if subscription.limit != nil, subscription.untoldState == nil {
      queue(.scopeSyncReply(reply))
    } else if subscription.isBehind {
      subscription.later.append((sequence, reply))
    } else {
      tell(reply, after: sequence, of: subscription)
    }
  }

  /// Goes on telling what has waited, as far as there is room.
  ///
  /// - Parameters:
  ///   - items: all that came after what the session was told.
  ///   - last: the number of the last of them that may be told.
  func catchUp(_ items: some Sequence<StreamItem>, upTo last: Int, of subscription: Subscription) {
    let client = subscription.client
    for item in items {
      guard item.sequence <= last else { break }
      answerLater(before: item.sequence, of: subscription)
      guard channel.hasRoom else { return }
      if let next = subscription.later.first?.reply, next.sequence == item.sequence {
        answerLater(before: item.sequence + 1, of: subscription)
      } else {
        let isOwn = client != nil && item.author?.client == client
        let isDecided = isOwn && item.sequence <= subscription.ownUpTo
        tell(item, of: subscription, asOwn: isDecided ? item.author?.number : nil)
      }
    }
    // Who wants to be told no more than this is answered at once.
    answerLater(before: subscription.limit == nil ? last + 1 : .max, of: subscription)
    subscription.catchUp()
  }

  /// Sends the replies that have waited for what is in front of a number.
  private func answerLater(before sequence: Int, of subscription: Subscription) {
    let due = subscription.later.prefix { $0.after < sequence }
    if due.isEmpty { return }
    subscription.later.removeFirst(due.count)
    for (after, reply) in due { tell(reply, after: after, of: subscription) }
  }

  private func tell(_ reply: ScopeSyncReply, after sequence: Int, of subscription: Subscription) {
    subscription.sent.append((queue(.scopeSyncReply(reply)), sequence))
    if let own = reply.sequence { subscription.told = own }
  }

  private func tell(_ item: StreamItem, of subscription: Subscription, asOwn number: Int? = nil) {
    var message = ScopeSync(scopeIndex: subscription.index, fragments: item.fragments)
    message.sequence = item.sequence
    message.number = number
    message.origin = item.origin
    subscription.sent.append((queue(.scopeSync(message)), item.sequence))
    subscription.told = item.sequence
  }

  /// Notes changes that a session is going to be told of with ``tell(_:upTo:newcomers:of:)``, if it knows no
  /// operations.
  func announce(_ fragments: [SyncFragment], newcomers: Set<UUID>, of subscription: Subscription) {
    if rebases { return }
    subscription.unacknowledgedWrites.wait(
      for: Self.writes(in: fragments, newcomers: newcomers))
  }

  /// The properties that changes write, without those that come with a model which the client cannot have had
  /// before: it proves that it was told by naming the model.
  private static func writes(
    in fragments: [SyncFragment], newcomers: Set<UUID>
  ) -> [PropertyKey] {
    fragments.lazy.filter { $0.kind == .change || !newcomers.contains($0.uuid) }.flatMap {
      fragment in
      fragment.properties.map { PropertyKey(uuid: fragment.uuid, name: $0.key) }
    }
  }

  /// Tells a session that knows no operations of changes that were announced to it.
  func tell(
    _ fragments: [SyncFragment], upTo sequence: Int, newcomers: Set<UUID>,
    of subscription: Subscription
  ) {
    let index = queue(.scopeSync(ScopeSync(scopeIndex: subscription.index, fragments: fragments)))
    subscription.sent.append((index, sequence))
    guard !rebases else { return }
    if fragments.contains(where: Self.inserts) { probe.isWanted = true }
    subscription.unacknowledgedWrites.send(
      Self.writes(in: fragments, newcomers: newcomers), in: index)
  }

  /// Whether a fragment may bring elements to a collection.
  private static func inserts(_ fragment: SyncFragment) -> Bool {
    fragment.properties.contains {
      if case .array(let elements) = $0.value { !elements.isEmpty } else { false }
    }
  }

  /// A name of a client for others: with the client's own, they could pass themselves off as it.
  private static func publicName(of client: UUID) -> UUID {
    var bytes = Array("Jetstream client \(client.wireText)".utf8)
    bytes = Array(SHA1.digest(bytes)[..<16])
    // Version 5: a name made of a digest.
    (bytes[6], bytes[8]) = (bytes[6] & 0x0F | 0x50, bytes[8] & 0x3F | 0x80)
    return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  func submitter(of sync: ScopeSync, to subscription: Subscription) -> ScopeHost.Submitter {
    var result = ScopeHost.Submitter(
      session: number, proven: subscription.proven, rebases: rebases,
      missed: subscription.unacknowledgedWrites.keys)
    if probe.received > 0 {
      let last = subscription.sent.last { $0.index <= probe.received }
      result.received = last?.sequence ?? subscription.proven
    }
    result.usesOperations = version > 1
    if let client = subscription.client, let number = sync.number {
      result.author = StreamItem.Author(client: client, number: number)
    }
    if version > 1 { result.origin = sync.origin }
    // What a client says of these is not believed.
    result.origin.author = info.author.flatMap {
      $0.utf8.count <= ChangeOrigin.longestAuthor ? $0 : nil
    }
    result.origin.client = subscription.client.map(Self.publicName)
    return result
  }
}
