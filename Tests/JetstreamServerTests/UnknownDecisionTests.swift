import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("Decisions that a client does not say it knows")
struct UnknownDecisionTests {
  private let client = UUID()

  private func world(decisions: Int = 10_000, replies: Int = 1_000_000) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.unknownDecisions.decisions = decisions
    configuration.unknownDecisions.replies = replies
    return InMemoryWorld(configuration: configuration)
  }

  private func peer(in world: InMemoryWorld, decided: Int? = nil) -> RawPeer {
    let peer = RawPeer(world)
    _ = peer.createSession()
    var fetch = ScopeFetch(name: "Canvas", client: client)
    fetch.decided = decided
    peer.send(peer.stamp(.scopeFetch(fetch)))
    return peer
  }

  /// Sends a change set of `count` fragments that each add one to the canvas's likes. Returns the index of the message.
  @discardableResult
  private func submit(
    _ peer: RawPeer, number: Int, decided: Int? = nil, count: Int = 1
  ) -> Int {
    var fragment = SyncFragment(
      .change, uuid: peer.world.canvas.uuid, className: "Canvas", properties: [:])
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
    let world = world(decisions: 5)
    let first = peer(in: world)
    for number in 1...5 { submit(first, number: number) }
    #expect(first.close == nil && world.canvas.likes == 5)
    submit(first, number: 6)
    #expect(first.close?.code == 4097)
    #expect(world.canvas.likes == 5)

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

  @Test("Large change sets count with each of their replies")
  func replies() {
    let world = world(replies: 100)
    let peer = peer(in: world)
    submit(peer, number: 1, count: 60)
    submit(peer, number: 2, count: 60)
    #expect(peer.close == nil && world.canvas.likes == 120)
    submit(peer, number: 3, decided: 1, count: 60)
    #expect(peer.close == nil && world.canvas.likes == 180)
    submit(peer, number: 4, decided: 1)
    #expect(peer.close?.code == 4097 && world.canvas.likes == 180)
  }

  @Test("A client that says what it knows is not bounded")
  func telling() {
    let world = world(decisions: 5, replies: 10)
    let peer = peer(in: world)
    for number in 1...200 { submit(peer, number: number, decided: number - 1, count: 2) }
    #expect(peer.close == nil && world.canvas.likes == 400)
  }

  @Test("A client that is paused does not reach the limit, and one that resumes goes on")
  func paused() {
    let world = world(decisions: 12)
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

  @Test("The count follows what is kept, also when the decisions are read from a log")
  func count() throws {
    func decision(_ number: Int, replies: Int) -> ScopeStanding.Decision {
      .init(number: number, fragmentReplies: Array(repeating: FragmentReply(), count: replies))
    }
    let decisions = [decision(1, replies: 4), decision(2, replies: 5), decision(4, replies: 6)]
    var history = ScopeHistory(epoch: "one", state: [])
    history.clients[client] = .init(decided: 4, checksum: 1, decisions: decisions)
    let lines = history.content.map {
      LogRecord(sequence: 1, kind: $0.kind, payload: $0.payload)
    }
    let stored = StoredHistory(
      snapshot: LogSnapshot(sequence: 1, state: lines, kept: []), records: [])
    let read = try #require(try ScopeHistory(stored))
    #expect(read.clients[client]?.replyCount == 15)
    var table = ClientTable(read)
    #expect(table.hasRoom(for: client, .init(decisions: 4, replies: 16)))
    #expect(!table.hasRoom(for: client, .init(decisions: 3, replies: 16)))
    #expect(!table.hasRoom(for: client, .init(decisions: 4, replies: 15)))
    table.forgetDecisions(of: client, upTo: 2)
    #expect(table.hasRoom(for: client, .init(decisions: 2, replies: 7)))
    #expect(!table.hasRoom(for: client, .init(decisions: 2, replies: 6)))
  }
}
