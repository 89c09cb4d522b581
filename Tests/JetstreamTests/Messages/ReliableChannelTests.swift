import Testing

@testable import Jetstream

@Suite("Reliable channel", .paced)
struct ReliableChannelTests {
  private let sync = Message.scopeSync(ScopeSync(scopeIndex: 0, fragments: []))

  private func numbered(_ index: Int) -> Message {
    .scopeSync(ScopeSync(index: index, scopeIndex: 0, fragments: []))
  }

  private func ping(_ ack: Int, resend: Bool = false) -> Ping {
    Ping(ack: ack, resendMissing: resend)
  }

  // MARK: Numbering and acknowledgement

  @Test(
    "Both sides count from 1 without gaps",
    arguments: [
      ReliableChannel.Side.client, .server,
    ])
  func numbering(side: ReliableChannel.Side) {
    var channel = ReliableChannel(side: side)
    #expect((1...5).map { _ in channel.stamp(sync).index } == [1, 2, 3, 4, 5])
    #expect(channel.kept == (1...5).map(numbered))
    #expect(channel.highestSent == 5)
  }

  @Test("Handshake and pings have index 0, take no number and are not kept")
  func ephemeral() {
    var channel = ReliableChannel(side: .server)
    let messages: [Message] = [
      .sessionCreate(SessionCreate(index: 9, version: "0.1.0")),
      .sessionCreateReply(SessionCreateReply(index: 9, sessionToken: "t")),
      .ping(Ping(index: 9, ack: 0)),
    ]
    for message in messages { #expect(channel.stamp(message).index == 0) }
    #expect(channel.kept.isEmpty)
    #expect(channel.keptBytes == 0)
    #expect(channel.stamp(.scopeFetchReply(ScopeFetchReply(replyTo: 1, scopeIndex: 0))).index == 1)
  }

  @Test("A message's own number is replaced")
  func restamp() {
    var channel = ReliableChannel(side: .client)
    #expect(channel.stamp(numbered(77)) == numbered(1))
  }

  @Test("An acknowledgement forgets what it covers and nothing else")
  func acknowledge() {
    var channel = ReliableChannel(side: .server)
    for _ in 1...5 { _ = channel.stamp(sync) }
    let size = channel.keptBytes / 5
    #expect(channel.acknowledge(upTo: 0) == true)
    #expect(channel.kept.count == 5)
    #expect(channel.acknowledge(upTo: 2) == true)
    #expect(channel.kept == (3...5).map(numbered))
    #expect(channel.keptBytes == 3 * size)
    #expect(channel.acknowledge(upTo: 1) == true, "an old ping arriving late")
    #expect(channel.kept == (3...5).map(numbered))
    #expect(channel.acknowledge(upTo: 5) == true)
    #expect(channel.kept.isEmpty)
    #expect(channel.keptBytes == 0)
    #expect(channel.stamp(sync).index == 6)
  }

  @Test("An acknowledgement of what was never sent is reported and changes nothing")
  func impossibleAcknowledgement() {
    var channel = ReliableChannel(side: .server)
    for _ in 1...3 { _ = channel.stamp(sync) }
    #expect(channel.acknowledge(upTo: 4) == false)
    #expect(channel.acknowledge(upTo: .max) == false)
    #expect(channel.acknowledge(upTo: -1) == false)
    #expect(channel.kept.count == 3)
  }

  // MARK: Arrival

  @Test("Index 0 is always processed and never counted")
  func ephemeralArrival() {
    var channel = ReliableChannel(side: .client)
    #expect(channel.receive(index: 0) == .process)
    #expect(channel.receive(index: 1) == .process)
    #expect(channel.receive(index: 0) == .process)
    #expect(channel.highestReceived == 1)
  }

  @Test("A number seen before is a duplicate", arguments: [ReliableChannel.Side.client, .server])
  func duplicates(side: ReliableChannel.Side) {
    var channel = ReliableChannel(side: side)
    for index in 1...3 { #expect(channel.receive(index: index) == .process) }
    for index in 1...3 { #expect(channel.receive(index: index) == .duplicate) }
    #expect(channel.receive(index: 4) == .process)
  }

  @Test("A client reports a gap and stays where it was")
  func clientGap() {
    var channel = ReliableChannel(side: .client)
    #expect(channel.receive(index: 1) == .process)
    #expect(channel.receive(index: 3) == .gap(expected: 2))
    #expect(channel.receive(index: .max) == .gap(expected: 2))
    #expect(channel.highestReceived == 1)
    #expect(channel.ping(resendMissing: true) == .ping(Ping(ack: 1, resendMissing: true)))
    #expect(channel.receive(index: 2) == .process)
    #expect(channel.receive(index: 3) == .process)
  }

  @Test("A server takes a gap, and what would have filled it is a duplicate")
  func serverGap() {
    var channel = ReliableChannel(side: .server)
    #expect(channel.receive(index: 5) == .process)
    #expect(channel.receive(index: 16) == .process)
    #expect(channel.receive(index: 6) == .duplicate)
    #expect(channel.highestReceived == 16)
    #expect(channel.receive(index: .max) == .process)
    #expect(channel.receive(index: .max) == .duplicate)
  }

  @Test("Either side can be told to treat gaps the other way")
  func gapPolicy() {
    var server = ReliableChannel(side: .server, acceptsGaps: false)
    #expect(server.receive(index: 2) == .gap(expected: 1))
    var client = ReliableChannel(side: .client, acceptsGaps: true)
    #expect(client.receive(index: 2) == .process)
  }

  // MARK: Ping, resend, reconnect

  @Test("A ping acknowledges what was received, also across a gap")
  func pings() {
    var channel = ReliableChannel(side: .server)
    #expect(channel.ping(resendMissing: false) == .ping(ping(0)))
    _ = channel.receive(index: 7)
    _ = channel.receive(index: 3)
    #expect(channel.ping(resendMissing: false) == .ping(ping(7)))
  }

  @Test("A plain ping is not answered", arguments: [ReliableChannel.Side.client, .server])
  func plainPing(side: ReliableChannel.Side) {
    var channel = ReliableChannel(side: side)
    for _ in 1...2 { _ = channel.stamp(sync) }
    #expect(channel.receive(ping(1)).isEmpty)
    #expect(channel.kept == [numbered(2)])
  }

  @Test("A server resends behind a ping that asks for the client's part")
  func serverResend() {
    var channel = ReliableChannel(side: .server)
    for _ in 1...9 { _ = channel.stamp(sync) }
    for index in 1...5 { _ = channel.receive(index: index) }
    let answer = channel.receive(ping(7, resend: true))
    #expect(answer == [.ping(ping(5, resend: true)), numbered(8), numbered(9)])
    #expect(channel.receive(ping(7, resend: true)) == answer, "nothing is forgotten by resending")
    #expect(channel.receive(ping(9, resend: true)) == [.ping(ping(5, resend: true))])
  }

  @Test("A client resends the messages alone, so that two peers do not ask for ever")
  func clientResend() {
    var channel = ReliableChannel(side: .client)
    for _ in 1...3 { _ = channel.stamp(sync) }
    #expect(channel.receive(ping(1, resend: true)) == [numbered(2), numbered(3)])
    #expect(channel.receive(ping(3, resend: true)).isEmpty)
  }

  @Test("A resend request with an impossible ack still gets everything")
  func impossibleResend() {
    var channel = ReliableChannel(side: .client)
    _ = channel.stamp(sync)
    #expect(channel.receive(ping(99, resend: true)) == [numbered(1)])
  }

  @Test("After a lost connection both sides end up with everything, once, in order")
  func reconnect() {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      var client = ReliableChannel(side: .client)
      var server = ReliableChannel(side: .server)
      var atClient: [Int] = []
      var atServer: [Int] = []

      /// Lets the first `count` messages through, then the connection is lost.
      func deliver(_ messages: [Message], toServer: Bool, upTo count: Int = .max) -> [Message] {
        var answers: [Message] = []
        for message in messages.prefix(count) {
          let arrival =
            toServer
            ? server.receive(index: message.index) : client.receive(index: message.index)
          guard arrival == .process else { continue }
          if case .ping(let ping) = message {
            answers += toServer ? server.receive(ping) : client.receive(ping)
          } else if toServer {
            atServer.append(message.index)
          } else {
            atClient.append(message.index)
          }
        }
        return answers
      }

      let fromClient = (0..<Int(generator.next() % 10)).map { _ in client.stamp(sync) }
      let fromServer = (0..<Int(generator.next() % 10)).map { _ in server.stamp(sync) }
      _ = deliver(fromClient, toServer: true, upTo: Int(generator.next() % 10))
      _ = deliver(fromServer, toServer: false, upTo: Int(generator.next() % 10))
      let answer = deliver([client.ping(resendMissing: true)], toServer: true)
      let rest = deliver(answer, toServer: false)
      #expect(deliver(rest, toServer: true).isEmpty, "seed \(seed)")
      #expect(atServer == fromClient.map(\.index), "seed \(seed)")
      #expect(atClient == fromServer.map(\.index), "seed \(seed)")
      _ = deliver([client.ping(resendMissing: false)], toServer: true)
      _ = deliver([server.ping(resendMissing: false)], toServer: false)
      #expect(client.kept.isEmpty && server.kept.isEmpty, "seed \(seed)")
    }
  }

  // MARK: Limits

  @Test("A peer that never acknowledges is noticed by count")
  func tooManyMessages() {
    var channel = ReliableChannel(side: .server, limit: .init(messages: 3))
    for _ in 1...3 { _ = channel.stamp(sync) }
    #expect(!channel.isOverflowing)
    _ = channel.stamp(sync)
    #expect(channel.isOverflowing)
    channel.acknowledge(upTo: 1)
    #expect(!channel.isOverflowing)
  }

  @Test("A peer that never acknowledges is noticed by size, but one message is always let in")
  func tooManyBytes() {
    let text = String(repeating: "x", count: 1_000)
    let large = Message.scopeFetch(ScopeFetch(name: "Canvas", params: ["text": .string(text)]))
    var channel = ReliableChannel(side: .server, limit: .init(bytes: 500))
    _ = channel.stamp(sync)
    _ = channel.stamp(large)
    #expect(channel.keptBytes > 1_000)
    #expect(!channel.isOverflowing)
    _ = channel.stamp(sync)
    #expect(!channel.isOverflowing)
    _ = channel.stamp(large)
    #expect(channel.isOverflowing)
    channel.acknowledge(upTo: 2)
    #expect(!channel.isOverflowing)
    for _ in 0..<10 { _ = channel.stamp(sync) }
    #expect(channel.isOverflowing)
  }
}
