import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Procedures that clients call with changes")
struct ChangeProcedureTests {
  private let world: InMemoryWorld
  private final class Calls {
    var count = 0
  }
  private let calls = Calls()

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.rules = { _ in
      var rules = ScopeRules()
      rules.update(\Canvas.likes, "That is too much liking") { _, _, new in new.likes < 100 }
      return rules
    }
    world = InMemoryWorld(configuration: configuration)
    let constraints = [
      Constraint(.change, "Canvas", ["name": .newValue, "likes": .meets(.range(0...1000))]),
      Constraint(.change, "Canvas", ["name": .newValue]),
    ]
    world.procedures["Canvas.name"] = ServedProcedure(
      takesArguments: false, constraints: constraints
    ) { [world, calls] request in
      calls.count += 1
      do {
        try request.commit { (canvas: Canvas) in
          if canvas.name == "bad" { throw WireError.rejected("That is no name") }
          canvas.likes += 1
          let shape = Shape()
          shape.label = "for \(canvas.name ?? "")"
          canvas.shapes.append(shape)
        }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
  }

  private func expectSame() {
    world.settle()
    for client in world.clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
    #expect(world.server.checkInvariants() == [])
  }

  @Test("The server applies the changes, and what the procedure does, as one change set")
  func both() async throws {
    let (ann, ben) = (world.addClient(), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    let handle = try ann.scope.modify(procedure: "Canvas.name") { ann.canvas.name = "tea" }
    expectSame()
    try await handle.finished()
    #expect(ben.canvas.name == "tea" && ben.canvas.likes == 1)
    #expect(ben.canvas.shapes.map(\.label) == ["for tea"])
    #expect(calls.count == 1)
    let sequences = Set(
      ben.heard.compactMap { message in
        if case .scopeSync(let sync) = message { sync.sequence } else { nil }
      })
    #expect(sequences.count == 1)
  }

  @Test("Changes that meet no constraint are rejected before the procedure runs")
  func constraints() async throws {
    let ann = world.addClient()
    ann.join()
    world.settle()
    let handle = try ann.scope.modify(procedure: "Canvas.name") { ann.canvas.selected = Shape() }
    expectSame()
    #expect(calls.count == 0 && handle.state == .rejected && world.canvas.selected == nil)
    #expect("\(handle.error!)".contains("the procedure does not allow add of Shape"))
  }

  @Test(
    "A commit that comes later judges the constraints by what is there then", arguments: [1, 2])
  func constraintsAtCommit(count: Int) throws {
    var waiting: [ProcedureRequest] = []
    world.procedures["Canvas.later"] = ServedProcedure(
      takesArguments: false,
      constraints: [Constraint(.change, "Canvas", ["likes": .meets(.range(0...90))])]
    ) { waiting.append($0) }
    let clients = (0..<count).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    let handles = try clients.map { client in
      try client.scope.modify(procedure: "Canvas.later") { client.canvas.likes += 60 }
    }
    world.exchange()
    #expect(waiting.count == count)
    for request in waiting {
      do {
        try request.commit { (_: Canvas) in }
      } catch {
        // Another attempt finds the same.
        #expect(throws: WireError.self) { try request.commit { (_: Canvas) in } }
        world.server.ended(request, after: error, Never.self)
      }
    }
    expectSame()
    #expect(world.canvas.likes == 60 && handles.count { $0.state == .accepted } == 1)
    for handle in handles where handle.state == .rejected {
      #expect("\(handle.error!)".contains("the procedure does not allow change of Canvas"))
    }
    #expect(handles.count { $0.state == .rejected } == count - 1)
  }

  @Test("An error of the procedure and a rule of the scope take all changes back")
  func rejected() async throws {
    let ann = world.addClient()
    ann.join()
    world.settle()
    let bad = try ann.scope.modify(procedure: "Canvas.name") { ann.canvas.name = "bad" }
    expectSame()
    #expect(calls.count == 1 && bad.state == .rejected && world.canvas.name == nil)
    #expect("\(bad.error!)".contains("That is no name"))
    let much = try ann.scope.modify(procedure: "Canvas.name") {
      ann.canvas.name = "good"
      ann.canvas.likes = 200
    }
    expectSame()
    #expect(much.state == .rejected && world.canvas.name == nil && ann.canvas.likes == 0)
    #expect("\(much.error!)".contains("That is too much liking"))
    #expect(world.canvas.shapes.isEmpty)
  }

  @Test("A handler's own error is told, and not the one for which a commit was rejected before")
  func ownError() throws {
    let ann = world.addClient()
    ann.join()
    world.settle()
    world.procedures["Canvas.own"] = ServedProcedure(
      takesArguments: false,
      constraints: [Constraint(.change, "Canvas", allowsAdditionalProperties: true)]
    ) { [world] request in
      do {
        try request.commit { (_: Canvas) in }
      } catch {
        world.server.ended(request, after: WireError.rejected("It is closed"), Never.self)
      }
    }
    let much = try ann.scope.modify(procedure: "Canvas.own") { ann.canvas.likes = 200 }
    expectSame()
    #expect(much.state == .rejected && "\(much.error!)".contains("It is closed"))
  }

  @Test("A client of version 1 is sent what the procedure does before its reply")
  func old() throws {
    let (old, other) = (RawPeer.joined(world), RawPeer.joined(world))
    func call(_ name: String) -> ScopeSyncReply? {
      let message = old.stamp(
        .scopeSync(
          ScopeSync(
            scopeIndex: 0,
            fragments: [
              SyncFragment(
                .change, uuid: world.canvas.uuid, className: "Canvas",
                properties: ["name": .string(name)])
            ], procedure: "Canvas.name")))
      old.send(message)
      for case .scopeSyncReply(let reply) in old.messages where reply.replyTo == message.index {
        return reply
      }
      return nil
    }
    let reply = try #require(call("tea"))
    #expect(reply.fragmentReplies.map(\.error) == [nil])
    #expect(world.canvas.name == "tea" && world.canvas.likes == 1)
    let shape = world.canvas.shapes[0].uuid
    for peer in [old, other] {
      peer.take()
      let told = peer.syncs.flatMap(\.fragments)
      #expect(told.contains { $0.kind == .add && $0.uuid == shape })
      #expect(told.contains { $0.properties["likes"] == 1 && $0.properties["name"] == "tea" })
    }
    let order = old.messages.suffix(2).map(\.type)
    #expect(order == ["ScopeSync", "ScopeSyncReply"])
    #expect(call("bad")?.fragmentReplies.map { $0.error?.message } == ["That is no name"])
    #expect(world.canvas.name == "tea")
    other.take()
    #expect(!other.syncs.flatMap(\.fragments).contains { $0.properties["name"] == "bad" })
  }

  @Test("Jetstream's own client of version 1 shows what the procedure does")
  func ownOldClient() async throws {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = 1
    let (ann, ben) = (world.addClient(configuration: configuration), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    let handle = try ann.scope.modify(procedure: "Canvas.name") { ann.canvas.name = "tea" }
    expectSame()
    try await handle.finished()
    #expect(ann.canvas.likes == 1 && ben.canvas.shapes.count == 1)
    _ = try ann.scope.modify(procedure: "Canvas.name") { ann.canvas.name = "bad" }
    expectSame()
    #expect(ann.canvas.name == "tea")
  }
}
