import Jetstream
import JetstreamServer
import Testing

/// A server of version 1 drops a message that it cannot read without a word, and answers the sets of one scope in
/// the order in which it has got them.
@Suite("Change sets that an old server does not answer")
struct UnansweredSetTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  /// Makes a set and gives its fate, with the index of the message that carries it.
  private func send(_ body: () -> Void) throws -> (fate: Fate, index: Int) {
    let handle = scope.modify(nil, body)
    return (Fate(handle), try #require(server.takeSyncs().last).index)
  }

  private func expectRejected(_ fate: Fate) {
    #expect(fate.handle.state == .rejected && fate.isConsistent)
    #expect(canvas.name == nil && scope.conflicts.items.map(\.property) == ["name"])
    #expect(server.rejections.count == 1 && server.rejections[0].contains("has not answered"))
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("The answer to a later set of the scope rejects it")
  func laterAnswer() throws {
    let first = try send { canvas.name = "a" }
    let second = try send { shape.x = 5 }
    server.reply(to: second.index, ok)
    expectRejected(first.fate)
    #expect(second.fate.handle.state == .accepted && shape.x == 5)
    #expect(server.engine.pendingCount == 0)
  }

  @Test("So does one after both were repeated on another connection")
  func resent() throws {
    let first = try send { canvas.name = "a" }
    let second = try send { shape.x = 5 }
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    _ = server.takeSent()
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    #expect(server.takeSyncs().map(\.index) == [first.index, second.index])
    server.reply(to: second.index, ok)
    expectRejected(first.fate)
  }

  @Test("An answer that waits because incoming changes are paused counts as decided")
  func paused() throws {
    scope.pauseIncoming()
    let first = try send { canvas.name = "a" }
    let second = try send { shape.x = 5 }
    server.reply(to: second.index, ok)
    #expect(server.engine.state(of: scope)?.decidedCount == 2)
    #expect(first.fate.handle.state == .pending && canvas.name == "a")
    #expect(server.engine.checkInvariants() == [])
    scope.resumeIncoming()
    expectRejected(first.fate)
    #expect(second.fate.handle.state == .accepted)
  }

  @Test("An answer in the next session says nothing of what another one has carried")
  func nextSession() throws {
    let first = try send { canvas.name = "a" }
    let second = try send { shape.x = 5 }
    server.replaceSession(scope.fullState())
    let again = server.takeSyncs()
    #expect(again.count == 2)
    server.reply(to: again[0].index, ok)
    server.reply(to: again[1].index, ok)
    #expect(first.fate.handle.state == .accepted && second.fate.handle.state == .accepted)
    #expect(canvas.name == "a" && server.rejections == [])
  }

  @Test("A set that is not sent yet is not rejected")
  func notSent() throws {
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow.messages = 1
    let server = ScriptedServer(configuration: configuration)
    server.join()
    server.canvas.name = "a"
    server.scope.flush()
    server.canvas.name = "b"
    server.scope.flush()
    let first = try #require(server.takeSyncs().first)
    server.reply(to: first.index, ok)
    #expect(server.canvas.name == "b" && server.engine.pendingCount == 1)
  }

  @Test("This server answers a message that it cannot read behind what is not stored yet")
  func order() throws {
    let world = InMemoryWorld()
    let scope = Scope(name: "Kept", root: Canvas(), ticker: world.serverTicker)
    var kept = 0
    try world.server.host(scope, history: nil) { _ in kept += 1 }
    world.moreScopes["Kept"] = scope
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Kept"))))
    world.server.stored(kept, of: scope)
    peer.take()
    let change = SyncFragment(
      .change, uuid: scope.root!.uuid, className: "Canvas", properties: ["name": "a"])
    peer.send([change])
    peer.send(#"{"type":"ScopeSync","index":3,"scopeIndex":0,"fragments":[{"type":"what"}]}"#)
    #expect(peer.replies(to: 2) == nil && peer.replies(to: 3) == nil)
    world.server.stored(kept, of: scope)
    peer.take()
    let answered = peer.messages.compactMap {
      if case .scopeSyncReply(let reply) = $0 { reply.replyTo } else { nil }
    }
    #expect(answered == [2, 3])
  }
}
