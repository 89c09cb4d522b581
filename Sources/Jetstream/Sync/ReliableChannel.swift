/// Numbers the messages of one session, keeps copies until they are acknowledged, and tells new
/// arrivals from repeated ones.
///
/// One value on each side of a session, outliving its connections. It does no I/O and knows no
/// time: the owner sends what it returns. Both directions count 1, 2, 3, ... on their own; index 0
/// marks ephemeral messages, which are neither kept nor acknowledged: pings and the handshake.
package struct ReliableChannel: Sendable {
  /// Which side of a session the channel serves. The old peers differ, and the difference shows on
  /// the wire.
  package enum Side: Sendable {
    /// Counts a gap as lost messages, and answers a request to resend with the messages alone.
    case client
    /// Takes a gap as it comes, since old clients never fill one, and answers a request to resend
    /// with a ping of its own in front, which asks the client to resend too.
    case server
  }

  /// An amount of messages: how much may wait for an acknowledgement, or is left without one.
  package struct Limit: Sendable, Hashable {
    /// The largest number of messages.
    package var messages: Int
    /// The largest size of all messages, in bytes, roughly.
    package var bytes: Int

    /// Makes a limit: by default 10,000 messages and 64 MiB.
    package init(messages: Int = 10_000, bytes: Int = 64 << 20) {
      self.messages = messages
      self.bytes = bytes
    }

    /// How much is left without an acknowledgement where nothing else is said: a small part of what a peer
    /// keeps, so that its session does not end although everything arrives.
    package static let acknowledgement = Limit(messages: 256, bytes: 1 << 20)
  }

  /// What to do with a message that arrived.
  package enum Arrival: Sendable, Hashable {
    /// It is new: process it.
    case process
    /// It was here before: drop it, without a reply.
    case duplicate
    /// Messages from `expected` on are missing. The message was not counted; drop it, and get the
    /// missing ones by reconnecting.
    case gap(expected: Int)
  }

  private let side: Side
  private let acceptsGaps: Bool
  private let limit: Limit
  private var unacknowledged: [(message: Message, size: Int)] = []

  /// The highest number given to an outgoing message, 0 for none.
  package private(set) var highestSent = 0

  /// The highest number that the peer has acknowledged.
  package private(set) var highestAcknowledged = 0

  /// The highest number received from the peer, 0 for none.
  package private(set) var highestReceived = 0

  /// Roughly how many bytes the kept messages take on the wire.
  package private(set) var keptBytes = 0

  /// Makes the channel of a new session. A server accepts gaps and a client does not, unless
  /// `acceptsGaps` says otherwise.
  package init(side: Side, acceptsGaps: Bool? = nil, limit: Limit = Limit()) {
    self.side = side
    self.acceptsGaps = acceptsGaps ?? (side == .server)
    self.limit = limit
  }

  // MARK: Outgoing

  /// The messages that the peer has not acknowledged, in the order of their numbers.
  package var kept: [Message] { unacknowledged.map(\.message) }

  /// Whether more is kept than the limit allows; one message always may. The session of a peer that lets this happen should
  /// be ended: it never acknowledges, or has been away for too long.
  package var isOverflowing: Bool {
    exceeds(limit)
  }

  /// Whether more is kept than `limit` allows; one message always may.
  package func exceeds(_ limit: Limit) -> Bool {
    unacknowledged.count > 1 && (unacknowledged.count > limit.messages || keptBytes > limit.bytes)
  }

  /// Whether less than half of what the limit allows is kept. Who can wait with what it has to say should
  /// do so otherwise.
  package var hasRoom: Bool {
    unacknowledged.count < max(1, limit.messages / 2) && keptBytes < max(1, limit.bytes / 2)
  }

  /// Numbers a message that is about to be sent and keeps a copy. Pings and messages of the
  /// handshake get index 0 and are not kept.
  package mutating func stamp(_ message: Message) -> Message {
    var message = message
    switch message {
    case .ping, .sessionCreate, .sessionCreateReply:
      message.index = 0
    default:
      highestSent += 1
      message.index = highestSent
      let size = message.roughSize
      unacknowledged.append((message, size))
      keptBytes += size
    }
    return message
  }

  /// Forgets the kept messages up to a number that the peer has acknowledged, in time linear in
  /// what was kept.
  ///
  /// - Returns: False, having done nothing, if no message with that number was ever sent.
  @discardableResult
  package mutating func acknowledge(upTo index: Int) -> Bool {
    guard index <= highestSent, index >= 0 else { return false }
    guard index > highestAcknowledged else { return true }
    let count = index - highestAcknowledged
    for entry in unacknowledged.prefix(count) { keptBytes -= entry.size }
    unacknowledged.removeFirst(count)
    highestAcknowledged = index
    return true
  }

  // MARK: Incoming

  /// Judges the number of an arriving message, and counts the message if it is to be processed.
  package mutating func receive(index: Int) -> Arrival {
    if index == 0 { return .process }
    if index <= highestReceived { return .duplicate }
    if index > highestReceived + 1, !acceptsGaps { return .gap(expected: highestReceived + 1) }
    highestReceived = index
    return .process
  }

  /// Handles a ping: forgets what it acknowledges and returns what to send, in this order and,
  /// from a server, in one frame. Empty unless the ping asks to resend.
  package mutating func receive(_ ping: Ping) -> [Message] {
    acknowledge(upTo: ping.ack)
    return ping.resendMissing ? resent() : []
  }

  /// What answers a request to resend, in time linear in what is kept.
  package func resent() -> [Message] {
    switch side {
    case .client: kept
    case .server: [ping(resendMissing: true)] + kept
    }
  }

  /// A ping that acknowledges everything received so far.
  package func ping(resendMissing: Bool) -> Message {
    .ping(Ping(ack: highestReceived, resendMissing: resendMissing))
  }
}
