import Foundation
@testable import Jetstream
import JetstreamServer
import Testing

/// Two write one property and do not know of each other: the first one is told that what it wrote, and the
/// server took, counts no more.
@Suite("What somebody else has overwritten unseen is in the ledger")
struct OverwrittenTests {
  private let world: InMemoryWorld
  private let one: WorldClient
  private let two: WorldClient

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.sets = 8
    world = InMemoryWorld(configuration: configuration)
    world.canvas.name = "before"
    (one, two) = (world.addClient(), world.addClient())
    one.join()
    two.join(as: "Grace")
    world.settle()
  }

  private func conflicts(_ client: WorldClient) -> [Conflict] { client.scope.conflicts.items }

  /// The second client writes without knowing what the first one has written before.
  private func cross(_ first: () -> Void, _ second: () -> Void) {
    first()
    one.flush()
    second()
    two.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    while !two.link!.toServer.isEmpty { world.deliver(two.link!, toServer: true) }
    world.settle()
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(two.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("The ledger has both values, the one before, and who has written the other one")
  func bothValues() throws {
    var handle: ChangeSetHandle?
    cross {
      handle = one.scope.modify("rename", author: "Ada") { one.canvas.name = "mine" }
    } _: {
      two.scope.modify(author: "Ada Lovelace") { two.canvas.name = "theirs" }
    }
    let item = try #require(conflicts(one).first)
    #expect(conflicts(one).count == 1 && conflicts(two).isEmpty)
    #expect(item.reason == .overwritten && item.property == "name" && item.model == one.canvas.uuid)
    #expect(item.base == "before" && item.mine == .value("mine") && item.theirs == "theirs")
    #expect(item.theirAuthor == "Grace" && item.author == "Ada" && item.message == "rename")
    #expect(handle?.state == .accepted && handle?.changeSet.id == item.changeSet)
    // It can be done again, which is a set like others.
    one.scope.retry([item])
    world.settle()
    #expect(two.canvas.name == "mine" && conflicts(one).isEmpty && conflicts(two).isEmpty)
  }

  @Test("Who has seen what was there has decided against it")
  func seen() {
    one.canvas.name = "mine"
    world.settle()
    two.canvas.name = "theirs"
    world.settle()
    #expect(one.canvas.name == "theirs" && conflicts(one).isEmpty)
    // What was overwritten knowingly is not overwritten a second time.
    cross {
      one.canvas.likes += 1
    } _: {
      two.canvas.name = "theirs again"
    }
    #expect(conflicts(one).isEmpty && conflicts(two).isEmpty)
  }

  @Test("The same value twice is no conflict, nor are steps of counters and collections")
  func compatible() {
    cross {
      one.canvas.name = "same"
      one.canvas.likes += 1
      one.canvas.shapes.append(Shape())
    } _: {
      two.canvas.name = "same"
      two.canvas.likes += 2
      two.canvas.shapes.append(Shape())
    }
    #expect(conflicts(one).isEmpty && conflicts(two).isEmpty)
    #expect(world.canvas.likes == 3 && world.canvas.shapes.count == 2)
  }

  @Test("Who writes the property anew, before or after the other's value comes, has no conflict")
  func writtenAnew() {
    cross {
      one.canvas.name = "mine"
      one.flush()
      while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
      one.canvas.name = "mine again"
    } _: {
      two.canvas.name = "theirs"
    }
    #expect(conflicts(one).map(\.mine) == [.value("mine again")])
    one.canvas.name = "settled"
    world.settle()
    #expect(conflicts(one).isEmpty && two.canvas.name == "settled")
    // The other's value comes when this one is not sent yet.
    one.canvas.name = "first"
    one.flush()
    two.canvas.name = "between"
    two.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    while !two.link!.toServer.isEmpty { world.deliver(two.link!, toServer: true) }
    one.canvas.name = "last"
    world.settle()
    #expect(world.canvas.name == "last" && conflicts(one).isEmpty)
    #expect(conflicts(two).map(\.mine) == [.value("between")])
  }

  @Test("A value that was taken and overwritten before the answer came is told of as well")
  func afterResume() throws {
    two.scope.modify(author: "Ada Lovelace") { two.canvas.name = "theirs" }
    one.canvas.name = "mine"
    one.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    world.cut(one.link!)
    while !two.link!.toServer.isEmpty { world.deliver(two.link!, toServer: true) }
    world.server.advance(to: world.now + .seconds(3600))
    world.settle()
    #expect(one.canvas.name == "theirs")
    let item = try #require(conflicts(one).first)
    #expect(conflicts(one).count == 1 && item.mine == .value("mine"))
    #expect(item.reason == .overwritten && item.theirAuthor == "Grace")
  }

  @Test("What was written offline overwrites unseen whatever was written meanwhile")
  func offline() {
    world.cut(two.link!)
    two.canvas.name = "written offline"
    two.flush()
    one.canvas.name = "mine"
    one.flush()
    for _ in 0..<3 {
      one.canvas.likes += 1
      one.flush()
    }
    world.settle()
    #expect(one.canvas.name == "written offline")
    #expect(conflicts(one).map(\.mine) == [.value("mine")] && conflicts(two).isEmpty)
  }

  @Test("Of the server's own changes nothing was overwritten unseen")
  func byServer() {
    one.canvas.name = "mine"
    world.settle()
    world.canvas.name = "the server's"
    world.settle()
    #expect(one.canvas.name == "the server's" && conflicts(one).isEmpty)
  }

  @Test("A server keeps with a set what its maker has said of it")
  func record() throws {
    let set = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "theirs"])
    let told = ScopeRecord(
      sequence: 3, fragments: [set], origin: ChangeOrigin(author: "Grace", seen: 1))
    let untold = ScopeRecord(sequence: 4, fragments: [set])
    for record in [told, untold] { #expect(try ScopeRecord(json: record.json) == record) }
    #expect(untold.json.text.contains("seen") == false)
    let bad: JSONValue = ["sequence": 3, "fragments": [], "seen": "all"]
    #expect(
      throws: FragmentError.invalid(field: "seen", problem: "should be a whole number from 0 up")
    ) { try ScopeRecord(json: bad) }
  }

  @Test("Where the whole state has to be fetched, what it shows instead is a conflict, too")
  func wholeState() throws {
    one.canvas.name = "mine"
    one.canvas.selected = nil
    one.flush()
    // It gets there, but the answer does not come.
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    world.cut(one.link!)
    world.server.advance(to: world.now + .seconds(3600))
    for number in 0..<40 {
      two.canvas.name = "theirs \(number)"
      two.flush()
      world.exchange()
    }
    let since = world.fetches.count
    world.settle()
    #expect(world.fetches.count > since && one.canvas.name == "theirs 39")
    let item = try #require(conflicts(one).first)
    #expect(conflicts(one).count == 1 && item.reason == .overwritten && item.theirAuthor == nil)
    #expect(item.mine == .value("mine") && item.theirs == "theirs 39" && item.base == "before")
  }

  @Test("Values that nobody has changed since are no conflict, also in a whole state")
  func unchangedState() {
    one.canvas.name = "mine"
    one.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    world.cut(one.link!)
    world.server.advance(to: world.now + .seconds(3600))
    for _ in 0..<40 {
      two.canvas.likes += 1
      two.flush()
      world.exchange()
    }
    world.settle()
    #expect(one.canvas.name == "mine" && one.canvas.likes == 40 && conflicts(one).isEmpty)
  }

  @Test(
    "A client of version 1 says of nothing what it has seen, and nothing is taken for a conflict")
  func oldPeers() {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = 1
    let old = world.addClient(configuration: configuration)
    old.join()
    world.settle()
    old.canvas.name = "old"
    old.flush()
    one.canvas.name = "mine"
    one.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    world.settle()
    #expect(conflicts(one).isEmpty && conflicts(old).isEmpty)
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("What counts instead of a rejected value may be one's own, whoever has written before")
  func ownValueCounts() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "same", sequence: 7))
    let canvas = server.canvas
    server.scope.modify { canvas.name = "one" }
    server.scope.modify { canvas.name = "two" }
    let sent = server.takeSyncs()
    var theirs = ScopeSync(
      scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: canvas.uuid, className: "Canvas", properties: ["name": "theirs"])
      ])
    (theirs.index, theirs.sequence, theirs.origin) = (3, 8, ChangeOrigin(author: "Grace", seen: 7))
    server.receive(
      .scopeSync(theirs),
      .scopeSyncReply(
        ScopeSyncReply(
          index: 4, replyTo: sent[0].index, fragmentReplies: [FragmentReply()], sequence: 9)))
    server.receive(
      .scopeSyncReply(
        ScopeSyncReply(
          index: 5, replyTo: sent[1].index,
          fragmentReplies: [FragmentReply(error: .rejected("no"))])))
    let item = try #require(server.scope.conflicts.items.first)
    #expect(item.mine == .value("two") && item.theirs == "one" && item.theirAuthor == nil)
  }

  @Test("A long author is not told to others, and not taken from others")
  func longAuthor() {
    let name = String(repeating: "a", count: 1025)
    let three = world.addClient()
    three.join(as: name)
    world.settle()
    cross {
      one.canvas.name = "mine"
    } _: {
      three.canvas.name = "theirs"
      three.flush()
    }
    #expect(conflicts(one).map(\.theirAuthor) == [nil])
    var sync = ScopeSync(index: 1, scopeIndex: 0, fragments: [])
    sync.origin.author = name
    let frame = Message.encodeFrame([.scopeSync(sync)], asArray: true)
    guard case .success(let messages) = InMemoryWorld.decode(frame) else {
      Issue.record("The frame cannot be read.")
      return
    }
    #expect(throws: MessageError.self) { try messages[0].get() }
    let short = Message.scopeSync(ScopeSync(scopeIndex: 0, fragments: [])).roughSize
    #expect(Message.scopeSync(sync).roughSize == short + 1025)
  }

  @Test("Who has written what counts instead of a rejected value is known while it is pending")
  func authorOfRejection() throws {
    let shape = Shape()
    world.canvas.shapes.append(shape)
    world.settle()
    let (mine, theirs) = (one.canvas.shapes[0], two.canvas.shapes[0])
    two.scope.modify(author: "Ada Lovelace") { theirs.label = "theirs" }
    one.scope.modify { mine.label = "mine" }
    while !two.link!.toServer.isEmpty { world.deliver(two.link!, toServer: true) }
    while !one.link!.toClient.isEmpty { world.deliver(one.link!, toServer: false) }
    world.canvas.shapes = []
    world.settle()
    let item = try #require(conflicts(one).first)
    #expect(item.property == "label" && item.theirAuthor == "Grace" && item.theirs == nil)
  }
}
