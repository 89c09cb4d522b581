import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Sessions of version 2 are sent the same bytes of a scope's stream, acknowledge it by its sequence, and are sent what a
/// connection has lost from the stream.
@Suite("The stream that sessions share", .paced)
struct SharedStreamTests {
  private let world = InMemoryWorld()

  private func join(
    _ configuration: ClientEngine.Configuration = .init()
  ) -> WorldClient {
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    return client
  }

  private func change(_ name: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(name)])
  }

  /// Sends messages of a peer in one frame, which the server handles in one turn.
  private func send(_ messages: [Message], from peer: RawPeer) {
    peer.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
  }

  private func expectAgreement(
    _ clients: WorldClient..., sourceLocation: SourceLocation = #_sourceLocation
  ) {
    world.settle()
    for client in clients {
      #expect(
        client.scope.canonicalJSON == world.scope.canonicalJSON, sourceLocation: sourceLocation)
      #expect(client.engine.pendingCount == 0, sourceLocation: sourceLocation)
    }
    #expect(world.server.checkInvariants() == [], sourceLocation: sourceLocation)
  }

  @Test("The change sets of one turn come to all in the same frame, whatever else a session does")
  func sameBytes() throws {
    world.moreScopes["Notes"] = Scope(name: "Notes", root: Canvas(), ticker: world.serverTicker)
    let writer = RawPeer.joined(world, protocol: 2)
    let one = RawPeer(world)
    one.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","protocol":2,"params":{}}"#)
    one.send(one.stamp(.scopeFetch(ScopeFetch(name: "Notes"))))
    one.send(one.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    let two = RawPeer.joined(world, protocol: 2)
    let syncs = (1...5).map { number in
      writer.stamp(
        .scopeSync(ScopeSync(scopeIndex: writer.scopeIndex, fragments: [change("\(number)")])))
    }
    // Nothing is taken by the readers before both frames are compared.
    send(syncs, from: writer)
    #expect(one.link.toClient.count == 1 && one.link.toClient == two.link.toClient)
    one.take()
    two.take()
    #expect(one.syncs == two.syncs && one.frames.last == 5)
    #expect(one.syncs.map(\.index) == [0, 0, 0, 0, 0])
    #expect(one.syncs.map(\.sequence) == [1, 2, 3, 4, 5])
    // Its own change sets come to the writer with its replies, and not again.
    writer.take()
    #expect(writer.syncs.isEmpty)
    #expect(world.server.checkInvariants() == [])
  }

  @Test("What several connections bring in one turn is answered and told together")
  func oneTurn() throws {
    let writers = (0..<3).map { _ in RawPeer.joined(world, protocol: 2) }
    let reader = RawPeer.joined(world, protocol: 2)
    for (number, writer) in writers.enumerated() {
      let syncs = (1...2).map { round in
        Result<Message, MessageError>.success(
          writer.stamp(
            .scopeSync(
              ScopeSync(scopeIndex: 0, fragments: [change("\(number), \(round)")]))))
      }
      world.server.received(
        [.frame(.init(messages: .success(syncs), isArray: true))], on: writer.link.id,
        now: world.now, endsTurn: false)
    }
    #expect((writers + [reader]).allSatisfy { $0.link.toClient.isEmpty })
    world.server.endTurn()
    #expect((writers + [reader]).map(\.link.toClient.count) == [1, 1, 1, 1])
    reader.take()
    #expect(reader.syncs.map(\.sequence) == [1, 2, 3, 4, 5, 6])
    for (number, writer) in writers.enumerated() {
      writer.take()
      // Each is told the others' before its replies and behind them, in the order of the scope.
      let order = writer.messages.flatMap { message -> [Int] in
        switch message {
        case .scopeSync(let sync): sync.sequence.map { [$0] } ?? []
        case .scopeSyncReply(let reply):
          reply.sequence.map { Array($0 - reply.count + 1...$0) } ?? []
        default: []
        }
      }
      #expect(order == [1, 2, 3, 4, 5, 6])
      #expect(writer.syncs.count == 4, "its own come with replies: writer \(number)")
    }
    #expect(world.server.checkInvariants() == [])
  }

  @Test("What an observer changes while a turn is told comes behind it, to all")
  func changesMeanwhile() throws {
    let world = InMemoryWorld()
    var told: [Int: [Int]] = [:]
    var changes = 0
    let hooks = ServerEngine.Hooks(
      fetch: { _, _, _ in .success(world.scope) }, makeToken: { UUID().uuidString },
      random: { 0.5 })
    let server = ServerEngine(hooks: hooks) { action in
      guard case .send(let connections, let frame) = action else { return }
      for connection in connections {
        for case .success(.scopeSync(let sync)) in (try? Message.decodeFrame(frame)) ?? [] {
          told[connection, default: []].append(sync.sequence ?? 0)
        }
        // As the app may that is told of a connection which takes no more.
        if told[connection] != nil, changes < 3 {
          changes += 1
          world.canvas.likes += 1
          world.scope.flush()
        }
      }
    }
    server.host(world.scope)
    for connection in 1...4 {
      server.opened(connection, params: [:], now: .zero)
      for message in [
        #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#,
        #"{"type":"ScopeFetch","index":1,"name":"Canvas","params":{}}"#,
      ] {
        let bytes = Array(message.utf8)
        server.received(
          [.frame(.init(messages: Message.frame(bytes), isArray: false))], on: connection,
          now: .zero)
      }
    }
    world.canvas.name = "first"
    world.scope.flush()
    #expect(told.count == 4)
    for (connection, sequences) in told {
      #expect(sequences == [1, 2, 3, 4], "connection \(connection)")
    }
  }

  @Test("A turn with more than a frame should have comes in several frames, the same for all")
  func severalFrames() throws {
    var configuration = ServerEngine.Configuration()
    configuration.frameBytes = 500
    let world = InMemoryWorld(configuration: configuration)
    let writer = RawPeer.joined(world, protocol: 2)
    let (one, two) = (RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2))
    let syncs = (1...6).map { number in
      writer.stamp(
        .scopeSync(
          ScopeSync(
            scopeIndex: 0,
            fragments: [
              SyncFragment(
                .change, uuid: world.canvas.uuid, className: "Canvas",
                properties: ["name": .string("\(number)")])
            ])))
    }
    send(syncs, from: writer)
    #expect(one.link.toClient.count > 1 && one.link.toClient == two.link.toClient)
    one.take()
    #expect(one.syncs.map(\.sequence) == [1, 2, 3, 4, 5, 6])
  }

  @Test("A client that has no connection for a while is sent the rest, its own change sets as such")
  func resumed() throws {
    let (one, two) = (join(), join())
    one.canvas.likes += 1
    two.canvas.name = "two"
    world.settle()
    // The reply to its next change set, and what others do behind it, are lost with the connection.
    one.canvas.likes += 1
    one.flush()
    let link = try #require(one.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    two.canvas.name = "lost"
    two.flush()
    let other = try #require(two.link)
    while !other.toServer.isEmpty { world.deliver(other, toServer: true) }
    #expect(world.canvas.likes == 2 && world.canvas.name == "lost" && !link.toClient.isEmpty)
    let sequence = world.server.positions[0].sequence
    world.cut(link)
    one.heard = []
    expectAgreement(one, two)
    #expect(one.tokens.count == 2 && one.tokens[1] != nil, "the session has gone on")
    #expect(one.canvas.likes == 2 && one.rejections.isEmpty)
    let told = one.heard.compactMap {
      if case .scopeSync(let sync) = $0 { sync.sequence } else { nil }
    }
    #expect(told.contains(sequence))
  }

  @Test("A client asks for a change set that is missing in the stream")
  func gap() throws {
    let (one, two) = (join(), join())
    let link = try #require(one.link)
    for name in ["a", "b", "c"] {
      two.canvas.name = name
      two.flush()
      let other = try #require(two.link)
      while !other.toServer.isEmpty { world.deliver(other, toServer: true) }
      if name == "b" { link.toClient.removeAll() }
    }
    #expect(!link.toClient.isEmpty)
    expectAgreement(one, two)
    #expect(one.canvas.name == "c" && one.tokens == [nil], "the connection has gone on")
    #expect(world.fetches.count == 3, "one of them to ask for what is missing")
  }

  @Test("The next ping tells a client that the end of the stream is missing")
  func lostTail() throws {
    let (one, two) = (join(), join())
    two.canvas.name = "lost"
    two.flush()
    let (link, other) = (try #require(one.link), try #require(two.link))
    while !other.toServer.isEmpty { world.deliver(other, toServer: true) }
    link.toClient.removeAll()
    world.settle()
    #expect(one.canvas.name == nil)
    world.pass(12)
    expectAgreement(one, two)
    #expect(one.canvas.name == "lost" && one.tokens == [nil])
  }

  @Test("An acknowledgement that is lost is made up for with the next ping")
  func lostAcknowledgement() throws {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter.messages = 1
    let (one, two) = (join(configuration), join())
    let session = try #require(world.server.sessions.values.min { $0.number < $1.number })
    two.canvas.name = "told"
    two.flush()
    let (link, other) = (try #require(one.link), try #require(two.link))
    while !other.toServer.isEmpty { world.deliver(other, toServer: true) }
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(!link.toServer.isEmpty && session.waiting.sets == 1)
    link.toServer.removeAll()
    world.pass(12)
    #expect(session.waiting == StreamAmount() && one.tokens == [nil])
    expectAgreement(one, two)
  }

  @Test("A client that wants no more is not sent again what it has acknowledged with its own reply")
  func limited() throws {
    let writer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    writer.submit([change("a")])
    let position = world.server.positions[0]
    peer.take()
    var fetch = ScopeFetch(name: "Canvas")
    (fetch.since, fetch.tell) = (ScopePosition(epoch: position.epoch, sequence: 0), .missed)
    peer.send(peer.stamp(.scopeFetch(fetch)))
    peer.submit([change("b")])
    let session = try #require(world.server.sessions.values.max { $0.number < $1.number })
    #expect(session.waiting.sets == 1)
    // The reply follows what it was told, so that the client has applied both.
    var ping = Ping(ack: peer.messages.map(\.index).max() ?? 0)
    ping.seen = [.init(scopeIndex: peer.scopeIndex, sequence: 2)]
    peer.send(.ping(ping))
    #expect(session.waiting == StreamAmount())
    #expect(world.server.checkInvariants() == [])
  }

  @Test("An acknowledgement of more than was told counts for nothing")
  func impossibleAcknowledgement() throws {
    let (writer, peer) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    var ping = Ping(ack: 0)
    ping.seen = [.init(scopeIndex: 0, sequence: 1_000_000), .init(scopeIndex: 77, sequence: 1)]
    peer.send(.ping(ping))
    writer.submit([change("after")])
    peer.take()
    #expect(peer.syncs.map(\.sequence) == [1])
    #expect(world.server.checkInvariants() == [])
  }

  @Test("A place in a ping with a missing or invalid field makes the message invalid")
  func invalidPlaces() {
    for places in [#"[{"scopeIndex":0}]"#, #"[{"scopeIndex":-1,"sequence":2}]"#, "[7]", "7"] {
      for field in ["seen", "told", "latest"] {
        let text = #"{"type":"Ping","index":0,"ack":0,"\#(field)":\#(places)}"#
        #expect(throws: MessageError.self) { try Message.decodeFrame(Array(text.utf8))[0].get() }
      }
    }
  }
}
