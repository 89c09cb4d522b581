import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A model that leaves takes its unsent changes with it. When somebody else puts it back, everybody
/// has to show the values that the server has.
@Suite("Models that return")
struct RevivalTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private var theirs: Shape { world.canvas.shapes[0] }
  private var mine: Shape { client.canvas.shapes[0] }

  init() {
    world.canvas.shapes.append(Shape())
    client = world.addClient()
    client.join()
    world.settle()
  }

  private func expectEqual(x: Float) {
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(world.canvas.hidden.map(\.x) == [x])
  }

  @Test("Removed here, moved there, and both decided in one frame with a ping")
  func decidedAndMovedAtOnce() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 0))
    let canvas = server.canvas
    let added = SyncFragment(
      .add, uuid: UUID(), className: "Shape", properties: ["label": "moved"])
    func change(_ list: String, _ operation: PropertyOperation) -> SyncFragment {
      SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
        operations: [list: [operation]])
    }
    func sync(_ sequence: Int, _ fragments: SyncFragment...) -> Message {
      var sync = ScopeSync(scopeIndex: 0, fragments: fragments)
      sync.sequence = sequence
      return .scopeSync(sync)
    }
    server.deliver([sync(1, added, change("shapes", .insert(added.uuid, .end)))])
    let shape = try #require(canvas.shapes.first)
    canvas.shapes.remove(shape)
    server.scope.flush()
    let sent = try #require(server.takeSyncs().first)
    server.deliver([
      sync(
        2, change("hidden", .insert(added.uuid, .end)), change("shapes", .remove(added.uuid))),
      .scopeSyncReply(
        ScopeSyncReply(replyTo: sent.index, fragmentReplies: [FragmentReply()], sequence: 3)),
      .ping(Ping(ack: sent.index)),
    ])
    #expect(server.engine.pendingCount == 0)
    #expect(canvas.shapes.isEmpty && Array(canvas.hidden) == [shape])
  }

  @Test("Changed and removed here, kept there")
  func removedByClient() {
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    world.scope.flush()
    expectEqual(x: 0)
  }

  @Test("Changed, sent, changed again and removed here, kept there")
  func removedByClientBehindPending() {
    mine.x = 50
    client.scope.flush()
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    world.scope.flush()
    expectEqual(x: 50)
  }

  /// Removed and put back here, in two sets.
  private func removeAndPutBack() {
    let shape = mine
    client.canvas.shapes.remove(shape)
    client.scope.flush()
    client.canvas.shapes.append(shape)
    client.scope.flush()
  }

  /// What the server sends arrives first, then what the client has sent.
  private func crossServerFirst() {
    world.scope.flush()
    while !client.link!.toClient.isEmpty { world.deliver(client.link!, toServer: false) }
  }

  @Test("Removed and put back here, changed and kept there: what others have changed stays")
  func putBackWhileChanged() {
    removeAndPutBack()
    world.canvas.hidden.append(theirs)
    theirs.x = 3
    theirs.tags = [1]
    crossServerFirst()
    #expect(client.canvas.hidden.map(\.x) == [3] && client.canvas.hidden[0].tags == [1])
    expectEqual(x: 3)
  }

  @Test("Removed, put back and changed here, changed and kept there")
  func putBackAndChanged() {
    removeAndPutBack()
    mine.x = 5
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    theirs.x = 3
    theirs.y = 4
    crossServerFirst()
    #expect(client.canvas.hidden.map(\.x) == [5])
    expectEqual(x: 5)
  }

  @Test("Removed and put back here with parts, which others have changed")
  func putBackWithParts() {
    theirs.parts = [Shape(), Shape()]
    world.settle()
    removeAndPutBack()
    world.canvas.selected = theirs
    theirs.parts.append(Shape())
    theirs.parts[0].x = 8
    crossServerFirst()
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(world.canvas.shapes[0].parts.count == 3)
  }

  @Test("Changed and removed here, changed and kept there")
  func changedByServerMeanwhile() {
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    theirs.x = 3
    world.scope.flush()
    expectEqual(x: 3)
  }

  @Test("Changed and removed by the server, moved by a client")
  func removedByServer() {
    theirs.x = 97
    world.canvas.shapes.remove(theirs)
    world.scope.flush()
    client.canvas.hidden.append(mine)
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    expectEqual(x: 97)
  }

  @Test("Changed and removed here, brought back for a moment by others, and then for good")
  func broughtBackForAMoment() throws {
    let holder = Shape()
    world.canvas.shapes.append(holder)
    world.settle()
    mine.parts.append(Shape())
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    let shape = theirs
    holder.parts.append(shape)
    world.scope.flush()
    world.canvas.shapes.remove(holder)
    world.scope.flush()
    let link = try #require(client.link)
    let frames = try link.toClient.flatMap { try Message.decodeFrame($0).map { try $0.get() } }
    link.toClient = [Message.encodeFrame(frames, asArray: true)]
    world.deliver(link, toServer: false)
    world.canvas.hidden.append(shape)
    crossServerFirst()
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.canvas.hidden.first?.parts.isEmpty == true && client.repaired.isEmpty)
  }

  @Test(
    "Changed, removed, brought back and changed by others while it is removed here: the last counts"
  )
  func severalTimesInOneFrame() throws {
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    let (other, shape) = (theirs, theirs.uuid)
    for (label, list) in [("first", \Canvas.shapes), ("second", \Canvas.hidden)] {
      other.label = label
      world.scope.flush()
      world.canvas.shapes.remove(other)
      world.canvas.hidden.remove(other)
      world.scope.flush()
      world.canvas[keyPath: list].append(other)
      world.scope.flush()
    }
    other.label = "last"
    world.scope.flush()
    let link = try #require(client.link)
    // All of it comes in one frame.
    let frames = try link.toClient.flatMap { try Message.decodeFrame($0).map { try $0.get() } }
    link.toClient = [Message.encodeFrame(frames, asArray: true)]
    world.deliver(link, toServer: false)
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect((client.scope.model(shape) as? Shape)?.label == "last")
  }

  @Test(
    "A new state brings a model back with what was sent of the models that pending sets add below it"
  )
  func addedBelow() {
    let server = ScriptedServer()
    let (shape, part) = (Shape(), Shape())
    server.canvas.shapes.append(shape)
    server.join()
    shape.parts.append(part)
    server.scope.flush()
    part.parts.append(Shape())
    server.canvas.shapes.remove(shape)
    server.scope.flush()
    let shapes: JSONValue = [.string(shape.uuid.wireText)]
    server.replaceSession([
      SyncFragment(
        .change, uuid: server.canvas.uuid, className: "Canvas",
        properties: ["shapes": shapes, "hidden": shapes]),
      SyncFragment(.add, uuid: shape.uuid, className: "Shape", properties: [:]),
    ])
    #expect(server.canvas.hidden.first === shape && shape.parts.first === part)
    #expect(part.parts.isEmpty)
  }
}
