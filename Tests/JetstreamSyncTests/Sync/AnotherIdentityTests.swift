import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client that was copied, or restored from a copy, numbers its change sets as another one has done.
@Suite("Clients whose numbers stand for other change sets")
struct AnotherIdentityTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let identity: UUID

  init() {
    client = world.addClient()
    identity = client.engine.configuration.clientID
    client.join()
    world.settle()
  }

  private func adding(_ likes: Int64) -> SyncFragment {
    var fragment = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(likes)]
    return fragment
  }

  /// Submits change sets of the canvas that add 10 each, under the identity of the client, and says that their outcomes
  /// are known.
  private func submitElsewhere(_ numbers: ClosedRange<Int>) {
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.fetch(as: identity)
    for number in numbers { peer.submit([adding(10)], number: number) }
    var fetch = ScopeFetch(name: "Canvas", client: identity)
    fetch.decided = numbers.upperBound
    peer.send(peer.stamp(.scopeFetch(fetch)))
  }

  @Test("The change sets of other scopes keep their identity, and are applied once")
  func otherScopes() throws {
    let notes = Canvas()
    let hosted = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = hosted
    let copy = Canvas()
    let scope = Scope(name: "Notes", root: copy, ticker: client.ticker)
    client.engine.fetch(scope, params: [:], now: world.now) { _ in }
    submitElsewhere(1...1)
    world.settle()
    client.canvas.likes += 1
    client.scope.flush()
    copy.likes += 1
    scope.flush()
    let link = try #require(client.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(world.canvas.likes == 10 && notes.likes == 1, "the reply is on its way")
    world.settle()
    #expect(world.canvas.likes == 11 && notes.likes == 1)
    #expect(client.engine.configuration.clientID != identity)
    // Scopes that are fetched from now on are synced under the new identity.
    #expect(client.engine.leave(scope, now: world.now) == [])
    client.engine.fetch(scope, params: [:], now: world.now) { _ in }
    world.settle()
    copy.likes += 1
    scope.flush()
    world.settle()
    #expect(notes.likes == 2)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(scope.canonicalJSON == hosted.canonicalJSON)
    #expect(client.engine.checkInvariants() == [])
  }

  @Test(
    "Decisions that a paused scope holds back come before the new identity",
    arguments: [false, true])
  func paused(losesSession: Bool) throws {
    client.scope.pauseIncoming()
    client.canvas.likes += 1
    world.exchange()
    submitElsewhere(2...2)
    client.canvas.likes += 100
    let handle = client.scope.modify { client.canvas.name = "behind" }
    world.exchange()
    #expect(world.canvas.likes == 11 && client.engine.pendingCount == 3)
    #expect(client.engine.configuration.clientID == identity)
    if losesSession {
      world.cut(try #require(client.link))
      world.server.advance(to: world.now + .seconds(3600))
      world.pass(5)
    }
    client.scope.resumeIncoming()
    world.settle()
    #expect(world.canvas.likes == 111 && world.canvas.name == "behind")
    #expect(client.engine.configuration.clientID != identity && handle.state == .accepted)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.engine.checkInvariants() == [])
  }

  @Test(
    "A change set that is made after the log was restored is not taken for the decided one of its number",
    arguments: [false, true])
  func restored(hasState: Bool) throws {
    submitElsewhere(1...3)
    let root = world.canvas.uuid
    // The second change set was pending when the copy was made, and decided since.
    let second = ChangeSet(fragments: [adding(10)], undo: [adding(-10)])
    var history = ReplicaHistory(
      client: identity, root: root, nextNumber: 2, records: [.made(number: 2, second)])
    if hasState {
      let position = try #require(world.server.positions.first)
      history.base = ReplicaBase(
        position: ScopePosition(epoch: position.epoch, sequence: 1), root: root,
        fragments: [
          SyncFragment(.change, uuid: root, className: "Canvas", properties: ["likes": 10])
        ])
    }
    let restored = world.addClient()
    restored.wantsOnline = false
    var records = 0
    let replica = try #require(
      try restored.engine.fetch(
        restored.scope, params: [:], history: history, now: world.now,
        store: { _ in records += 1 }, completion: { _ in }))
    let third = restored.scope.modify { restored.canvas.likes += 100 }
    restored.engine.connect(params: [:], now: world.now)
    for _ in 0..<5 {
      replica.stored(records)
      world.pass(1)
    }
    #expect(third.state == .accepted && restored.engine.pendingCount == 0)
    #expect(world.canvas.likes == 130)
    #expect(restored.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(replica.request.clientID != identity && restored.engine.checkInvariants() == [])
  }

  @Test(
    "Of what was sent under the old identity, the server has forgotten nothing under the new one")
  func forgottenOnce() throws {
    let server = ScriptedServer()
    let (identity, root) = (server.engine.configuration.clientID, server.canvas.uuid)
    let position = ScopePosition(epoch: "e", sequence: 1)
    /// Sends the state with a resume point that does not know what was decided.
    func grantForgotten(upTo number: Int) {
      var standing = ScopeStanding(position: position)
      (standing.isForgotten, standing.forgottenUpTo) = (true, number)
      let fragment = SyncFragment(
        .change, uuid: root, className: "Canvas",
        properties: ["name": .null, "shapes": [], "hidden": []])
      server.receive(
        .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
        .scopeState(ScopeState(index: 2, scopeIndex: 0, rootUUID: root, fragments: [fragment])))
    }
    server.joinAtPosition(position)
    server.scope.modify { server.canvas.likes = 1 }
    #expect(server.takeSyncs().map(\.number) == [1])
    server.loseSession()
    // The client has given no number above 1.
    grantForgotten(upTo: 7)
    #expect(server.historyLosses == 1 && server.takeSyncs().isEmpty)
    #expect(server.engine.configuration.clientID != identity)
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "last", protocol: 2)))
    grantForgotten(upTo: 0)
    #expect(server.historyLosses == 1 && server.takeSyncs().map(\.number) == [1])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("Nothing is sent under the new identity before that is in the log")
  func durable() throws {
    let server = ScriptedServer()
    let start = ScopePosition(epoch: "e", sequence: 1)
    var records = 0
    server.connect()
    let replica = try #require(
      try server.engine.fetch(
        server.scope, params: [:], history: nil, now: server.now, store: { _ in records += 1 },
        completion: { _ in }))
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    server.grant(start)
    server.scope.modify { server.canvas.likes = 1 }
    replica.stored(records)
    let sent = try #require(server.takeSyncs().first)
    server.reply(to: sent.index, FragmentReply(error: .setNumberReused(1)))
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    server.grant(start)
    #expect(server.takeSyncs().isEmpty)
    replica.stored(records)
    #expect(server.takeSyncs().map(\.number) == [1])
  }
}
