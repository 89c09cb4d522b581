/// The client's side of a session: its channels, and what the server has said in the frame that is being handled.
///
/// A session outlives its connections and ends as one value. The engine has such a value also while there is no
/// session; then `token` is nil.
package struct ClientSession {
  /// The token with which the next connection resumes the session.
  package private(set) var token: String?
  /// The version of the protocol that the session uses. Without a session, the version of the last one.
  package private(set) var version = 1
  /// Channel 0, which every session has.
  private var first = ClientChannel()
  /// The other channels in use, by number.
  private var others: [Int: ClientChannel] = [:]
  /// The names of scopes that the app left in this session of version 1, whose server goes on sending their changes.
  private var leftNames: Set<String> = []
  /// The places of the server that it has sent in the current frame.
  private var told: [Ping.Place] = []
  /// The digests that the server has sent in the current frame.
  private var checks: [Ping.Check] = []

  mutating func begin(_ token: String, version: Int) {
    (self.token, self.version) = (token, version)
  }

  mutating func end() {
    let version = version
    self = ClientSession()
    self.version = version
  }

  // MARK: Channels

  /// True if only channel 0 is in use.
  var hasOneChannel: Bool { others.isEmpty }

  /// The numbers of the channels in use, in order.
  var openChannels: [Int] { others.isEmpty ? [0] : [0] + others.keys.sorted() }

  /// A channel in use. Others, such as those of a session that has just ended, are empty, and keep nothing.
  subscript(channel: Int) -> ClientChannel {
    get { channel == 0 ? first : others[channel] ?? ClientChannel() }
    _modify {
      if channel == 0 {
        yield &first
      } else if let place = others.index(forKey: channel) {
        yield &others.values[place]
      } else {
        var unused = ClientChannel()
        yield &unused
      }
    }
  }

  /// Returns true if a channel is in use.
  func uses(_ channel: Int) -> Bool { channel == 0 || others[channel] != nil }

  /// The largest number of channels besides channel 0: no server has as many threads.
  private static let mostChannels = 255

  /// Uses a channel from now on, until the end of the session. Returns false if these would be too many.
  mutating func open(_ channel: Int) -> Bool {
    if uses(channel) { return true }
    guard others.count < Self.mostChannels else { return false }
    others[channel] = ClientChannel()
    return true
  }

  /// True while a new connection waits for what the server has sent before.
  var isResuming: Bool { first.isResuming || others.values.contains { $0.isResuming } }

  /// Returns true if a replica waits for the answer to its request.
  func isAsking(for replica: Replica) -> Bool {
    first.requests.contains(replica)
      || others.values.contains { $0.requests.contains(replica) }
  }

  /// Takes note that a replica ends: an answer to its request is given back when it arrives.
  mutating func forgetRequests(of replica: Replica) {
    for channel in openChannels { self[channel].requests.leave(replica) }
  }

  /// True if some replica waits for the answer to its request.
  var isAsking: Bool {
    !first.requests.isEmpty || others.values.contains { !$0.requests.isEmpty }
  }

  /// Returns the replica for which a message asks the server for a scope; nil if the message is another one.
  func replica(requestedBy index: Int, in channel: Int) -> Replica? {
    self[channel].requests.replica(of: index)
  }

  // MARK: Acknowledging

  /// Returns the message with which a new connection resumes a channel. Its acknowledgement does not cover the change sets
  /// that are repeated after it.
  mutating func resume(_ channel: Int, _ seen: [Ping.Place]) -> Message {
    self[channel].early.acknowledged(upTo: 0)
    self[channel].isResuming = true
    var ping = Ping(ack: self[channel].messages.highestReceived, resendMissing: true)
    ping.seen = seen
    return .ping(ping)
  }

  /// Returns a ping that acknowledges the messages of a channel up to `index`, and the change sets up to the places `seen`.
  mutating func ping(
    in channel: Int, acknowledging index: Int, _ seen: [Ping.Place] = [],
    _ differences: [Ping.Difference] = []
  ) -> Message {
    self[channel].early.acknowledged(upTo: index)
    var ping = Ping(ack: index, sent: version > 1 ? self[channel].messages.highestSent : nil)
    (ping.seen, ping.differences) = (seen, differences)
    return .ping(ping)
  }

  /// Returns a ping that acknowledges the messages of a channel up to `index`; none if the server has been told of them.
  mutating func acknowledgement(in channel: Int, upTo index: Int) -> [Message] {
    index > self[channel].early.index ? [ping(in: channel, acknowledging: index)] : []
  }

  // MARK: Pings of the server

  /// Returns the index of the last message that the server has sent in a channel, according to a ping, if it has not
  /// arrived.
  func lastMissing(_ ping: Ping, in channel: Int) -> Int? {
    guard version > 1, let sent = ping.sent, sent > self[channel].messages.highestReceived else {
      return nil
    }
    return sent
  }

  /// Handles a ping, and returns the messages that it asks the client to repeat.
  mutating func receive(_ ping: Ping, in channel: Int) -> [Message] {
    checks += ping.checks
    told += ping.told
    if ping.resendMissing { self[channel].isResuming = false }
    return self[channel].messages.receive(ping)
  }

  /// Removes and returns the places up to which the server says it has sent streams.
  mutating func takeTold() -> [Ping.Place] {
    defer { told = [] }
    return told
  }

  /// Removes and returns the digests of the current frame.
  mutating func takeChecks() -> [Ping.Check] {
    defer { checks = [] }
    return checks
  }

  // MARK: Scopes

  /// The number of scopes that may have as many change sets on their way as the limit says.
  private static let fullScopes = 4

  /// Returns true if one more change set of a scope may be sent, while `own` ones of the scope and `others` of all
  /// other scopes are on their way.
  ///
  /// The server has limits for a session, and for what it reads of a connection. So all scopes together have as many as
  /// four scopes may have, and each of them one in any case: scopes that take long cannot keep others from sending.
  func hasRoom(behind own: Int, others: Int, limit: ReliableChannel.Limit) -> Bool {
    if own + others == 0 { return true }
    // A server of version 1 acknowledges only with its pings, and would hold everything up until the next one.
    guard version == 1 || keptBytes < limit.bytes else { return false }
    guard own > 0 else { return true }
    // A limit may be the highest number that there is.
    let (all, isUnlimited) = limit.messages.multipliedReportingOverflow(by: Self.fullScopes)
    return own < limit.messages && (isUnlimited || own + others < all)
  }

  /// The approximate number of bytes in the messages that the server has not acknowledged.
  private var keptBytes: Int {
    others.values.reduce(first.messages.keptBytes) { $0 + $1.messages.keptBytes }
  }

  /// Notes that the app has left a scope.
  mutating func noteLeft(_ name: String) {
    if version == 1, token != nil { leftNames.insert(name) }
  }

  /// Returns true if the app has left a scope of this name, and the server goes on sending its changes.
  func stillSends(_ name: String) -> Bool { leftNames.contains(name) }

  /// Returns the message that ends a subscription; nil if the server does not know such a message.
  mutating func leave(_ scopeIndex: Int, in channel: Int) -> Message? {
    guard version > 1, token != nil else { return nil }
    return self[channel].messages.stamp(.scopeLeave(ScopeLeave(scopeIndex: scopeIndex)))
  }
}
