import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Clients that write to one dictionary at the same time.
@Suite("Dictionaries of models between clients")
struct DictionarySyncTests {
  private let world = InMemoryWorld()
  private let one: WorldClient
  private let two: WorldClient

  init() {
    (one, two) = (world.addClient(), world.addClient())
    one.join()
    two.join()
    world.settle()
  }

  private func shape(_ label: String) -> Shape {
    let shape = Shape()
    shape.label = label
    return shape
  }

  private func labels(_ canvas: Canvas) -> [String: String] {
    Dictionary(uniqueKeysWithValues: canvas.named.map { ($0.key, $0.value.label) })
  }

  /// Lets everything arrive, and expects all three to have these labels.
  private func expect(
    _ labels: [String: String], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    world.settle()
    #expect(self.labels(world.canvas) == labels, sourceLocation: sourceLocation)
    for client in [one, two] {
      #expect(
        client.scope.canonicalJSON == world.scope.canonicalJSON, sourceLocation: sourceLocation)
    }
  }

  /// Sends the changes of both, those of `one` first.
  private func flush() {
    one.scope.flush()
    if let link = one.link { world.deliver(link, toServer: true) }
    two.scope.flush()
  }

  @Test("Entries of different keys both stay; of one key, the last in the server's order does")
  func atOnce() {
    one.canvas.named["mine"] = shape("1")
    one.canvas.named["both"] = shape("1")
    two.canvas.named["theirs"] = shape("2")
    two.canvas.named["both"] = shape("2")
    flush()
    expect(["mine": "1", "theirs": "2", "both": "2"])
    let lost = one.scope.conflicts.items.filter { $0.property == "named/both" }
    #expect(lost.map(\.reason) == [.overwritten])
    #expect(two.scope.conflicts.items.isEmpty)
  }

  @Test("A removal and a new model under one key: the last counts")
  func removal() {
    one.canvas.named["a"] = shape("old")
    expect(["a": "old"])
    one.canvas.named["a"] = shape("new")
    two.canvas.named["a"] = nil
    flush()
    expect([:])
    one.canvas.named["a"] = nil
    two.canvas.named["a"] = shape("newer")
    flush()
    expect(["a": "newer"])
  }

  @Test(
    "A model that one moves to another key while the other moves it into a collection is in both")
  func moves() {
    one.canvas.named["a"] = shape("it")
    expect(["a": "it"])
    one.canvas.named["b"] = one.canvas.named["a"]
    one.canvas.named["a"] = nil
    two.canvas.shapes.append(two.canvas.named["a"]!)
    two.canvas.named["a"] = nil
    flush()
    expect(["b": "it"])
    #expect(world.canvas.shapes.first === world.canvas.named["b"])
  }

  @Test("Undoing takes back one's own entries, and leaves those of others")
  func undo() {
    let history = UndoHistory(of: one.scope)
    one.canvas.named["mine"] = shape("1")
    one.scope.flush()
    world.settle()
    two.canvas.named["theirs"] = shape("2")
    world.settle()
    history.undo()
    expect(["theirs": "2"])
    history.redo()
    expect(["mine": "1", "theirs": "2"])
  }

  @Test(
    "A model that is put back keeps the entries that others have changed, and loses those that it has lost"
  )
  func putBack() throws {
    let whole = shape("whole")
    one.canvas.named["whole"] = whole
    whole.corners = [1: shape("a"), 2: shape("b"), 3: shape("c")]
    expect(["whole": "whole"])
    one.canvas.named["whole"] = nil
    one.scope.flush()
    whole.corners[1] = nil
    whole.corners[4] = shape("d")
    one.canvas.named["whole"] = whole
    let theirs = try #require(two.canvas.named["whole"])
    theirs.corners[2] = shape("B")
    theirs.corners[5] = shape("e")
    two.scope.flush()
    if let link = two.link { world.deliver(link, toServer: true) }
    expect(["whole": "whole"])
    let corners = try #require(world.canvas.named["whole"]?.corners)
    #expect(corners.map { "\($0.key)\($0.value.label)" } == ["2B", "3c", "4d", "5e"])
  }

  @Test(
    "A model that is put back, and that the server has forgotten by then, has the entries of the addition alone"
  )
  func putBackAndForgotten() throws {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter.messages = 1
    configuration.limits.sendWindow.messages = 1
    let world = InMemoryWorld()
    let two = world.addClient(configuration: configuration)
    configuration.clientID = UUID()
    let one = world.addClient(configuration: configuration)
    for client in [one, two] { client.join() }
    world.settle()
    let whole = shape("whole")
    one.canvas.named["whole"] = whole
    world.settle()
    // The other two wait for the server's answer to this one.
    one.canvas.likes += 1
    one.scope.flush()
    one.canvas.named["whole"] = nil
    one.scope.flush()
    one.canvas.named["whole"] = whole
    one.scope.flush()
    try #require(two.canvas.named["whole"]).corners[5] = shape("e")
    two.scope.flush()
    two.canvas.named["whole"] = nil
    two.scope.flush()
    // Everybody has seen the removal before the server gets to know of the return.
    let (mine, theirs) = (try #require(one.link), try #require(two.link))
    while !theirs.toServer.isEmpty || !theirs.toClient.isEmpty {
      world.deliver(theirs, toServer: !theirs.toServer.isEmpty)
    }
    while !mine.toClient.isEmpty { world.deliver(mine, toServer: false) }
    #expect(whole.corners[5]?.label == "e")
    while !mine.toServer.isEmpty { world.deliver(mine, toServer: true) }
    world.server.advance(to: world.now)
    world.settle()
    #expect(world.canvas.named["whole"]?.corners.isEmpty == true)
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  @Test(
    "A model that is put back keeps its entries although the server has lost that it had them, or all of it",
    arguments: [false, true])
  func historyLost(isWhole: Bool) throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "old", sequence: 7))
    let (whole, part) = (shape("whole"), shape("part"))
    server.canvas.shapes.append(part)
    server.canvas.named["whole"] = whole
    whole.corners[3] = part
    server.scope.flush()
    let first = try #require(server.takeSyncs().first)
    server.reply(to: first.index, FragmentReply(), FragmentReply(), FragmentReply())
    server.canvas.named["whole"] = nil
    server.scope.flush()
    server.canvas.named["whole"] = whole
    server.scope.flush()
    #expect(server.takeSyncs().count == 2)
    server.loseSession()
    var root: JSONObject = ["shapes": [.string(part.uuid.wireText)], "hidden": []]
    if !isWhole { root["named/whole"] = .string(whole.uuid.wireText) }
    var state = [
      SyncFragment(.change, uuid: server.canvas.uuid, className: "Canvas", properties: root),
      SyncFragment(.add, uuid: part.uuid, className: "Shape", properties: ["label": "part"]),
    ]
    if !isWhole {
      state.append(
        SyncFragment(.add, uuid: whole.uuid, className: "Shape", properties: ["label": "whole"]))
    }
    server.grant(ScopePosition(epoch: "new", sequence: 2), state)
    #expect(server.historyLosses == 1)
    for sync in server.takeSyncs() {
      server.deliver([
        .scopeSyncReply(
          ScopeSyncReply(
            replyTo: sync.index, fragmentReplies: sync.fragments.map { _ in FragmentReply() }))
      ])
    }
    #expect(server.engine.pendingCount == 0)
    #expect(server.canvas.named["whole"]?.corners[3] === server.canvas.shapes.first)
  }

  @Test("A state that does not name what a pending addition puts back leaves it visible")
  func putBackAndState() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "old", sequence: 7))
    let (whole, part) = (shape("whole"), shape("part"))
    server.canvas.shapes.append(part)
    server.canvas.named["whole"] = whole
    server.scope.flush()
    let first = try #require(server.takeSyncs().first)
    server.reply(to: first.index, FragmentReply(), FragmentReply(), FragmentReply())
    server.canvas.named["whole"] = nil
    server.scope.flush()
    whole.corners[3] = part
    whole.x = 5
    server.canvas.named["whole"] = whole
    server.scope.flush()
    server.loseSession()
    server.grant(
      ScopePosition(epoch: "new", sequence: 2),
      [
        SyncFragment(
          .change, uuid: server.canvas.uuid, className: "Canvas",
          properties: [
            "shapes": [.string(part.uuid.wireText)], "hidden": [],
            "named/whole": .string(whole.uuid.wireText),
          ]),
        SyncFragment(.add, uuid: part.uuid, className: "Shape", properties: ["label": "part"]),
        SyncFragment(.add, uuid: whole.uuid, className: "Shape", properties: ["label": "whole"]),
      ])
    #expect(whole.corners[3] === part && whole.x == 5)
  }

  @Test("An entry whose model the server rejects gives way to what the others have")
  func rejected() {
    one.canvas.named["a"] = shape("kept")
    expect(["a": "kept"])
    let client = world.addClient(models: [ClientShape.self])
    client.join()
    world.settle()
    client.canvas.named["a"] = ClientShape()
    client.scope.flush()
    world.settle()
    #expect(!client.rejections.isEmpty)
    #expect(labels(client.canvas) == ["a": "kept"])
    expect(["a": "kept"])
  }

  @Test("A model is pending while the server has not decided about one of its entries")
  func pending() {
    one.canvas.named["a"] = shape("a")
    expect(["a": "a"])
    #expect(!one.engine.isPending(one.canvas))
    one.canvas.named["a"] = nil
    one.scope.flush()
    #expect(one.engine.isPending(one.canvas))
    expect([:])
    #expect(!one.engine.isPending(one.canvas))
  }
}

/// A class that the server does not know.
private final class ClientShape: Shape {}
