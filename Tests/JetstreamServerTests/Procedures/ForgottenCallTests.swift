import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Calls that a client sends again after the server has forgotten what it has decided.
@Suite("Calls whose decisions are forgotten")
struct ForgottenCallTests {
  private let calls = CountedCalls()
  private let ann = UUID()

  private func world(clients: Int = .max, bytes: Int? = 1) -> InMemoryWorld {
    .forgetful(calls, clients: clients, bytes: bytes)
  }

  /// A peer whose client fetches the scope, as one that knows it up to `since`.
  private func peer(_ world: InMemoryWorld, _ client: UUID, since: Int? = nil) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    var fetch = ScopeFetch(name: "Canvas", client: client)
    fetch.since = since.map { ScopePosition(epoch: world.server.positions[0].epoch, sequence: $0) }
    peer.send(peer.stamp(.scopeFetch(fetch)))
    return peer
  }

  private func name(_ text: String, by peer: RawPeer, number: Int) -> ScopeSyncReply? {
    let index = peer.submit(
      [
        SyncFragment(
          .change, uuid: peer.world.canvas.uuid, className: "Canvas",
          properties: ["name": .string(text)])
      ], number: number)
    return peer.reply(to: index)
  }

  /// The connection of a peer is lost, and its session expires.
  private func leave(_ peer: RawPeer) {
    peer.world.cut(peer.link)
    peer.world.server.advance(to: peer.world.now + .seconds(3600))
  }

  /// Other clients come, change something and go.
  private func visit(_ world: InMemoryWorld, _ count: Int) {
    for number in 0..<count {
      let visitor = peer(world, UUID())
      #expect(name("visitor \(number)", by: visitor, number: 1)?.sequence != nil)
      leave(visitor)
    }
  }

  private func standing(of peer: RawPeer) throws -> ScopeStanding {
    let standings = peer.messages.compactMap { message -> ScopeStanding? in
      if case .scopeFetchReply(let reply) = message { reply.standing } else { nil }
    }
    return try #require(standings.last)
  }

  private func error(of index: Int, to peer: RawPeer) -> WireError? {
    peer.reply(to: index)?.outcome?.error
  }

  @Test("One that failed is told as such, and is not begun again", arguments: [false, true])
  func failed(behindAnother: Bool) throws {
    let world = world()
    let first = peer(world, ann)
    let number = behindAnother ? 2 : 1
    if behindAnother { _ = name("accepted", by: first, number: 1) }
    first.call(number: number)
    #expect(calls.count == 1)
    leave(first)
    visit(world, 2)
    let clients = try #require(world.server.hosts.values.first?.order.clients)
    #expect(clients[ann].forgotten.isAll && clients[ann].decisions.isEmpty)
    let back = peer(world, ann, since: 0)
    let standing = try standing(of: back)
    #expect(!standing.isForgotten)
    if behindAnother {
      // The stream has all that was accepted.
      #expect(standing.decided == 2 && standing.decisions.map(\.number) == [1, 2])
      #expect(standing.decisions.last?.isBare == true)
    }
    let type = behindAnother ? "reason-forgotten" : "outcome-forgotten"
    #expect(error(of: back.call(number: number), to: back)?.type == type)
    #expect(calls.count == 1)
    // The next one is another one.
    calls.fails = false
    #expect(back.reply(to: back.call(number: number + 1))?.outcome == .output(1))
    #expect(calls.count == 2)
  }

  @Test("One that nothing is known of is not begun again, and its caller is told so")
  func beyondStream() throws {
    let world = world()
    let first = peer(world, ann)
    calls.fails = false
    first.call(number: 1)
    _ = name("before", by: first, number: 2)
    calls.fails = true
    first.call(number: 3)
    #expect(calls.count == 2 && world.canvas.likes == 1)
    leave(first)
    visit(world, 12)
    // A server that is started again knows as much.
    let history = try #require(world.server.history(of: world.scope))
    let lines = history.content.map { LogRecord(sequence: 1, kind: $0.kind, payload: $0.payload) }
    let stored = StoredHistory(
      snapshot: LogSnapshot(sequence: 1, state: lines, kept: []), records: [])
    #expect(try ScopeHistory(stored)?.clients == history.clients)

    let back = peer(world, ann, since: 0)
    #expect(try standing(of: back).isForgotten && standing(of: back).decided == 0)
    for number in [1, 3] {
      #expect(error(of: back.call(number: number), to: back)?.type == "outcome-forgotten")
      // A change set is applied, at the risk that it was applied before.
      if number == 1 {
        #expect(name("again", by: back, number: 2)?.sequence != nil)
        // Another session of the client knows as little.
        let other = peer(world, ann, since: 0)
        #expect(error(of: other.call(number: 3), to: other)?.type == "outcome-forgotten")
      }
    }
    #expect(calls.count == 2 && world.canvas.likes == 1 && world.canvas.name == "again")
    calls.fails = false
    #expect(back.reply(to: back.call(number: 4))?.outcome == .output(2))
  }

  @Test("Of a client that is not known any more, the stream tells which calls were begun")
  func droppedClient() throws {
    let world = world(clients: 1, bytes: nil)
    let first = peer(world, ann)
    first.call(number: 1)
    #expect(calls.count == 1)
    leave(first)
    visit(world, 8)
    let second = peer(world, ann, since: 0)
    #expect(name("late", by: second, number: 2)?.sequence == 9)
    leave(second)
    visit(world, 2)
    #expect(world.server.hosts.values.first?.order.clients.all()[ann] == nil)
    let back = peer(world, ann, since: 0)
    #expect(try standing(of: back).isForgotten)
    // The state that it got contains what it does not know, so the stream behind that tells nothing of it.
    let again = try standing(of: peer(world, ann, since: world.server.positions[0].sequence))
    #expect(again.isForgotten && again.decisions.isEmpty)
    #expect(error(of: back.call(number: 1), to: back)?.type == "outcome-forgotten")
    #expect(calls.count == 1)
    // Also if the answer is lost.
    let decisions = try standing(of: peer(world, ann, since: 0)).decisions
    #expect(decisions.map(\.outcome?.error?.type) == ["outcome-forgotten"])
  }

  @Test(
    "Of a client that was dropped, calls are not begun again that failed behind its last change set"
  )
  func droppedBehind() throws {
    let world = world(clients: 1, bytes: nil)
    let first = peer(world, ann)
    #expect(name("accepted", by: first, number: 1)?.sequence == 1)
    for number in 2...3 { first.call(number: number) }
    #expect(calls.count == 2)
    leave(first)
    visit(world, 4)
    let table = try #require(world.server.hosts.values.first?.order.clients)
    #expect(table[ann].decisions.isEmpty)
    let back = peer(world, ann, since: 0)
    let standing = try standing(of: back)
    #expect(!standing.isForgotten && standing.decided == 3)
    #expect(standing.decisions.map(\.number) == [1, 2, 3])
    for number in 2...3 {
      #expect(error(of: back.call(number: number), to: back)?.type == "reason-forgotten")
    }
    #expect(calls.count == 2)
    // Once the change set is not in the stream any more, nothing is left of the client.
    leave(back)
    visit(world, 20)
    let last = try #require(world.server.hosts.values.first).order.clients.all()
    #expect(last[ann] == nil && last.count <= 3)
  }

  @Test("A client that the server has never seen has no calls that were begun")
  func stranger() throws {
    let world = world(clients: 1, bytes: nil)
    visit(world, 12)
    calls.fails = false
    let stranger = peer(world, UUID(), since: 0)
    #expect(stranger.reply(to: stranger.call(number: 1))?.outcome == .output(1))
    #expect(world.server.rememberedClients(of: world.scope).map { $0 <= 3 } == true)
  }
}
