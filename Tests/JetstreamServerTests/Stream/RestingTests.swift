import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Desk: ModelObject {
  @Property(.local) var held: Shape?
}

/// What observers are told and what the engines keep once nothing happens any more.
@Suite("At rest", .paced)
struct RestingTests {
  private let world = InMemoryWorld()
  private let client: WorldClient

  init() {
    world.canvas.shapes.append(Shape())
    client = world.addClient()
    client.join()
    world.settle()
  }

  @Test("A model that comes and goes in one batch notifies no observer of its collection")
  func comesAndGoes() {
    var told = 0
    client.canvas.observeChange(\.shapes, isolation: Ticker.manual().isolation) { told += 1 }
    client.canvas.observeCollectionAdd(client.canvas, \.shapes) { _, _, _ in told += 1 }
    client.scope.pauseIncoming()
    let shape = Shape()
    world.canvas.shapes.append(shape)
    world.settle()
    world.canvas.shapes.remove(shape)
    world.settle()
    client.scope.resumeIncoming()
    world.settle()
    #expect(told == 0)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "A client forgets a removed model although an observer has changed something and changed it back"
  )
  func changedBack() {
    client.canvas.observeCollectionRemove(client.canvas, \.shapes) { canvas, _, _ in
      canvas.name = "changed"
      canvas.name = nil
    }
    world.canvas.shapes.removeAll()
    world.settle()
    world.pass(21)
    #expect(client.engine.restingTables["graveyard"] == 0)
  }

  @Test("A server forgets a removed model when its only client has named a later resume point")
  func resumePoint() {
    client.engine.setMode(.pushOnly, of: client.scope, now: world.now)
    world.settle()
    client.canvas.shapes.removeAll()
    world.settle()
    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.settle()
    world.pass(21)
    #expect(world.server.departedCount(of: world.scope) == 0)
  }

  @Test("A server keeps nothing of a model that a call of modify has inserted and taken back")
  func takenBack() {
    let world = InMemoryWorld()
    world.addClient().join()
    world.settle()
    _ = try? world.scope.modify {
      world.canvas.shapes.append(Shape())
      throw CancellationError()
    }
    world.pass(21)
    #expect(world.canvas.shapes.isEmpty && world.server.departedCount(of: world.scope) == 0)
  }

  @Test("A scope keeps nothing of models that only local properties have held")
  func localHolder() {
    let desk = Desk()
    let scope = Scope(name: "Desk", root: desk, ticker: .manual())
    scope.flush()
    desk.held = Shape()
    desk.held = nil
    scope.ticker.advance(by: .seconds(1))
    #expect(scope.restingTables.filter { $0.value > 0 } == [:])
  }

  @Test("A server counts a model that it has moved and taken back to its own next change set")
  func movedAndTakenBack() {
    let world = InMemoryWorld()
    world.addClient().join()
    world.canvas.name = "seen"
    world.settle()
    world.pass(21)
    _ = try? world.scope.modify {
      let shape = Shape()
      world.canvas.shapes.append(shape)
      world.canvas.shapes.remove(shape)
      world.canvas.shapes.append(shape)
      throw CancellationError()
    }
    #expect(world.server.checkInvariants() == [])
    world.canvas.name = "later"
    world.settle()
    world.pass(21)
    #expect(world.canvas.shapes.isEmpty && world.server.departedCount(of: world.scope) == 0)
  }

  @Test("A server forgets a removed model when its only client has taken in a later full state")
  func fullState() {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.sets = 1
    let world = InMemoryWorld(configuration: configuration)
    let shape = Shape()
    world.canvas.shapes.append(shape)
    let client = world.addClient()
    client.join()
    world.settle()
    client.engine.setMode(.paused, of: client.scope, now: world.now)
    world.settle()
    for name in ["first", "second", "third"] {
      world.canvas.name = name
      world.settle()
    }
    world.canvas.shapes.remove(shape)
    world.settle()
    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.settle()
    world.pass(21)
    #expect(client.canvas.name == "third" && client.canvas.shapes.isEmpty)
    #expect(world.server.departedCount(of: world.scope) == 0)
  }

  @Test("A late acknowledgement of an old state does not take back what a client has named as seen")
  func lateAcknowledgement() throws {
    let world = InMemoryWorld()
    world.canvas.shapes.append(Shape())
    let peer = RawPeer(world)
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"0.1.0","protocol":2,"params":{}}"#)
    func fetch(_ tell: ScopeFetch.Tell, since: ScopePosition? = nil) {
      var fetch = ScopeFetch(name: "Canvas")
      (fetch.tell, fetch.since, fetch.decided) = (tell, since, 0)
      peer.send(peer.stamp(.scopeFetch(fetch)))
    }
    fetch(.missed)
    let before = peer.messages.count
    let replies = peer.submit([
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
        operations: ["shapes": [.remove(world.canvas.shapes[0].uuid)]])
    ])
    #expect(replies.map(\.error) == [nil] && world.canvas.shapes.isEmpty)
    fetch(.everything, since: world.server.positions[0])
    peer.send(.ping(Ping(ack: before)))
    peer.acknowledge()
    world.pass(5)
    #expect(world.server.departedCount(of: world.scope) == 0)
  }
}
