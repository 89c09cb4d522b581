import Jetstream
import JetstreamServer
import Testing

/// A server of version 1 applies the set, then what its procedure changes, tells everybody of that, and then
/// replies. What others have changed before comes in the same way.
@Suite("Procedures of an old server")
struct OldProcedureTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  /// Makes a set for a procedure; gives what was sent. The last message is the set.
  private func call(_ name: String) throws -> (fate: Fate, sent: [ScopeSync]) {
    let handle = try scope.modify(procedure: "Canvas.rename") { canvas.name = name }
    return (Fate(handle), server.takeSyncs())
  }

  /// Answers the empty set in front of that of a procedure.
  private func answerMarker(_ sent: [ScopeSync]) {
    for message in sent where message.fragments.isEmpty { server.reply(to: message.index) }
  }

  @Test("What a procedure changes before its reply counts, and not the caller's own value")
  func update() throws {
    let (fate, sent) = try call("mine")
    answerMarker(sent)
    server.tell(change(canvas, ["name": "MINE", "likes": 3]))
    #expect(canvas.name == "mine")
    server.reply(to: sent.last!.index, ok)
    #expect(canvas.name == "MINE" && canvas.likes == 3)
    #expect(fate.handle.state == .accepted && server.engine.pendingCount == 0)
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("What others have changed before the procedure began stays behind the caller's value")
  func others() throws {
    let (fate, sent) = try call("mine")
    server.tell(change(canvas, ["name": "theirs"]))
    answerMarker(sent)
    server.reply(to: sent.last!.index, ok)
    #expect(canvas.name == "mine" && fate.handle.state == .accepted)
    server.tell(change(canvas, ["name": "later"]))
    #expect(canvas.name == "later")
  }

  @Test("Both, with a later set of the caller in front")
  func laterSet() throws {
    let (_, sent) = try call("mine")
    server.tell(change(canvas, ["name": "theirs"]))
    canvas.name = "again"
    scope.flush()
    answerMarker(sent)
    server.tell(change(canvas, ["name": "MINE"]))
    server.reply(to: sent.last!.index, ok)
    #expect(canvas.name == "again" && server.engine.pendingCount == 1)
    server.reply(to: server.takeSyncs().last!.index, no)
    #expect(canvas.name == "MINE")
  }

  @Test(
    "A procedure's set and the empty one in front of it go out in one frame, also when repeated")
  func together() throws {
    let frames = server.frames.count
    let (_, sent) = try call("mine")
    #expect(sent.map(\.fragments.count) == [0, 1] && server.frames.count == frames + 1)
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    _ = server.takeSent()
    let before = server.frames.count
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    #expect(server.takeSyncs().map(\.index) == sent.map(\.index))
    #expect(server.frames.count == before + 1)
  }

  @Test("A session that is lost while a procedure runs has its changes in the next state")
  func lostSession() throws {
    let (fate, sent) = try call("mine")
    answerMarker(sent)
    server.tell(change(canvas, ["name": "MINE"]))
    server.replaceSession([change(canvas, ["name": "MINE", "shapes": [], "hidden": []])])
    let again = server.takeSyncs()
    #expect(again.map(\.fragments.count) == [0, 1] && canvas.name == "mine")
    answerMarker(again)
    server.tell(change(canvas, ["name": "MINE"]))
    server.reply(to: again.last!.index, ok)
    #expect(canvas.name == "MINE" && fate.handle.state == .accepted)
    server.tell(change(canvas, ["name": "next"]))
    #expect(canvas.name == "next")
  }

  @Test("A procedure that is refused leaves what came with it")
  func refused() throws {
    let (fate, sent) = try call("mine")
    answerMarker(sent)
    server.tell(change(canvas, ["likes": 2]))
    server.reply(to: sent.last!.index, no)
    #expect(canvas.name == nil && canvas.likes == 2 && fate.handle.state == .rejected)
  }

  @Test("A server of version 2 is sent the set alone")
  func versionTwo() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    try server.scope.modify(procedure: "Canvas.rename") { server.canvas.name = "mine" }
    #expect(server.takeSyncs().count == 1)
  }

  @Test("This server answers an empty set, and tells the others nothing")
  func emptySet() {
    let world = InMemoryWorld()
    let (peer, other) = (RawPeer.joined(world), RawPeer.joined(world))
    let message = peer.stamp(.scopeSync(ScopeSync(scopeIndex: 0, fragments: [])))
    peer.send(message)
    other.take()
    #expect(peer.replies(to: message.index) == [] && other.syncs.isEmpty)
  }
}
