import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client learns that it is a copy when the server refuses a number. The session or the process may end before the
/// client reads that.
@Suite("Refusals of a number that are lost")
struct LostRefusalTests {
  private let world = InMemoryWorld()
  private let identity = UUID()

  /// A scope that a process syncs with a log.
  private final class Kept {
    let canvas: Canvas
    let replica: Replica
    private let history: ReplicaHistory
    private let log: Log

    private final class Log { var records: [ReplicaRecord] = [] }

    init(_ scope: Scope, of client: WorldClient, _ history: ReplicaHistory) throws {
      let log = Log()
      replica = try #require(
        try client.engine.fetch(
          scope, params: [:], history: history, now: client.world.now,
          store: { log.records.append($0) }, completion: { _ in }))
      canvas = try #require(scope.root as? Canvas)
      (self.history, self.log) = (history, log)
    }

    /// The history with which the next process goes on.
    var next: ReplicaHistory {
      var next = history
      next.records += log.records
      return next
    }

    func edit() {
      canvas.likes += 100
      replica.scope.flush()
      store()
    }

    func store() { replica.stored(log.records.count) }
  }

  private func history(_ identity: UUID, _ root: ModelObject) -> ReplicaHistory {
    ReplicaHistory(client: identity, root: root.uuid, nextNumber: 1)
  }

  private func pass(_ kept: Kept...) {
    for _ in 0..<10 {
      for one in kept { one.store() }
      world.pass(1)
    }
  }

  /// Submits the first change set of a client, which adds 10.
  private func submitElsewhere(as identity: UUID, _ root: ModelObject, in name: String = "Canvas") {
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.fetch(as: identity, name)
    peer.submit([adding(10, to: root)], number: 1)
  }

  private func standing(of peer: RawPeer) -> ScopeStanding? {
    peer.messages.lazy.compactMap {
      if case .scopeFetchReply(let reply) = $0 { reply.standing } else { nil }
    }.first
  }

  private func adding(_ likes: Int64, to model: ModelObject) -> SyncFragment {
    var fragment = SyncFragment(.change, uuid: model.uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(likes)]
    return fragment
  }

  @Test("A client that has not given the last number of its own takes another identity first")
  func beforeSending() throws {
    let notes = Canvas()
    let hosted = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = hosted
    let other = UUID()
    submitElsewhere(as: identity, world.canvas)
    submitElsewhere(as: other, notes, in: "Notes")
    let client = world.addClient()
    let first = try Kept(client.scope, of: client, history(identity, world.canvas))
    let scope = Scope(name: "Notes", root: Canvas(), ticker: client.ticker)
    let second = try Kept(scope, of: client, history(other, notes))
    client.engine.connect(params: [:], now: world.now)
    pass(first, second)
    first.edit()
    second.edit()
    pass(first, second)
    #expect(world.canvas.likes == 110 && notes.likes == 110)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(scope.canonicalJSON == hosted.canonicalJSON)
    #expect(first.replica.request.clientID != identity)
    #expect(second.replica.request.clientID != other && client.engine.pendingCount == 0)
    let isRefused = client.heard.contains { message in
      guard case .scopeSyncReply(let reply) = message else { return false }
      return reply.fragmentReplies.contains { $0.error != nil }
    }
    #expect(!isRefused, "nothing is sent under the old identities")
  }

  @Test("All scopes whose numbers one frame refuses take another identity")
  func oneFrame() throws {
    let server = ScriptedServer()
    let scope = Scope(name: "Notes", root: Canvas(), ticker: server.ticker)
    let scopes = [server.scope, scope]
    server.connect()
    let kept = try scopes.map { scope in
      try #require(
        try server.engine.fetch(
          scope, params: [:], history: nil, now: server.now, store: { _ in }, completion: { _ in }))
    }
    let identities = kept.map(\.request.clientID)
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let position = ScopePosition(epoch: "e", sequence: 1)
    for (place, scope) in scopes.enumerated() {
      let root = try #require(scope.root)
      server.receive(
        .scopeFetchReply(
          ScopeFetchReply(
            index: 2 * place + 1, replyTo: place + 1, scopeIndex: place,
            standing: ScopeStanding(position: position))),
        .scopeState(
          ScopeState(
            index: 2 * place + 2, scopeIndex: place, rootUUID: root.uuid,
            fragments: [
              SyncFragment(.change, uuid: root.uuid, className: "Canvas", properties: [:])
            ])))
    }
    for (replica, scope) in zip(kept, scopes) {
      (scope.root as? Canvas)?.likes = 1
      scope.flush()
      replica.stored(replica.journal.made)
    }
    let sent = server.takeSyncs()
    #expect(sent.map(\.number) == [1, 1])
    let replies = sent.enumerated().map { place, sync in
      Message.scopeSyncReply(
        ScopeSyncReply(
          index: 5 + place, replyTo: sync.index,
          fragmentReplies: [FragmentReply(error: .setNumberReused(1))]))
    }
    server.receive(replies[0], replies[1])
    #expect(server.engine.status == .waiting && server.engine.pendingCount == 2)
    for (replica, identity) in zip(kept, identities) {
      #expect(replica.request.clientID != identity)
    }
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("An edit of a copy is applied once, also if its process ends before it reads the answer")
  func restarted() throws {
    submitElsewhere(as: identity, world.canvas)
    let client = world.addClient()
    let kept = try Kept(client.scope, of: client, history(identity, world.canvas))
    client.engine.connect(params: [:], now: world.now)
    pass(kept)
    kept.edit()
    try restart(client, kept)
  }

  @Test(
    "So is that of one of two copies that edit at the same time",
    arguments: [false, true])
  func concurrent(restarts: Bool) throws {
    let client = world.addClient()
    let kept = try Kept(client.scope, of: client, history(identity, world.canvas))
    client.engine.connect(params: [:], now: world.now)
    pass(kept)
    kept.edit()
    submitElsewhere(as: identity, world.canvas)
    if restarts { return try restart(client, kept) }
    try arrive(client)
    world.server.advance(to: world.now + .seconds(3600))
    pass(kept)
    #expect(world.canvas.likes == 110 && client.engine.pendingCount == 0)
    #expect(kept.replica.request.clientID != identity)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "So is that of a copy whose process ends, while the other one goes on and knows its decisions",
    arguments: [1, 2, 30])
  func known(numbers: Int) throws {
    let client = world.addClient()
    let kept = try Kept(client.scope, of: client, history(identity, world.canvas))
    client.engine.connect(params: [:], now: world.now)
    pass(kept)
    let link = try #require(client.link)
    client.wantsOnline = false
    world.cut(link)
    kept.edit()
    let history = kept.next
    client.engine.close()
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.fetch(as: identity)
    for number in 1...numbers {
      var sync = ScopeSync(
        scopeIndex: peer.scopeIndex, fragments: [adding(1, to: world.canvas)])
      (sync.number, sync.decided) = (number, number - 1)
      peer.send(peer.stamp(.scopeSync(sync)))
    }
    peer.fetch(as: identity, decided: numbers)
    try resume(history, likes: Int64(100 + numbers))
  }

  @Test("A process that comes back learns what another one knows to be accepted, or rejected")
  func rejectedElsewhere() throws {
    let missing = Canvas()
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.fetch(as: identity)
    peer.submit([adding(1, to: world.canvas)], number: 1)
    peer.submit([adding(1, to: missing)], number: 2)
    peer.fetch(as: identity, decided: 2)

    let copy = RawPeer(world)
    #expect(copy.createSession() == nil)
    copy.fetch(as: identity, decided: 0)
    let decisions = try #require(standing(of: copy)).decisions
    #expect(decisions.map(\.number) == [1, 2] && decisions.map(\.sequence) == [1, nil])
    #expect(decisions.allSatisfy { $0.checksum != nil && $0.fragmentReplies.isEmpty })
    let replies = [
      copy.submit([adding(1, to: world.canvas)], number: 1),
      copy.submit([adding(1, to: missing)], number: 2),
      copy.submit([adding(2, to: missing)], number: 2),
    ].map { copy.replies(to: $0) }
    #expect(
      replies.map { $0?.map(\.error?.type) } == [
        [nil], [WireError.reasonForgotten.type], [WireError.setNumberReused(2).type],
      ])
    #expect(world.canvas.likes == 1)
  }

  /// Delivers what a client has sent, and cuts its connection before it hears anything.
  private func arrive(_ client: WorldClient) throws {
    let link = try #require(client.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    client.wantsOnline = false
    world.cut(link)
  }

  /// Ends the process of a client after its change set has arrived, and lets the next one continue.
  private func restart(_ client: WorldClient, _ kept: Kept) throws {
    try arrive(client)
    let history = kept.next
    client.engine.close()
    try resume(history, likes: 110)
  }

  /// Lets a process continue with a history whose pending change set the server does not know, although it has decided
  /// another one with its number.
  private func resume(_ history: ReplicaHistory, likes: Int64) throws {
    let next = world.addClient()
    let restored = try Kept(next.scope, of: next, history)
    #expect(restored.canvas.likes >= 100)
    next.engine.connect(params: [:], now: world.now)
    pass(restored)
    #expect(world.canvas.likes == likes && next.engine.pendingCount == 0)
    #expect(restored.replica.request.clientID != identity)
    #expect(next.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(next.engine.checkInvariants() == [] && world.server.checkInvariants() == [])
  }

  @Test("The answer to one that has arrived is found again, and it is not applied twice")
  func answered() throws {
    let client = world.addClient()
    let kept = try Kept(client.scope, of: client, history(identity, world.canvas))
    client.engine.connect(params: [:], now: world.now)
    pass(kept)
    let shape = Shape()
    // A number whose text differs once it is read.
    shape.x = 16_777_216
    shape.y = 0.1
    kept.canvas.shapes.append(shape)
    kept.edit()
    try arrive(client)
    let history = kept.next
    client.engine.close()
    let next = world.addClient()
    let restored = try Kept(next.scope, of: next, history)
    next.engine.connect(params: [:], now: world.now)
    pass(restored)
    #expect(world.canvas.likes == 100 && world.canvas.shapes.count == 1)
    #expect(restored.replica.request.clientID == identity && next.engine.pendingCount == 0)
    #expect(next.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
