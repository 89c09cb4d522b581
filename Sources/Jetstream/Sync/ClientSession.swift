/// The client's side of a session: the messages of both sides, what was acknowledged, and the requests for scopes.
///
/// A session outlives its connections and ends as one value. The engine has such a value also while there is no
/// session; then `token` is nil.
package struct ClientSession {
  /// The token with which the next connection resumes the session.
  package private(set) var token: String?
  /// The version of the protocol that the session uses. Without a session, the version of the last one.
  package private(set) var version = 1
  var channel = ReliableChannel(side: .client)
  /// The requests for scopes.
  var requests = ScopeRequests()
  /// The names of scopes that the app left in this session of version 1, whose server goes on sending their changes.
  private var leftNames: Set<String> = []
  /// The places of the server that it has sent in the current frame.
  private var told: [Ping.Place] = []
  /// The digests that the server has sent in the current frame.
  private var checks: [Ping.Check] = []
  /// The acknowledgements that the client has sent.
  private var early = EarlyAcknowledgement()

  mutating func begin(_ token: String, version: Int) {
    (self.token, self.version) = (token, version)
  }

  mutating func end() {
    let version = version
    self = ClientSession()
    self.version = version
  }

  // MARK: Acknowledging

  /// Returns the message with which a new connection resumes the session. Its acknowledgement does not cover the
  /// change sets that are repeated after it.
  mutating func resume(_ seen: [Ping.Place]) -> Message {
    early.acknowledged(upTo: 0)
    var ping = Ping(ack: channel.highestReceived, resendMissing: true)
    ping.seen = seen
    return .ping(ping)
  }

  /// Notes that bytes were received or sent.
  mutating func note(bytes: Int) { early.note(bytes: bytes) }

  /// Returns a ping that acknowledges the messages up to `index`, and the change sets up to the places `seen`.
  mutating func ping(
    acknowledging index: Int, _ seen: [Ping.Place] = [], _ differences: [Ping.Difference] = []
  ) -> Message {
    early.acknowledged(upTo: index)
    var ping = Ping(ack: index, sent: version > 1 ? channel.highestSent : nil)
    (ping.seen, ping.differences) = (seen, differences)
    return .ping(ping)
  }

  /// Returns a ping that acknowledges the messages up to `index`; none if the server has been told of them.
  mutating func acknowledgement(upTo index: Int) -> [Message] {
    index > early.index ? [ping(acknowledging: index)] : []
  }

  /// Returns true if so much has arrived that the client acknowledges the messages up to `index` and `sets` change sets
  /// without waiting for the next ping.
  func isAcknowledgementDue(
    upTo index: Int, sets: Int, limit: ReliableChannel.Limit
  ) -> Bool {
    early.isDue(at: index, others: sets, limit: limit)
  }

  // MARK: Pings of the server

  /// Returns the index of the last message that the server has sent, according to a ping, if it has not arrived.
  func lastMissing(_ ping: Ping) -> Int? {
    guard version > 1, let sent = ping.sent, sent > channel.highestReceived else { return nil }
    return sent
  }

  /// Handles a ping, and returns the messages that it asks the client to repeat.
  mutating func receive(_ ping: Ping) -> [Message] {
    checks += ping.checks
    told += ping.told
    return channel.receive(ping)
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

  /// Returns true if one more change set may be sent behind `count` undecided ones of its scope.
  func hasRoom(behind count: Int, limit: ReliableChannel.Limit) -> Bool {
    if count == 0 { return true }
    return count < limit.messages && (version == 1 || channel.keptBytes < limit.bytes)
  }

  /// Notes that the app has left a scope.
  mutating func noteLeft(_ name: String) {
    if version == 1, token != nil { leftNames.insert(name) }
  }

  /// Returns true if the app has left a scope of this name, and the server goes on sending its changes.
  func stillSends(_ name: String) -> Bool { leftNames.contains(name) }

  /// Returns the message that ends a subscription; nil if the server does not know such a message.
  mutating func leave(_ scopeIndex: Int) -> Message? {
    guard version > 1, token != nil else { return nil }
    return channel.stamp(.scopeLeave(ScopeLeave(scopeIndex: scopeIndex)))
  }
}
