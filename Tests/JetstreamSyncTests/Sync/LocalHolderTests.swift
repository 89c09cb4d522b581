import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Shelf: ModelObject {
  @Property var items: ModelArray<Thing> = []
  @Property var best: Thing?
  @Property(.local) var focus: Thing?
}

private final class Thing: ModelObject {
  @Property var name = ""
  @Property var parts: ModelArray<Thing> = []
}

@Suite("What only local properties hold does not exist for others", .paced)
struct LocalHolderTests {
  private let world = InMemoryWorld()
  private let shelf = Shelf()
  private let scope: Scope
  private let one: WorldClient
  private let two: WorldClient

  init() {
    scope = Scope(name: "Canvas", root: shelf, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    let thing = Thing()
    thing.name = "thing"
    thing.parts.append(Thing())
    shelf.items.append(thing)
    scope.flush()
    (one, two) = (world.addClient(root: Shelf()), world.addClient(root: Shelf()))
    for client in [one, two] { client.join() }
    world.settle()
  }

  private func shelf(_ client: WorldClient) -> Shelf { client.scope.root as! Shelf }

  private func expectEqual(sourceLocation: SourceLocation = #_sourceLocation) {
    world.pass(15)
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == scope.canonicalJSON, sourceLocation: sourceLocation)
      #expect(client.repaired.isEmpty, sourceLocation: sourceLocation)
      let (digest, expected) = (ScopeDigest(client.scope).total(), ScopeDigest(scope).total())
      #expect(digest == expected, sourceLocation: sourceLocation)
    }
  }

  /// How often a client was told of a model that was added.
  private func additions(of uuid: UUID, to client: WorldClient) -> Int {
    client.heard.count { message in
      guard case .scopeSync(let sync) = message else { return false }
      return sync.fragments.contains { $0.kind == .add && $0.uuid == uuid }
    }
  }

  @Test("A model that a local property of the server holds is added again as a new one")
  func serverHolder() throws {
    let uuid = shelf.items[0].uuid
    shelf.focus = shelf.items[0]
    let thing = shelf(one).items.remove(at: 0)
    world.settle()
    #expect(shelf.items.isEmpty && shelf.focus != nil && two.scope.model(uuid) == nil)
    thing.name = "anew"
    shelf(one).items.append(thing)
    world.settle()
    #expect(shelf(two).items.map(\.name) == ["anew"] && shelf.items[0] === shelf.focus)
    #expect(additions(of: uuid, to: two) == 1 && additions(of: uuid, to: one) == 0)
    expectEqual()
  }

  @Test("An insertion by a client that has not seen the removal brings the model back for all")
  func revived() throws {
    let uuid = shelf.items[0].uuid
    shelf.focus = shelf.items[0]
    shelf(one).items.remove(at: 0)
    shelf(two).best = shelf(two).items[0]
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    world.settle()
    #expect(shelf.best?.uuid == uuid && shelf(one).best?.name == "thing")
    #expect(shelf(one).best?.parts.count == 1 && additions(of: uuid, to: one) == 1)
    expectEqual()
  }

  @Test("A change of a model that only the server holds is rejected")
  func change() {
    let uuid = shelf.items[0].uuid
    shelf.focus = shelf.items[0]
    shelf.items.remove(at: 0)
    scope.flush()
    let peer = RawPeer.joined(world, protocol: 2)
    let reply = peer.submit([
      SyncFragment(.change, uuid: uuid, className: "Thing", properties: ["name": "x"])
    ])[0]
    #expect(reply.error?.message.hasPrefix("ModelObject not found") == true)
    shelf.items.append(shelf.focus!)
    world.settle()
    expectEqual()
  }

  @Test("A model that a local property of a client holds is theirs again when others bring it back")
  func clientHolder() throws {
    let uuid = shelf.items[0].uuid
    shelf(one).focus = shelf(one).items[0]
    shelf(one).items.remove(at: 0)
    shelf(two).best = shelf(two).items[0]
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    world.settle()
    #expect(shelf(one).best === shelf(one).focus && shelf.best?.uuid == uuid)
    let sent = one.sent.contains { String(decoding: $0, as: UTF8.self).contains(#""type":"add""#) }
    #expect(!sent, "others have it")
    shelf(one).best?.name = "changed"
    world.settle()
    #expect(shelf.best?.name == "changed")
    expectEqual()
  }

  @Test("What an observer writes at the moment in which others bring the model back is sent")
  func observed() throws {
    shelf(one).focus = shelf(one).items[0]
    shelf(one).items.remove(at: 0)
    let token = shelf(one).observeCollectionAdd(shelf(one), \.items) { _, thing, _ in
      thing.name = "observed"
    }
    let thing = shelf(two).items[0]
    world.settle()
    shelf(two).items.append(thing)
    world.settle()
    #expect(shelf(one).items[0] === shelf(one).focus && shelf(two).items[0] === thing)
    #expect(shelf.items.map(\.name) == ["observed"])
    expectEqual()
    token.cancel()
  }

  @Test("What others do while the removal is pending counts when they bring the model back")
  func pendingRemoval() throws {
    let link = try #require(one.link)
    shelf(one).focus = shelf(one).items[0]
    shelf(one).items.remove(at: 0)
    shelf(one).focus?.name = "mine alone"
    one.flush()
    shelf(two).items[0].name = "theirs"
    shelf(two).best = shelf(two).items[0]
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(shelf(one).best === shelf(one).focus && shelf(one).focus?.name == "theirs")
    world.settle()
    expectEqual()
  }

  @Test(
    "A retried change of a model that only local properties hold is sent once a synced property holds it"
  )
  func retried() throws {
    let thing = shelf(one).items[0]
    try one.scope.modify(procedure: "none") { thing.name = "mine" }
    world.settle()
    let conflicts = one.scope.conflicts
    #expect(conflicts.items.map(\.property) == ["name"] && thing.name == "thing")
    shelf(one).focus = thing
    shelf(one).items.remove(at: 0)
    world.settle()
    #expect(conflicts.items.count == 1 && scope.model(thing.uuid) == nil)
    let handle = one.scope.retry(conflicts.items)
    #expect(thing.name == "mine" && conflicts.items.isEmpty)
    #expect(handle.changeSet.fragments.isEmpty && handle.state == .accepted)
    world.settle()
    #expect(scope.model(thing.uuid) == nil && two.scope.model(thing.uuid) == nil)
    shelf(one).best = thing
    world.settle()
    #expect(shelf.best?.name == "mine" && shelf(two).best?.name == "mine")
    #expect(conflicts.items.isEmpty)
    expectEqual()
  }

  @Test("A rejected removal below a model that only a local property holds shares nothing")
  func returnedBelow() throws {
    let (thing, part) = (shelf(one).items[0], shelf(one).items[0].parts[0])
    shelf(one).focus = thing
    try one.scope.modify(procedure: "none") { thing.parts.removeAll() }
    shelf(one).items.removeAll()
    world.settle()
    #expect(shelf(one).focus === thing && thing.parts.first === part)
    #expect(one.scope.sharedModel(thing.uuid) == nil && one.scope.sharedModel(part.uuid) == nil)
    expectEqual()
  }

  @Test("A model that a local property has held and let go comes back as others have it")
  func letGo() throws {
    let link = try #require(one.link)
    shelf(one).focus = shelf(one).items[0]
    shelf(one).items.remove(at: 0)
    one.flush()
    shelf(one).focus?.name = "mine alone"
    one.flush()
    shelf(one).focus = nil
    shelf(two).best = shelf(two).items[0]
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(shelf(one).best?.name == "thing")
    world.settle()
    expectEqual()
  }
}
