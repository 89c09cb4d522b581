import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("Decisions that a client does not say it knows", .paced)
struct UnknownDecisionTests {
  private let client = UUID()

  private func world(bytes: Int?) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.limits.unknownDecisionBytes = bytes
    return InMemoryWorld(configuration: configuration)
  }

  private func peer(in world: InMemoryWorld, as client: UUID? = nil, decided: Int? = nil) -> RawPeer
  {
    let peer = RawPeer(world)
    _ = peer.createSession()
    var fetch = ScopeFetch(name: "Canvas", client: client ?? self.client)
    fetch.decided = decided
    peer.send(peer.stamp(.scopeFetch(fetch)))
    return peer
  }

  /// Sends a change set of `count` fragments that each add one to the canvas's likes, or change a model that is not there.
  /// Returns the index of the message.
  @discardableResult
  private func submit(
    _ peer: RawPeer, number: Int, decided: Int? = nil, count: Int = 1, isRejected: Bool = false
  ) -> Int {
    let uuid = isRejected ? UUID() : peer.world.canvas.uuid
    var fragment = SyncFragment(.change, uuid: uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(1)]
    var sync = ScopeSync(
      scopeIndex: peer.scopeIndex, fragments: Array(repeating: fragment, count: count))
    (sync.number, sync.decided) = (number, decided)
    let message = peer.stamp(.scopeSync(sync))
    peer.send(message)
    return message.index
  }

  @Test("The session of a client that never says it ends, and loses and repeats nothing")
  func silent() {
    let world = world(bytes: 700)
    let first = peer(in: world)
    for number in 1...5 { submit(first, number: number) }
    #expect(first.close == nil && world.canvas.likes == 5)
    submit(first, number: 6)
    #expect(first.close?.code == 4097)
    #expect(first.close?.reason.contains("too-many-decisions") == true)
    #expect(world.canvas.likes == 5 && world.limitHits == [.unknownDecisionBytes: 1])

    // In the next session, too, until it says what it knows.
    let second = peer(in: world)
    let again = submit(second, number: 5)
    #expect(second.replies(to: again) == [FragmentReply()] && second.close == nil)
    submit(second, number: 6)
    #expect(second.close?.code == 4097)
    let third = peer(in: world, decided: 5)
    for number in 6...9 { submit(third, number: number) }
    #expect(third.close == nil && world.canvas.likes == 9)
  }

  @Test(
    "A change set of any length that is accepted as it is counts once, others count with each reply"
  )
  func replies() {
    let world = world(bytes: 2_000)
    let peer = peer(in: world)
    let accepted = submit(peer, number: 1, count: 30)
    submit(peer, number: 2, count: 30)
    #expect(peer.close == nil && world.canvas.likes == 60)
    #expect(peer.replies(to: accepted) == (0..<30).map { _ in FragmentReply() })
    submit(peer, number: 3, decided: 2, count: 30, isRejected: true)
    #expect(peer.close == nil)
    submit(peer, number: 4, decided: 2)
    #expect(peer.close?.code == 4097 && world.canvas.likes == 60)
  }

  @Test("A decision larger than the limit that the client knows does not count")
  func largeAndKnown() {
    let world = world(bytes: 2_000)
    let peer = peer(in: world)
    for number in 1...5 {
      submit(peer, number: number, decided: number - 1, count: 30, isRejected: true)
    }
    submit(peer, number: 6, decided: 5)
    #expect(peer.close == nil && world.canvas.likes == 1)
  }

  @Test("A client that says what it knows is not bounded, nor is one where there is no limit")
  func unbounded() {
    let bounded = world(bytes: 500)
    let telling = peer(in: bounded)
    for number in 1...200 { submit(telling, number: number, decided: number - 1, count: 2) }
    #expect(telling.close == nil && bounded.canvas.likes == 400)
    let open = world(bytes: nil)
    let silent = peer(in: open)
    for number in 1...200 { submit(silent, number: number) }
    #expect(silent.close == nil && open.canvas.likes == 200)
  }

  @Test("The size follows what is kept, also when the decisions are read from a log")
  func size() throws {
    func decision(_ number: Int, replies: Int) -> ScopeStanding.Decision {
      .init(number: number, fragmentReplies: Array(repeating: FragmentReply(), count: replies))
    }
    let decisions = [decision(1, replies: 4), decision(2, replies: 5), decision(4, replies: 6)]
    let root = SyncFragment(.change, uuid: UUID(), className: "Canvas", properties: [:])
    var history = ScopeHistory(epoch: "one", state: [root])
    history.clients[client] = .init(decided: 4, decisions: decisions)
    let lines = history.content.map {
      LogRecord(sequence: 1, kind: $0.kind, payload: $0.payload)
    }
    let stored = StoredHistory(
      snapshot: LogSnapshot(sequence: 1, state: lines, kept: []), records: [])
    let read = try #require(try ScopeHistory(stored))
    #expect(read.clients[client]?.bytes == history.clients[client]?.bytes)
    var table = ClientTable(read)
    // The next change set of the client, which says which decisions it knows.
    func hasRoom(knowing known: Int, below most: Int) -> Bool {
      let (verdict, hasRoom) = table.receive(
        from: client, 5, checksum: 1, knowing: known, below: most)
      if case .new = verdict {} else { Issue.record("\(verdict)") }
      return hasRoom
    }
    let all = table[client].bytes
    #expect(all > 0 && !hasRoom(knowing: 0, below: all))
    #expect(hasRoom(knowing: 2, below: all))
    let last = table[client].bytes
    #expect(last < all && !hasRoom(knowing: 2, below: last))
    #expect(hasRoom(knowing: 4, below: 1) && table[client].bytes == 0)
  }

  @Test(
    "A client that only pushes never reaches the limit, whatever it misses",
    arguments: [false, true])
  func pushing(losesSessions: Bool) throws {
    let world = world(bytes: 1_500)
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow.messages = 4
    let (client, other) = (world.addClient(configuration: configuration), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    client.engine.setMode(.pushOnly, of: client.scope, now: world.now)
    world.exchange()
    other.canvas.name = "theirs"
    world.exchange()
    for number in 1...100 {
      client.canvas.likes += 1
      world.exchange()
      guard losesSessions, number % 30 == 0 else { continue }
      let link = try #require(client.link)
      world.cut(link)
      world.server.advance(to: world.now + .seconds(3600))
      world.pass(5)
    }
    #expect(world.limitHits == [:] && world.canvas.likes == 100)
    let state = try #require(client.engine.state(of: client.scope))
    #expect(state.decidedCount == 100 && client.canvas.name == nil)
    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.settle()
    #expect(client.canvas.name == "theirs" && client.canvas.likes == 100)
    #expect(client.engine.pendingCount == 0 && client.engine.checkInvariants() == [])
    #expect(client.events.contains { $0.hasPrefix("historyLost") } == false)
  }

  @Test("A client that is paused does not reach the limit, and goes on when it resumes")
  func paused() {
    let world = world(bytes: 2_000)
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow.messages = 10
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    client.scope.pauseIncoming()
    world.canvas.name = "held"
    for _ in 0..<50 {
      client.canvas.likes += 1
      world.pass(1)
    }
    #expect(world.endedSessions.isEmpty && (1...12).contains(world.canvas.likes))
    client.scope.resumeIncoming()
    world.settle()
    #expect(world.endedSessions.isEmpty && world.canvas.likes == 50 && client.canvas.likes == 50)
  }
}
