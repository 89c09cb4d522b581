import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client does not send all that has waited at once.
@Suite("What is sent ahead", .paced)
struct SendWindowTests {
  private func client(_ window: ReliableChannel.Limit) -> ScriptedServer {
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow = window
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "a", sequence: 0))
    return server
  }

  private func edit(_ server: ScriptedServer, _ names: Int...) {
    for name in names {
      server.canvas.name = "\(name)"
      server.scope.flush()
    }
  }

  private func names(_ syncs: [ScopeSync]) -> [String] {
    syncs.flatMap(\.fragments).compactMap {
      if case .string(let name) = $0.properties["name"] { name } else { nil }
    }
  }

  @Test("No more sets are on their way than the window has room for; each decision makes room")
  func sets() {
    let server = client(.init(messages: 3))
    edit(server, 1, 2, 3, 4, 5)
    let first = server.takeSyncs()
    #expect(names(first) == ["1", "2", "3"])
    #expect(server.engine.pendingCount == 5)
    server.reply(to: first[0].index, FragmentReply())
    #expect(names(server.takeSyncs()) == ["4"])
    // A rejection makes room as well.
    server.reply(to: first[1].index, FragmentReply(error: .rejected("no")))
    #expect(names(server.takeSyncs()) == ["5"])
    edit(server, 6)
    #expect(server.takeSyncs().isEmpty)
  }

  @Test("All scopes together have four times the window; each of them may have one set on its way")
  func scopes() {
    let server = client(.init(messages: 2))
    let others = (1...5).map { number -> (canvas: Canvas, scope: Scope) in
      let canvas = Canvas()
      let scope = Scope(name: "Other \(number)", root: canvas, ticker: server.ticker)
      server.fetch(scope)
      let position = ScopePosition(epoch: "a", sequence: 0)
      server.deliver([
        .scopeFetchReply(
          ScopeFetchReply(
            replyTo: number + 1, scopeIndex: number, standing: ScopeStanding(position: position))),
        server.state(0, scope: scope, at: number),
      ])
      return (canvas, scope)
    }
    #expect(server.fetched.count == 6 && server.takeSyncs().isEmpty)
    edit(server, 1, 2, 3)
    for (canvas, scope) in others {
      for name in ["a", "b", "c"] {
        canvas.name = name
        scope.flush()
      }
    }
    let first = server.takeSyncs()
    #expect(first.map(\.scopeIndex) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 5])
    server.reply(to: first[8].index, FragmentReply())
    #expect(server.takeSyncs().map(\.scopeIndex) == [4])
    // Ten are on their way, so that there is room once seven are left.
    server.reply(to: first[0].index, FragmentReply())
    server.reply(to: first[2].index, FragmentReply())
    #expect(server.takeSyncs().isEmpty)
    server.reply(to: first[4].index, FragmentReply())
    #expect(server.takeSyncs().map(\.scopeIndex) == [0])
    #expect(server.engine.pendingCount == 14)
  }

  @Test("In a new session the window is empty again")
  func session() {
    let server = client(.init(messages: 2))
    edit(server, 1, 2, 3)
    #expect(names(server.takeSyncs()) == ["1", "2"])
    server.loseSession()
    #expect(server.takeSyncs().isEmpty)
    server.grant(ScopePosition(epoch: "a", sequence: 0))
    #expect(names(server.takeSyncs()) == ["1", "2"])
  }

  @Test("So many bytes are sent ahead as the window says; what is larger goes alone")
  func bytes() {
    let server = client(.init(bytes: 600))
    let text = String(repeating: "x", count: 1000)
    server.canvas.name = text
    server.scope.flush()
    edit(server, 1)
    let large = server.takeSyncs()
    #expect(names(large) == [text])
    // It is decided, so nothing is on its way: the next one may go, though the first is not acknowledged.
    server.reply(to: large[0].index, FragmentReply())
    #expect(names(server.takeSyncs()) == ["1"])
    edit(server, 2)
    #expect(server.takeSyncs().isEmpty)
    server.receive(.ping(Ping(ack: large[0].index)))
    #expect(names(server.takeSyncs()) == ["2"])
  }

  @Test("A client that was away for long brings more than a session may keep, in one session")
  func backlog() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit.messages = 300
    let world = InMemoryWorld(configuration: configuration)
    var settings = ClientEngine.Configuration()
    (settings.limits.sendWindow.messages, settings.limits.acknowledgeAfter.messages) = (200, 100)
    let writer = world.addClient(configuration: settings)
    settings.clientID = UUID()
    let reader = world.addClient(configuration: settings)
    for client in world.clients { client.join() }
    world.settle()
    world.cut(writer.link!)
    for number in 0..<1000 {
      writer.canvas.name = "\(number)"
      writer.flush()
    }
    world.settle()
    #expect(reader.canvas.name == "999" && writer.engine.pendingCount == 0)
    #expect(world.endedSessions.isEmpty && world.server.sessionCount == 2)
  }
}
