import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("Decisions that a server forgets of clients without a session")
struct ForgottenDecisionTests {
  private func world(absentBytes: Int? = nil, clients: Int = .max) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.absentDecisionBytes = absentBytes
    configuration.rememberedClients = clients
    configuration.streamLimit.sets = 4
    configuration.sliceSize = 4
    return InMemoryWorld(configuration: configuration)
  }

  /// A peer whose client fetches the scope, as one that knows it up to `since`.
  private func peer(_ world: InMemoryWorld, _ client: UUID, since: Int? = nil) -> RawPeer {
    let peer = RawPeer(world)
    _ = peer.createSession()
    var fetch = ScopeFetch(name: "Canvas", client: client)
    fetch.since = since.map { ScopePosition(epoch: world.server.positions[0].epoch, sequence: $0) }
    peer.send(peer.stamp(.scopeFetch(fetch)))
    return peer
  }

  private func sync(_ peer: RawPeer, number: Int, _ fragments: [SyncFragment]) -> Int {
    var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: fragments)
    sync.number = number
    let message = peer.stamp(.scopeSync(sync))
    peer.send(message)
    return message.index
  }

  /// Sends a change set that adds one to the likes.
  @discardableResult
  private func like(_ peer: RawPeer, number: Int) -> Int {
    var fragment = SyncFragment(
      .change, uuid: peer.world.canvas.uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(1)]
    return sync(peer, number: number, [fragment])
  }

  /// Sends a change set whose `count` fragments are all rejected.
  private func fail(_ peer: RawPeer, number: Int, count: Int = 1) {
    let wrong = SyncFragment(.change, uuid: UUID(), className: "Canvas", properties: ["name": "x"])
    _ = sync(peer, number: number, Array(repeating: wrong, count: count))
  }

  /// The connection of a peer is lost, and its session expires.
  private func leave(_ peer: RawPeer) {
    peer.world.cut(peer.link)
    peer.world.server.advance(to: peer.world.now + .seconds(3600))
  }

  private func standing(of peer: RawPeer) throws -> ScopeStanding {
    let standings = peer.messages.compactMap { message -> ScopeStanding? in
      if case .scopeFetchReply(let reply) = message { reply.standing } else { nil }
    }
    return try #require(standings.last)
  }

  @Test("A user who is one client after the other loses its own decisions, and no others")
  func largestFirst() throws {
    let world = world(absentBytes: 8_000)
    let honest = UUID()
    let first = peer(world, honest)
    like(first, number: 1)
    leave(first)
    let hostile = (0..<20).map { _ in UUID() }
    for client in hostile {
      let peer = peer(world, client)
      like(peer, number: 1)
      fail(peer, number: 2, count: 20)
      leave(peer)
    }
    let clients = try #require(world.server.hosts.values.first).order.clients.all()
    #expect(clients.count == 21 && clients[honest]?.decided == 1)
    let bytes = clients.values.reduce(0) { $0 + $1.bytes }
    // A quarter more, and what the last one has added since.
    #expect((1...13_000).contains(bytes), "\(bytes)")

    // The first one learns what it has missed, and adds nothing for the second time.
    let back = peer(world, honest, since: 0)
    #expect(try standing(of: back).decided == 1 && !standing(of: back).isForgotten)
    #expect(back.replies(to: like(back, number: 1)) == [FragmentReply()])
    #expect(world.canvas.likes == 21)
    // The others are told, also by a server that was started again.
    let forgotten = try #require(hostile.first { clients[$0]?.forgotten.isAll == true })
    #expect(try standing(of: peer(world, forgotten, since: 1)).isForgotten)
    let history = try #require(world.server.history(of: world.scope))
    let lines = history.content.map { LogRecord(sequence: 1, kind: $0.kind, payload: $0.payload) }
    let stored = StoredHistory(
      snapshot: LogSnapshot(sequence: 1, state: lines, kept: []), records: [])
    let again = try #require(try ScopeHistory(stored))
    #expect(again.clients == history.clients && again.clients[forgotten]?.forgotten.isAll == true)
    // Once it goes on, it is a client like any other.
    let goesOn = peer(world, forgotten, since: 1)
    like(goesOn, number: 1)
    leave(goesOn)
    #expect(try standing(of: peer(world, forgotten, since: 1)).decisions.map(\.number) == [1])
  }

  @Test("Clients that were there together, and leave, are bounded together, too")
  func leftTogether() throws {
    let world = world(absentBytes: 8_000)
    let peers = (0..<20).map { _ in peer(world, UUID()) }
    for peer in peers { fail(peer, number: 1, count: 20) }
    func bytes() throws -> Int {
      let clients = try #require(world.server.hosts.values.first).order.clients.all()
      return clients.values.reduce(0) { $0 + $1.bytes }
    }
    #expect(try bytes() > 20_000)
    for peer in peers { world.cut(peer.link) }
    world.server.advance(to: world.now + .seconds(3600))
    world.server.advance(to: world.now + .seconds(3601))
    #expect(try (1...8_000).contains(bytes()))
  }

  @Test("A client with a session loses nothing, however many decisions it does not know")
  func present() throws {
    let world = world(absentBytes: 1_000)
    let client = UUID()
    let peer = peer(world, client)
    for number in 1...5 { fail(peer, number: number, count: 20) }
    let decided = world.server.hosts.values.first?.order.clients[client]
    #expect(decided?.decided == 5 && decided?.decisions.count == 5)
  }

  @Test("A client of which something is still being decided loses nothing")
  func undecided() throws {
    let world = world(clients: 1)
    world.judgesAtOnce = false
    let client = UUID()
    let first = peer(world, client)
    fail(first, number: 1)
    let shapes = (0..<20).map { _ in
      SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    }
    _ = sync(first, number: 2, shapes)
    leave(first)
    for _ in 0..<8 {
      let visitor = peer(world, UUID())
      like(visitor, number: 1)
      leave(visitor)
    }
    world.judgeAll()
    let decisions = try standing(of: peer(world, client)).decisions
    #expect(decisions.map(\.number) == [1, 2])
    #expect(decisions.first?.fragmentReplies.first?.error != nil)
  }

  @Test("A client that was forgotten before the scope's first change set is, too")
  func beforeTheFirst() {
    var table = ClientTable()
    for number in 1...3 {
      table.decide(
        .init(client: UUID(), number: number, checksum: 1, fragmentReplies: []), at: nil, scopeAt: 0
      )
    }
    table.trim(to: 1, bytes: nil) { [] }
    #expect(table.count == 1 && table.hasForgotten(UUID(), since: 0))
  }

  // MARK: Fetches that wait

  @Test("Lists of all decisions that a client does not know share their memory")
  func shared() {
    let client = ScopeHistory.Client(
      decided: 3,
      decisions: (1...3).map { .init(number: $0, fragmentReplies: [], sequence: $0) })
    let lists = (0..<2).map { _ in client.unknown(after: 0) }
    let places = lists.map { list in list.withUnsafeBufferPointer { $0.baseAddress } }
    #expect(places[0] == places[1] && lists[0].map(\.number) == [1, 2, 3])
    #expect(client.unknown(after: 1).map(\.number) == [2, 3])
    #expect(client.unknown(after: 0, upTo: 2).map(\.number) == [1, 2])
    #expect(client.unknown(after: 3).isEmpty && client.unknown(after: 2, upTo: 2).isEmpty)
  }

  @Test("The traces of others stay when one client leaves too many decisions behind")
  func tracesOfOthers() {
    var table = ClientTable()
    func decide(_ client: UUID, _ numbers: ClosedRange<Int>) {
      for number in numbers {
        table.decide(
          .init(client: client, number: number, checksum: 1, fragmentReplies: []), at: number,
          scopeAt: number)
      }
    }
    let (honest, hostile) = (UUID(), UUID())
    decide(honest, 1...10)
    table.forgetDecisions(of: honest, upTo: 10)
    decide(hostile, 1...100)
    table.trim(to: 100, bytes: 1_000) { [] }
    #expect(table[hostile].forgotten.isAll && table[hostile].decisions.isEmpty)
    #expect(table[honest].traces.count == 10 && !table[honest].forgotten.isAll)
  }

  @Test("The traces that clients leave behind are bounded, too")
  func tracesOfMany() {
    var table = ClientTable()
    for _ in 0..<50 {
      let client = UUID()
      for number in 1...40 {
        table.decide(
          .init(client: client, number: number, checksum: 1, fragmentReplies: []), at: number,
          scopeAt: number)
        table.forgetDecisions(of: client, upTo: number)
      }
      table.left(client)
      table.trim(to: 100, bytes: 8_000) { [] }
    }
    let all = table.all().values
    #expect(all.reduce(0) { $0 + $1.size } <= 10_000)
    #expect(table.count == 50 && all.contains { !$0.traces.isEmpty })
    // They know all of their decisions.
    #expect(all.allSatisfy { !$0.forgotten.isAll && $0.decided == 40 })
  }

  @Test(
    "What is forgotten of a client is all, then the rest, until its last number is decided anew")
  func forgotten() {
    var table = ClientTable()
    let client = UUID()
    func decide(_ number: Int) {
      table.decide(
        .init(client: client, number: number, checksum: 1, fragmentReplies: []), at: nil, scopeAt: 1
      )
    }
    for number in 1...3 { decide(number) }
    #expect(table[client].forgotten == .nothing)
    table.trim(to: 100, bytes: 0) { [] }
    #expect(table[client].forgotten == .all(upTo: 3, isTold: false))
    table.noteForgotten(client, upTo: 2, scopeAt: 9)
    #expect(table[client].forgotten == .all(upTo: 3, isTold: true) && table[client].seenAt == 9)
    decide(2)
    #expect(table[client].forgotten == .rest(upTo: 3) && table[client].decided == 2)
    table.trim(to: 100, bytes: 0) { [] }
    #expect(table[client].forgotten == .all(upTo: 3, isTold: false))
    for number in 2...3 { decide(number) }
    #expect(table[client].forgotten == .nothing && table[client].decisions.count == 2)
  }

  @Test("A trace tells what was accepted or rejected as a whole, and all else as decided")
  func outcomes() {
    let (plain, no) = (FragmentReply(), FragmentReply(error: .rejected("no")))
    var client = ScopeHistory.Client(decided: 7)
    func note(
      _ number: Int, _ replies: [FragmentReply], _ sequence: Int?, _ outcome: CallOutcome? = nil
    ) {
      client.append(
        .init(number: number, fragmentReplies: replies, sequence: sequence, outcome: outcome))
    }
    note(1, [], 5)
    note(2, [no, no], nil)
    // A part was rejected; nothing had an effect.
    note(3, [plain, no], 6)
    note(4, [plain], nil)
    note(5, [no], nil, .failure(.rejected("no"), thrown: nil))
    note(6, [plain], 7, .output(1))
    note(7, [], nil)
    client.forget(upTo: 7)
    #expect(
      client.traces.map(\.outcome) == [
        .accepted, .rejected, .other, .other, .rejected, .other, .rejected,
      ])
    let told = client.unknown(after: 0)
    #expect(told.map(\.isBare) == [false, true, false, false, true, false, true])
    #expect(told.map(\.isForgotten) == [false, false, true, true, false, true, false])
  }

  @Test("Of the decisions that a client knows, the last ones leave a trace")
  func traces() {
    let kept = ScopeHistory.Client.tracesKept
    let outcome = FragmentReply(error: .rejected("no"))
    var client = ScopeHistory.Client(decided: 0)
    // Numbers have gaps: a client rejects some change sets itself.
    for number in (1...5 * kept).map({ 2 * $0 }) {
      client.append(
        .init(
          number: number, fragmentReplies: [outcome], sequence: number % 4 == 0 ? number : nil,
          checksum: UInt32(number)))
      if number % 3 == 0 { client.forget(upTo: number) }
      #expect(client.traces.count <= 2 * kept)
    }
    client.forget(upTo: client.decided)
    #expect(client.decisions.isEmpty && client.bytes == 0)
    let first = 2 * (4 * kept + 1)
    let traces = client.unknown(after: first - 1)
    #expect(traces.map(\.number) == Array(stride(from: first, through: 10 * kept, by: 2)))
    #expect(traces.allSatisfy { $0.checksum == UInt32($0.number) && $0.fragmentReplies.isEmpty })
    #expect(traces.allSatisfy { ($0.sequence != nil) == ($0.number % 4 == 0) })
    #expect(client.decision(on: first)?.checksum == UInt32(first))
    #expect(client.decision(on: first + 1) == nil && client.decision(on: 2) == nil)
    // Many at once leave no more.
    var other = ScopeHistory.Client(decided: 1000)
    for number in 1...1000 { other.append(.init(number: number, fragmentReplies: [])) }
    other.forget(upTo: 999)
    #expect(other.unknown(after: 0).map(\.number) == Array(1000 - kept...1000))
  }

  @Test("A fetch that waits for the log is answered with the decisions that were made before it")
  func waitsForLog() throws {
    let world = world()
    let host = try #require(world.server.hosts.values.first)
    let (client, first) = (UUID(), UUID())
    let peer = peer(world, client)
    host.order.records.store = { _ in }
    like(peer, number: 1)
    fail(peer, number: 2)
    for id in [client, first] {
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: id))))
      if id == client { like(peer, number: 3) }
    }
    let count = peer.messages.count
    world.server.stored(2, of: world.scope)
    peer.take()
    #expect(try standing(of: peer).decided == 2)
    #expect(try standing(of: peer).decisions.map(\.number) == [1, 2])
    #expect(peer.messages.count > count)
    world.server.stored(3, of: world.scope)
    peer.take()
    #expect(try standing(of: peer).decided == 0 && standing(of: peer).decisions.isEmpty)
  }

  @Test("The decisions in the answer to a fetch count among the bytes that wait for a client")
  func size() {
    func reply(_ count: Int) -> Message {
      let replies = (0..<20).map { FragmentReply(error: .rejected("Not valid: \($0)")) }
      let decisions = (0..<count).map {
        ScopeStanding.Decision(number: $0 + 1, fragmentReplies: replies)
      }
      let standing = ScopeStanding(
        position: ScopePosition(epoch: "e", sequence: 1), decided: count, decisions: decisions)
      return .scopeFetchReply(ScopeFetchReply(replyTo: 1, scopeIndex: 0, standing: standing))
    }
    for count in [0, 1, 100] {
      let size = Message.encodeFrame([reply(count)], asArray: false).count
      #expect((size / 2...size * 2).contains(reply(count).roughSize))
    }
  }
}
