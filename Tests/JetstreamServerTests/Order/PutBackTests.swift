import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client removes a model and puts it back in a later change set, before the server has decided either of
/// them, while another client changes the model. Putting back takes nothing away from the other client.
@Suite("Models that are put back in a later change set")
struct PutBackTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let other: WorldClient

  init() {
    let shape = Shape()
    shape.label = "kept"
    shape.parts = [Shape()]
    world.canvas.shapes.append(shape)
    client = world.addClient()
    other = world.addClient()
    client.join()
    other.join()
    world.settle()
  }

  private var mine: Shape { client.canvas.shapes[0] }
  private var theirs: Shape { other.canvas.shapes[0] }

  /// The client's frames stay on their way until `body` has changed something at the other client, which the
  /// server takes first.
  private func meanwhile(_ body: () -> Void) {
    body()
    other.scope.flush()
    while !other.link!.toServer.isEmpty { world.deliver(other.link!, toServer: true) }
  }

  private func expectEqual() {
    world.settle()
    for client in [client, other] {
      #expect(differences(client.scope, world.scope) == [])
      #expect(client.repaired.isEmpty)
    }
  }

  /// Removes the shape and puts it back, each as a change set.
  private func removeAndPutBack(_ change: (Shape) -> Void = { _ in }) {
    let shape = mine
    client.canvas.shapes.remove(shape)
    client.scope.flush()
    change(shape)
    client.canvas.hidden.append(shape)
    client.scope.flush()
  }

  @Test("What another inserts below a model whose removal is undone stays")
  func insertionBelowUndoneRemoval() {
    let history = UndoHistory(of: client.scope)
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    history.undo()
    let part = Shape()
    part.label = "theirs"
    meanwhile { theirs.parts.append(part) }
    expectEqual()
    #expect(world.canvas.shapes[0].parts.map(\.label) == ["", "theirs"])
  }

  @Test("What another inserts, removes and writes below a model that is cut and pasted counts")
  func changesBelowPastedModel() {
    removeAndPutBack { $0.label = "pasted" }
    meanwhile {
      theirs.parts.remove(at: 0)
      theirs.parts.append(Shape())
      theirs.x = 3
      theirs.label = "unseen"
    }
    expectEqual()
    let shape = world.canvas.hidden[0]
    #expect(shape.parts.count == 1 && shape.x == 3 && shape.label == "pasted")
    #expect(other.scope.conflicts.items.map(\.property) == ["label"])
  }

  @Test("An element that is removed while the model is away stays removed")
  func removalBelowPastedModel() {
    removeAndPutBack { $0.parts.removeAll() }
    meanwhile { theirs.parts.append(Shape()) }
    expectEqual()
    #expect(world.canvas.hidden[0].parts.count == 1)
  }

  @Test("A model that others keep elsewhere takes their changes when it is put back")
  func keptElsewhere() {
    removeAndPutBack { $0.y = 4 }
    meanwhile {
      other.canvas.selected = theirs
      theirs.parts.append(Shape())
      theirs.x = 3
    }
    expectEqual()
    let shape = world.canvas.hidden[0]
    #expect(world.canvas.selected === shape)
    #expect(shape.parts.count == 2 && shape.x == 3 && shape.y == 4)
  }

  @Test("A model that was away for a moment comes back from a rejected removal as others have it")
  func momentaryAbsence() throws {
    let shape = mine
    try client.scope.modify(procedure: "none") { shape.label = "refused" }
    client.canvas.shapes.remove(shape)
    client.canvas.shapes.append(shape)
    world.settle()
    #expect(shape.label == "kept")
    try client.scope.modify(procedure: "none") { client.canvas.shapes.remove(shape) }
    expectEqual()
    #expect(mine === shape && shape.label == "kept")
  }

  @Test("A model below, of which the server refuses what was changed, is as the server has it")
  func refusedBelowPastedModel() throws {
    let (unknown, part) = (Shape(), mine.parts[0])
    try client.scope.modify(procedure: "none") { client.canvas.hidden.append(unknown) }
    removeAndPutBack { _ in part.parts.append(unknown) }
    meanwhile { other.canvas.selected = theirs }
    expectEqual()
    #expect(world.canvas.selected?.parts.map(\.uuid) == [part.uuid])
    #expect(client.canvas.selected?.parts.first === part && part.parts.isEmpty)
  }

  @Test("A model that is away here, and that another adds anew, counts as the other adds it")
  func addedAnewMeanwhile() {
    removeAndPutBack()
    client.canvas.hidden.removeAll()
    meanwhile {
      let shape = theirs
      other.canvas.shapes.remove(shape)
      other.scope.flush()
      shape.parts.removeAll()
      other.canvas.selected = shape
      other.scope.flush()
      shape.parts.append(Shape())
    }
    expectEqual()
    #expect(client.canvas.selected?.parts.count == 1)
  }

  @Test("Towards a server that has forgotten the model, it comes back as the client has it")
  func forgotten() {
    let shape = mine
    client.canvas.shapes.remove(shape)
    expectEqual()
    world.pass(30)
    #expect(world.server.departedCount(of: world.scope) == 0)
    shape.label = "new"
    client.canvas.hidden.append(shape)
    expectEqual()
    #expect(world.canvas.hidden[0].label == "new" && world.canvas.hidden[0].parts.count == 1)
  }

  @Test("An addition says what its maker knew, and reads as it was written")
  func wireForm() throws {
    let fragment = SyncFragment(
      .add, uuid: UUID(), className: "Shape", properties: ["x": 1], bases: ["x": 0])
    let text = fragment.json.text
    #expect(text.hasSuffix(#","properties":{"x":1},"known":{"x":0}}"#))
    #expect(try SyncFragment(json: JSONValue(parsing: Array(text.utf8))) == fragment)
    let frame = Message.encodeFrame(
      [.scopeSync(ScopeSync(index: 1, scopeIndex: 0, fragments: [fragment]))], asArray: false)
    guard case .scopeSync(let sync) = try Message.decodeFrame(frame)[0].get() else {
      Issue.record("not a ScopeSync")
      return
    }
    #expect(sync.fragments == [fragment])
  }

  @Test(
    "A rejected insertion below a model that is put back behind it leaves what the server accepts then"
  )
  func rejectedBefore() throws {
    let server = ScriptedServer()
    let shape = Shape()
    server.canvas.shapes.append(shape)
    server.scope.flush()
    server.joinAtPosition(ScopePosition(epoch: "one", sequence: 1))
    server.canvas.shapes.append(shape)
    server.scope.flush()
    let part = Shape()
    shape.parts.append(part)
    server.scope.flush()
    server.canvas.shapes.remove(shape)
    server.scope.flush()
    server.canvas.hidden.append(shape)
    server.scope.flush()
    let sent = server.takeSyncs()
    #expect(sent.count == 4)
    let no = FragmentReply(error: .rejected("no"))
    for (sync, reply) in zip(sent, [FragmentReply(), no, FragmentReply(), FragmentReply()]) {
      let replies = sync.fragments.map { _ in reply }
      server.deliver([
        .scopeSyncReply(ScopeSyncReply(replyTo: sync.index, fragmentReplies: replies))
      ])
    }
    // The server has forgotten the model, and taken it as it was sent.
    #expect(server.engine.pendingCount == 0 && server.engine.checkInvariants() == [])
    #expect(
      server.canvas.hidden.map(\.uuid) == [shape.uuid] && shape.parts.map(\.uuid) == [part.uuid])
  }
}
