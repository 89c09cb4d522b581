import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A set that no message has room for must not hold up everything behind it for ever.
@Suite("Change sets that are too large to be sent")
struct OversizedTests {
  private let world = InMemoryWorld()
  private let one: WorldClient
  private let two: WorldClient

  init() {
    var configuration = ClientEngine.Configuration()
    configuration.limits.maximumMessageBytes = 20_000
    (one, two) = (world.addClient(configuration: configuration), world.addClient())
    for client in [one, two] { client.join() }
    world.settle()
  }

  private func expectEqual() {
    world.settle()
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.engine.checkInvariants() == [] && client.engine.pendingCount == 0)
    }
  }

  @Test("It is taken back, its owner is told why, and what is behind it arrives")
  func rejected() throws {
    let link = one.link
    one.canvas.likes += 1
    one.scope.flush()
    let handle = one.scope.modify { one.canvas.name = String(repeating: "x", count: 20_000) }
    one.scope.modify { one.canvas.likes += 2 }
    expectEqual()
    #expect(one.canvas.name == nil && two.canvas.likes == 3)
    #expect(handle.state == .rejected && one.link === link, "the connection is the same")
    let item = try #require(one.scope.conflicts.items.first)
    #expect(one.scope.conflicts.items.count == 1 && item.property == "name")
    guard case .rejected(let error) = item.reason else {
      Issue.record("\(item.reason)")
      return
    }
    #expect(error.type == "message-too-large" && error.message.contains("20000"))
    // The numbers of the sets go on.
    one.canvas.name = "short"
    expectEqual()
    #expect(two.canvas.name == "short")
  }

  @Test("What counts is how long it is when it is written", arguments: [false, true])
  func exact(isEscaped: Bool) {
    // One character of these takes six.
    let text = String(repeating: isEscaped ? "\u{1}" : "x", count: 3_000)
    one.canvas.name = text
    expectEqual()
    #expect(two.canvas.name == (isEscaped ? nil : text))
  }

  @Test("What names a model that was to be added with it is rejected by the server")
  func dependants() {
    let shape = Shape()
    world.cut(one.link!)
    one.scope.modify {
      shape.label = String(repeating: "x", count: 20_000)
      one.canvas.shapes.append(shape)
    }
    one.scope.modify { shape.x = 5 }
    expectEqual()
    #expect(two.canvas.shapes.isEmpty && one.canvas.shapes.isEmpty)
    #expect(one.scope.conflicts.items.map(\.property) == [nil, "shapes", "x"])
  }

  @Test("What a listener makes of it while it is delivered counts")
  func trimmed() {
    one.canvas.name = "before"
    world.settle()
    let scope = one.scope
    let canvas = one.canvas
    let token = scope.onChanges.listen { _ in
      if canvas.name?.count ?? 0 > 100 { canvas.name = "trimmed" }
    }
    canvas.name = String(repeating: "x", count: 20_000)
    scope.flush()
    expectEqual()
    #expect(canvas.name == "trimmed" && two.canvas.name == "trimmed")
    token.cancel()
  }

  @Test("Who does it again at once, again and again, does not hold up everything")
  func retriedForEver() {
    var retries = 0
    let scope = one.scope
    let token = scope.conflicts.onAdd.listen { conflict in
      retries += 1
      scope.retry([conflict])
    }
    one.canvas.name = String(repeating: "x", count: 20_000)
    scope.flush()
    #expect((1...3).contains(retries) && one.engine.pendingCount == 1)
    token.cancel()
    one.canvas.likes += 1
    expectEqual()
    #expect(two.canvas.likes == 1 && one.canvas.name == nil)
  }

  @Test("What is behind it waits until it is safe that it was taken back")
  func durable() throws {
    let server = ScriptedServer()
    server.connect()
    let own = server.canvas.uuid
    func set(_ name: String) -> ChangeSet {
      ChangeSet(
        fragments: [
          SyncFragment(.change, uuid: own, className: "Canvas", properties: ["name": .string(name)])
        ],
        undo: [SyncFragment(.change, uuid: own, className: "Canvas", properties: ["name": .null])])
    }
    let large = set(String(repeating: "x", count: 17 << 20))
    var records: [ReplicaRecord] = []
    let fetched = try server.engine.fetch(
      server.scope, params: [:],
      history: ReplicaHistory(
        client: UUID(), root: own, nextNumber: 3,
        records: [.made(number: 1, large), .made(number: 2, set("small"))]),
      now: .zero, store: { records.append($0) }, completion: { _ in })
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let standing = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 1))
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: own,
          fragments: [SyncFragment(.add, uuid: own, className: "Canvas", properties: [:])])))
    #expect(server.scope.conflicts.items.count == 1 && server.canvas.name == "small")
    #expect(server.takeSyncs().isEmpty)
    try #require(fetched).stored(records.count)
    #expect(server.takeSyncs().map(\.number) == [2])
  }

  /// A server whose client has a logged scope and a change set that it cannot send, without a record of it.
  private func stalled() throws -> (ScriptedServer, store: () -> Void) {
    var configuration = ClientEngine.Configuration()
    configuration.limits.maximumMessageBytes = 20_000
    let server = ScriptedServer(configuration: configuration)
    server.connect()
    var records = 0
    let replica = try server.engine.fetch(
      server.scope, params: [:], history: nil, now: .zero, store: { _ in records += 1 },
      completion: { _ in })
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    server.grant(ScopePosition(epoch: "e", sequence: 1))
    server.canvas.name = String(repeating: "x", count: 20_000)
    server.scope.flush()
    #expect(server.engine.pendingCount == 1)
    return (server, { replica?.stored(records) })
  }

  @Test(
    "A listener of what was changed since may end the syncing while it is taken back",
    arguments: [false, true])
  func left(closes: Bool) throws {
    let (server, store) = try stalled()
    server.canvas.likes = 1
    let token = server.scope.onChanges.listen { _ in
      if closes {
        server.engine.close()
      } else {
        _ = server.engine.leave(server.scope, now: server.now)
      }
    }
    store()
    #expect(server.engine.pendingCount == 0 && server.engine.scopes.isEmpty)
    #expect(server.canvas.name?.count == 20_000 && server.scope.conflicts.isEmpty)
    token.cancel()
  }

  @Test("It is not taken back in the middle of a call of modify", arguments: [false, true])
  func inModify(fails: Bool) throws {
    let (server, store) = try stalled()
    var names: [Int?] = []
    _ = try? server.scope.modify {
      server.canvas.likes = 1
      store()
      names.append(server.canvas.name?.count)
      server.canvas.shapes.append(Shape())
      if fails { throw CancellationError() }
    }
    server.scope.flush()
    #expect(names == [20_000] && server.canvas.name == nil)
    #expect(server.canvas.likes == (fails ? 0 : 1) && server.canvas.shapes.count == (fails ? 0 : 1))
    #expect(server.engine.pendingCount == (fails ? 0 : 1))
    #expect(server.engine.checkInvariants() == [])
    store()
    #expect(server.takeSyncs().count == (fails ? 0 : 1))
  }

  @Test("While the scope takes nothing in, it waits")
  func paused() {
    one.scope.pauseIncoming()
    one.canvas.name = String(repeating: "x", count: 20_000)
    one.scope.flush()
    world.exchange()
    #expect(one.canvas.name != nil && one.engine.pendingCount == 1)
    one.scope.resumeIncoming()
    expectEqual()
    #expect(one.canvas.name == nil)
  }
}
