import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client that goes on with an older copy of its log, and of which the server has forgotten the decisions.
@Suite("Copies of clients whose decisions are forgotten")
struct ForgottenCopyTests {
  private let calls = CountedCalls()
  private let identity = UUID()
  private let world: InMemoryWorld

  init() { world = .forgetful(calls) }

  private func peer(_ client: UUID) -> RawPeer {
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.fetch(as: client)
    return peer
  }

  /// The connection of a peer is lost, and its session expires.
  private func leave(_ peer: RawPeer) {
    world.cut(peer.link)
    world.server.advance(to: world.now + .seconds(3600))
  }

  private func naming(_ text: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(text)])
  }

  /// Other clients come, change something and go.
  private func visit(_ count: Int) {
    for number in 0..<count {
      let visitor = peer(UUID())
      visitor.submit([naming("visitor \(number)")], number: 1)
      leave(visitor)
    }
  }

  /// The history of the copy, which has the state at the beginning.
  private func copy(_ records: [ReplicaRecord] = []) throws -> ReplicaHistory {
    let root = world.canvas.uuid
    let position = try #require(world.server.positions.first)
    var history = ReplicaHistory(client: identity, root: root, nextNumber: 1, records: records)
    history.base = ReplicaBase(
      position: ScopePosition(epoch: position.epoch, sequence: 0), root: root,
      fragments: [SyncFragment(.change, uuid: root, className: "Canvas", properties: [:])])
    return history
  }

  private func resume(
    _ history: ReplicaHistory, _ change: (WorldClient) throws -> Void
  ) throws -> (WorldClient, Replica) {
    let client = world.addClient()
    client.wantsOnline = false
    var records = 0
    let replica = try #require(
      try client.engine.fetch(
        client.scope, params: [:], history: history, now: world.now,
        store: { _ in records += 1 }, completion: { _ in }))
    try change(client)
    client.engine.connect(params: [:], now: world.now)
    for _ in 0..<8 {
      replica.stored(records)
      world.pass(1)
    }
    #expect(client.engine.checkInvariants() == [] && world.server.checkInvariants() == [])
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    return (client, replica)
  }

  @Test(
    "A call that the copy makes is begun, since its number only stands for another one",
    .timeLimit(.minutes(5)), arguments: [2, 12])
  func newCall(visitors: Int) async throws {
    let first = peer(identity)
    for number in 1...2 { first.call(number: number) }
    leave(first)
    visit(visitors)
    calls.fails = false
    var call: ProcedureCall<Like>?
    let (client, replica) = try resume(copy()) { call = try $0.scope.call(Like()) }
    #expect(client.engine.pendingCount == 0)
    #expect(try await call?.output() == 1)
    #expect(calls.count == 3 && world.canvas.likes == 1)
    #expect(replica.request.clientID != identity)
  }

  @Test(
    "A call that may have been sent before the copy was made is not begun again",
    .timeLimit(.minutes(5)), arguments: [2, 12])
  func oldCall(visitors: Int) async throws {
    let first = peer(identity)
    for number in 1...2 { first.call(number: number) }
    leave(first)
    visit(visitors)
    calls.fails = false
    let old = ChangeSet(
      fragments: [], undo: [], procedure: Like.name, arguments: ["count": 1, "limit": 10])
    var call: ProcedureCall<Like>?
    let (client, _) = try resume(copy([.made(number: 1, old)])) {
      call = try $0.scope.call(Like())
    }
    #expect(client.engine.pendingCount == 0)
    #expect(try await call?.output() == 1)
    #expect(calls.count == 3 && world.canvas.likes == 1)
  }

  @Test("So does one that goes on with numbers behind the forgotten ones", arguments: [2, 12])
  func original(visitors: Int) throws {
    let first = peer(identity)
    for number in 1...2 { first.call(number: number) }
    leave(first)
    visit(visitors)
    calls.fails = false
    var history = try copy()
    history.nextNumber = 3
    let (client, replica) = try resume(history) { try $0.scope.call(Like()) }
    #expect(client.engine.pendingCount == 0 && calls.count == 3 && world.canvas.likes == 1)
    #expect(replica.request.clientID == identity)
  }
}
