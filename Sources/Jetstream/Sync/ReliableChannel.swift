/// Numbers the messages of one session, keeps copies until they are acknowledged, and distinguishes new messages
/// from repeated ones.
///
/// Each side of a session has one value, which outlives its connections. It does no I/O and does not depend on time:
/// the owner sends what it returns. Each direction counts 1, 2, 3, ... on its own; index 0 marks ephemeral messages,
/// which are neither kept nor acknowledged: pings and the handshake.
package struct ReliableChannel: Sendable {
  /// The side of a session that a channel serves. The old peers behave differently on the two sides, and the
  /// difference shows on the wire.
  package enum Side: Sendable {
    /// Treats a gap as lost messages, and answers a request to resend with the messages alone.
    case client
    /// Accepts gaps, since old clients never fill one, and answers a request to resend with a ping of its own in
    /// front, which asks the client to resend too.
    case server
  }

  /// A limit for the messages that may wait for an acknowledgement, or that are left unacknowledged.
  package struct Limit: Sendable, Hashable {
    /// The largest number of messages.
    package var messages: Int
    /// The largest size of all messages, in bytes, approximately.
    package var bytes: Int

    /// Creates a limit: by default 10,000 messages and 64 MiB.
    package init(messages: Int = 10_000, bytes: Int = 64 << 20) {
      self.messages = messages
      self.bytes = bytes
    }

    /// The default limit for what is left unacknowledged: a small part of what a peer keeps, so that its session
    /// does not end although everything arrives.
    package static let acknowledgement = Limit(messages: 256, bytes: 1 << 20)
  }

  /// The treatment of a message that has arrived.
  package enum Arrival: Sendable, Hashable {
    /// The message is new: process it.
    case process
    /// The message has arrived before: drop it, without a reply.
    case duplicate
    /// Messages from `expected` on are missing. The message was not counted; drop it, and reconnect to get the
    /// missing ones.
    case gap(expected: Int)
  }

  private let side: Side
  private let acceptsGaps: Bool
  private let limit: Limit
  private var unacknowledged: [(message: Message, size: Int)] = []

  /// The highest index given to an outgoing message, 0 for none.
  package private(set) var highestSent = 0

  /// The highest index that the peer has acknowledged.
  package private(set) var highestAcknowledged = 0

  /// The highest index received from the peer, 0 for none.
  package private(set) var highestReceived = 0

  /// The approximate number of bytes that the kept messages take on the wire.
  package private(set) var keptBytes = 0

  /// Creates the channel of a new session. A server accepts gaps and a client does not, unless `acceptsGaps` says
  /// otherwise.
  package init(side: Side, acceptsGaps: Bool? = nil, limit: Limit = Limit()) {
    self.side = side
    self.acceptsGaps = acceptsGaps ?? (side == .server)
    self.limit = limit
  }

  // MARK: Outgoing

  /// The messages that the peer has not acknowledged, in the order of their indexes.
  package var kept: [Message] { unacknowledged.map(\.message) }

  /// True if more is kept than the limit allows; see ``exceeds(_:)``. The session of such a peer should be ended: it
  /// never acknowledges, or has been away for too long.
  package var isOverflowing: Bool {
    exceeds(limit)
  }

  /// Returns true if more is kept than `limit` allows. One message always may be, and one that has more bytes than the
  /// limit by itself does not count: no peer could otherwise be sent it together with others.
  ///
  /// Cost: O(1); linear in the number of kept messages while they have more bytes than the limit.
  package func exceeds(_ limit: Limit) -> Bool {
    guard unacknowledged.count > 1 else { return false }
    if unacknowledged.count > limit.messages { return true }
    guard keptBytes > limit.bytes else { return false }
    let largest = unacknowledged.reduce(0) { max($0, $1.size) }
    return largest <= limit.bytes || keptBytes - largest > limit.bytes
  }

  /// True if less than half of what the limit allows is kept. If not, a sender that can wait should wait.
  package var hasRoom: Bool { hasRoom(beside: 0, bytes: 0) }

  /// Returns true if less than half of what the limit allows is kept, together with messages that the channel does not
  /// keep.
  package func hasRoom(beside messages: Int, bytes: Int) -> Bool {
    unacknowledged.count + messages < max(1, limit.messages / 2)
      && keptBytes + bytes < max(1, limit.bytes / 2)
  }

  /// Gives a message that is about to be sent its index, and keeps a copy. Pings and messages of the handshake get
  /// index 0 and are not kept.
  package mutating func stamp(_ message: Message) -> Message {
    var message = message
    switch message {
    case .ping, .sessionCreate, .sessionCreateReply:
      message.index = 0
    default:
      highestSent += 1
      if message.index != highestSent { message.index = highestSent }
      let size = message.roughSize
      unacknowledged.append((message, size))
      keptBytes += size
    }
    return message
  }

  /// Puts another message in the place of the one that was stamped last, which has its index and is still kept.
  package mutating func replaceLast(with message: Message) {
    let last = unacknowledged.count - 1
    precondition(
      last >= 0 && message.index == highestSent,
      "The message that takes the place of the last one has its index, and that one is kept.")
    let size = message.roughSize
    keptBytes += size - unacknowledged[last].size
    unacknowledged[last] = (message, size)
  }

  /// Drops the kept messages up to an index that the peer has acknowledged, in time linear in the number of kept
  /// messages.
  ///
  /// - Returns: false, having done nothing, if no message with that index was ever sent.
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

  /// Puts another message in the place of each kept one for which `isWithdrawn` returns true: it has the same index, so that
  /// the peer misses nothing, and is sent in its place if the peer has to be sent that again.
  package mutating func replaceKept(
    where isWithdrawn: (Message) -> Bool, with other: Message
  ) {
    for place in unacknowledged.indices where isWithdrawn(unacknowledged[place].message) {
      var message = other
      message.index = unacknowledged[place].message.index
      let size = message.roughSize
      keptBytes += size - unacknowledged[place].size
      unacknowledged[place] = (message, size)
    }
  }

  // MARK: Incoming

  /// Decides what to do with an arriving message, and counts the message if it is to be processed.
  package mutating func receive(index: Int) -> Arrival {
    if index == 0 { return .process }
    if index <= highestReceived { return .duplicate }
    if index > highestReceived + 1, !acceptsGaps { return .gap(expected: highestReceived + 1) }
    highestReceived = index
    return .process
  }

  /// Handles a ping: drops the messages that it acknowledges, and returns the messages to send, in this order and,
  /// from a server, in one frame. Empty unless the ping asks to resend.
  package mutating func receive(_ ping: Ping) -> [Message] {
    acknowledge(upTo: ping.ack)
    return ping.resendMissing ? resent() : []
  }

  /// Returns the answer to a request to resend, in time linear in the number of kept messages.
  package func resent() -> [Message] {
    switch side {
    case .client: kept
    case .server: [ping(resendMissing: true)] + kept
    }
  }

  /// Returns a ping that acknowledges everything received so far.
  package func ping(resendMissing: Bool) -> Message {
    .ping(Ping(ack: highestReceived, resendMissing: resendMissing))
  }
}
