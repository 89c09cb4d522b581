import Foundation
@testable import Jetstream
import JetstreamServer
import Testing

@Suite("Tables that have a bound", .paced)
struct BoundedTableTests {
  /// Makes a client with the scope, which keeps so many messages while that is paused.
  private func joined(keeping messages: Int) -> (InMemoryWorld, WorldClient) {
    var configuration = ClientEngine.Configuration()
    configuration.limits.pausedLimit = .init(messages: messages, bytes: 1 << 20)
    let world = InMemoryWorld()
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    return (world, client)
  }

  @Test(
    "A scope keeps so many bytes of its last sets; a client that has missed more gets the state")
  func streamBytes() throws {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.bytes = 10_000
    let world = InMemoryWorld(configuration: configuration)
    let client = world.addClient()
    client.join()
    world.settle()
    let link = try #require(client.link)
    world.cut(link)
    client.wantsOnline = false
    world.server.advance(to: world.now + .seconds(3600))
    for number in 0..<100 {
      world.canvas.name = String(repeating: "x", count: 1000) + "\(number)"
      world.scope.flush()
    }
    #expect(world.server.streamBytes(of: world.scope).map { $0 <= 20_000 } == true)
    client.wantsOnline = true
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.scope.conflicts.isEmpty)
  }

  @Test("A paused scope keeps so many messages, holds up no other scope, and misses nothing")
  func paused() throws {
    var configuration = ClientEngine.Configuration()
    configuration.limits.pausedLimit = .init(messages: 20, bytes: 1 << 20)
    let world = InMemoryWorld()
    let otherCanvas = Canvas()
    let other = Scope(name: "Other", root: otherCanvas, ticker: world.serverTicker)
    world.moreScopes["Other"] = other
    world.server.host(other)
    let client = world.addClient(configuration: configuration)
    client.join()
    let second = Scope(name: "Other", root: Canvas(), ticker: client.ticker)
    client.engine.fetch(second, params: [:], now: world.now) { _ in }
    world.settle()
    client.scope.pauseIncoming()
    client.canvas.likes += 1
    client.canvas.shapes.append(Shape())
    for number in 0..<200 {
      world.canvas.likes += 1
      world.canvas.name = "\(number)"
      otherCanvas.likes += 1
      other.flush()
      world.exchange()
      if number.isMultiple(of: 50) { world.pass(1) }
    }
    client.canvas.likes += 1
    world.pass(30)
    #expect(client.engine.heldCount <= 30)
    #expect((second.root as? Canvas)?.likes == 200, "the other scope goes on")
    #expect(client.canvas.likes == 2)
    client.scope.resumeIncoming()
    #expect(client.engine.state(of: client.scope)?.isUpToDate == false)
    world.settle()
    #expect(client.canvas.likes == 202 && client.canvas.shapes.count == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.engine.state(of: client.scope)?.isSynced == true)
    // It goes on being told.
    world.canvas.name = "after"
    world.settle()
    #expect(client.canvas.name == "after" && client.scope.conflicts.isEmpty)
  }

  @Test("A sync during which too much is held asks again, and ends")
  func pausedSync() throws {
    let (world, client) = joined(keeping: 5)
    client.engine.setMode(.manual, of: client.scope, now: world.now)
    world.pass(1)
    for _ in 0..<20 {
      world.canvas.likes += 1
      world.exchange()
    }
    client.scope.pauseIncoming()
    var results: [Result<Void, SyncError>] = []
    client.engine.sync(client.scope, now: world.now) { results.append($0) }
    world.pass(5)
    #expect(results.isEmpty && client.canvas.likes == 0 && client.engine.heldCount <= 5)
    client.scope.resumeIncoming()
    world.pass(5)
    #expect(client.canvas.likes == 20)
    #expect(results.count == 1)
    try results.first?.get()
  }

  @Test("A session that ends while too much is held begins the next one as any other")
  func pausedSessionLoss() throws {
    let (world, client) = joined(keeping: 5)
    client.scope.pauseIncoming()
    for _ in 0..<20 {
      world.canvas.likes += 1
      world.exchange()
    }
    world.cut(try #require(client.link))
    world.server.advance(to: world.now + .seconds(3600))
    for _ in 0..<20 {
      world.canvas.likes += 1
      world.pass(1)
    }
    client.scope.resumeIncoming()
    world.settle()
    #expect(client.canvas.likes == 40)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Own sets that count somewhere unknown are kept within the limit, the last ones")
  func unplaced() {
    var writes = OwnWrites()
    let uuid = UUID()
    for number in 0..<2000 {
      let fragment = SyncFragment(
        .change, uuid: uuid, className: "Canvas",
        properties: ["name": .integer(Int64(number)), "likes": .integer(Int64(number))])
      writes.accept(
        ChangeSet(fragments: [fragment], undo: []), number: number, except: [], at: nil)
    }
    #expect(writes.count <= 512)
    let last = writes.takeUnplaced()
    #expect(last.count == 2)
    #expect(last.allSatisfy { $0.1.fragment.properties[$0.key] == .integer(1999) })
  }

  @Test("Of own change sets at unknown sequences, the lowest numbers are forgotten first")
  func unplacedInOtherOrder() {
    var writes = OwnWrites(limit: 2)
    let uuid = UUID()
    for number in [9, 1, 2, 3, 4] {
      writes.accept(rename(number, of: uuid), number: number, except: [], at: nil)
    }
    #expect(writes.takeUnplaced().map { $0.1.number } == [9])
  }

  @Test("A write at an unknown sequence is forgotten with those that may have replaced it")
  func unplacedBehindLimit() {
    var writes = OwnWrites(limit: 2)
    let uuid = UUID()
    writes.accept(rename(1, of: uuid), number: 1, except: [], at: nil)
    writes.accept(rename(2, of: uuid), number: 2, except: [], at: 12)
    for number in 3...6 {
      writes.accept(rename(number, of: UUID()), number: number, except: [], at: 10 + number)
    }
    #expect(writes.takeUnplaced().isEmpty)
  }

  /// Returns a change set that writes its number into a name.
  private func rename(_ number: Int, of uuid: UUID) -> ChangeSet {
    let fragment = SyncFragment(
      .change, uuid: uuid, className: "Canvas", properties: ["name": .integer(Int64(number))])
    return ChangeSet(fragments: [fragment], undo: [])
  }

  @Test("Of a property that is changed all the time, accepted operations do not pile up")
  func late() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    let replica = try #require(server.engine.replica(of: server.scope))
    var waiting: ScopeSync?
    for number in 1...1000 {
      server.scope.modify {
        server.canvas.shapes.append(Shape())
        server.canvas.likes += 1
      }
      let next = server.takeSyncs().first
      if let waiting {
        let replies = waiting.fragments.map { _ in FragmentReply() }
        server.deliver([
          .scopeSyncReply(
            ScopeSyncReply(replyTo: waiting.index, fragmentReplies: replies, sequence: number))
        ])
      }
      waiting = next
      #expect(server.engine.pendingCount == 1)
      #expect(replica.overlay.lateCount < 128 + number)
    }
    #expect(replica.overlay.lateCount < 1000, "two properties have 999 accepted operations each")
    #expect(server.canvas.shapes.count == 1000 && server.canvas.likes == 1000)
    #expect(server.engine.checkInvariants() == [])
  }
}
