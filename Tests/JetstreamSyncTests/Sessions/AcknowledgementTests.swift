import Jetstream
import JetstreamServer
import Testing

/// What is received is acknowledged while much comes in, and not only with the ping that is due next.
@Suite("Acknowledgements under load", .paced)
struct AcknowledgementTests {
  private func client(after limit: ReliableChannel.Limit) -> ScriptedServer {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter = limit
    let server = ScriptedServer(configuration: configuration)
    server.join()
    return server
  }

  @Test("A client acknowledges as soon as so many messages have come, each time")
  func messages() {
    let server = client(after: .init(messages: 4))
    server.receive(server.sync(3, ["name": "3"]))
    #expect(server.takeSent().isEmpty)
    server.receive(server.sync(4, ["name": "4"]))
    #expect(server.takeSent() == [.ping(Ping(ack: 4))])
    server.receive(server.sync(5, ["name": "5"]), server.sync(6, ["name": "6"]))
    server.receive(server.sync(7, ["name": "7"]))
    #expect(server.takeSent().isEmpty)
    server.receive(server.sync(8, ["name": "8"]), server.sync(9, ["name": "9"]))
    #expect(server.takeSent() == [.ping(Ping(ack: 9))])
  }

  @Test("Few large messages count by their size")
  func bytes() {
    let server = client(after: .init(messages: 1000, bytes: 300))
    server.receive(server.sync(3, ["name": "3"]), size: 200)
    #expect(server.takeSent().isEmpty)
    server.receive(server.sync(4, ["name": "4"]), size: 200)
    #expect(server.takeSent() == [.ping(Ping(ack: 4))])
    server.receive(server.sync(5, ["name": "5"]), size: 200)
    #expect(server.takeSent().isEmpty)
    // A ping brings nothing that could be acknowledged.
    server.receive(.ping(Ping(ack: 0)), size: 1000)
    #expect(server.takeSent() == [.ping(Ping(ack: 5))])
    server.receive(.ping(Ping(ack: 0)), size: 1000)
    #expect(server.takeSent().isEmpty)
  }

  @Test("What waits for a paused scope is acknowledged as soon as the scope is resumed")
  func paused() {
    let server = client(after: .init(messages: 2))
    server.receive(server.sync(3, ["name": "3"]))
    server.scope.pauseIncoming()
    server.receive(server.sync(4, ["name": "4"]), server.sync(5, ["name": "5"]))
    server.receive(server.sync(6, ["name": "6"]), server.sync(7, ["name": "7"]))
    #expect(server.takeSent().isEmpty && server.canvas.name == "3")
    server.scope.resumeIncoming()
    #expect(server.canvas.name == "7")
    #expect(server.takeSent() == [.ping(Ping(ack: 7))])
  }

  @Test("A server acknowledges what a client tells, too")
  func server() {
    var configuration = ServerEngine.Configuration()
    configuration.acknowledgeAfter = .init(messages: 3)
    let world = InMemoryWorld(configuration: configuration)
    let peer = RawPeer.joined(world)
    func acknowledgements() -> [Int] {
      peer.messages.compactMap { if case .ping(let ping) = $0 { ping.ack } else { nil } }
    }
    func submit(_ name: String) {
      peer.submit([
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas",
          properties: ["name": .string(name)])
      ])
    }
    submit("2")
    #expect(acknowledgements().isEmpty)
    submit("3")
    #expect(acknowledgements() == [3])
    submit("4")
    submit("5")
    #expect(acknowledgements() == [3])
    submit("6")
    #expect(acknowledgements() == [3, 6])
  }

  @Test("A session goes on however much is told between two pings")
  func load() {
    var configuration = ServerEngine.Configuration()
    // A client that says nothing before its next ping loses its session.
    configuration.keptLimit.messages = 600
    let world = InMemoryWorld(configuration: configuration)
    let (writer, reader) = (world.addClient(), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    let sessions = world.server.sessionCount
    for number in 0..<2000 {
      writer.canvas.name = "\(number)"
      writer.flush()
      if number.isMultiple(of: 50) { world.settle() }
    }
    world.settle()
    #expect(world.now < .seconds(9), "nobody has had to send a ping for it")
    #expect(reader.canvas.name == "1999" && writer.canvas.name == "1999")
    #expect(world.server.sessionCount == sessions && world.endedSessions.isEmpty)
  }
}
