import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Scopes that are left and removed")
struct LeaveTests {
  private let world = InMemoryWorld()
  private let client: WorldClient

  init() {
    client = world.addClient()
    client.join()
    world.settle()
  }

  private var syncs: Int {
    client.heard.count { if case .scopeSync = $0 { true } else { false } }
  }

  @Test("A server lets go of a scope that a client leaves, and the client may fetch it again")
  func leaveAndReturn() throws {
    #expect(client.engine.leave(client.scope, now: world.now) == [])
    #expect(client.engine.state(of: client.scope) == nil && client.engine.scopes.isEmpty)
    world.exchange()
    world.canvas.name = "without it"
    world.exchange()
    #expect(syncs == 0 && world.server.restingTables["sent"] == nil)
    client.canvas.likes = 5
    world.exchange()
    #expect(world.canvas.likes == 0 && client.engine.pendingCount == 0)
    client.fetch()
    world.settle()
    try client.fetchResult?.get()
    #expect(client.canvas.name == "without it" && client.canvas.likes == 0)
    client.canvas.likes = 7
    world.settle()
    #expect(world.canvas.likes == 7 && world.server.sessionCount == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("What the server has not decided is given back, and stays visible")
  func undecided() {
    let link = client.link
    client.wantsOnline = false
    link.map(world.cut)
    client.canvas.name = "one"
    client.scope.flush()
    let handle = client.scope.modify { client.canvas.likes = 3 }
    let sets = client.engine.leave(client.scope, now: world.now)
    #expect(sets?.count == 2 && sets?.last?.fragments.first?.operations["likes"] != nil)
    #expect(handle.state == .abandoned && client.canvas.name == "one" && client.canvas.likes == 3)
    #expect(client.engine.pendingCount == 0 && client.scope.pendingChangeSets.count == 0)
    // The session goes on, and the server hears of it when there is a connection.
    client.wantsOnline = true
    world.pass(30)
    world.canvas.name = "two"
    world.exchange()
    #expect(syncs == 0 && world.endedSessions.isEmpty)
  }

  @Test("A scope that is left before the server has granted it is given up when it does")
  func beforeTheGrant() {
    let other = Scope(name: "Other", root: Canvas(), ticker: client.ticker)
    let served = Scope(name: "Other", root: Canvas(), ticker: world.serverTicker)
    world.moreScopes["Other"] = served
    var result: Result<Void, SyncError>?
    client.engine.fetch(other, params: [:], now: world.now) { result = $0 }
    _ = client.engine.leave(other, now: world.now)
    #expect(throws: SyncError.notFetched(scope: "Other")) { try result?.get() }
    world.exchange()
    (served.root as? Canvas)?.name = "nobody hears"
    served.flush()
    world.exchange()
    #expect(syncs == 0)
    // The other scope is as it was.
    world.canvas.name = "somebody does"
    world.settle()
    #expect(client.canvas.name == "somebody does")
  }

  @Test("A scope that is left before the grant and fetched again at once stays")
  func againBeforeTheGrant() {
    let other = Scope(name: "Other", root: Canvas(), ticker: client.ticker)
    let served = Scope(name: "Other", root: Canvas(), ticker: world.serverTicker)
    world.moreScopes["Other"] = served
    client.engine.fetch(other, params: [:], now: world.now) { _ in }
    _ = client.engine.leave(other, now: world.now)
    client.engine.fetch(other, params: [:], now: world.now) { _ in }
    world.settle()
    (other.root as? Canvas)?.name = "arrives"
    other.flush()
    world.settle()
    #expect((served.root as? Canvas)?.name == "arrives")
    (served.root as? Canvas)?.likes = 3
    served.flush()
    world.settle()
    #expect((other.root as? Canvas)?.likes == 3)
  }

  @Test("A scope that is fetched again goes on with its numbers if another of its name was left")
  func scopesOfOneName() {
    let server = ScriptedServer()
    let position = ScopePosition(epoch: "e", sequence: 1)
    let other = Scope(name: server.scope.name, root: Canvas(), ticker: server.ticker)
    func grant(_ scope: Scope, at scopeIndex: Int) {
      let fetch = server.takeSent().compactMap { message in
        if case .scopeFetch(let fetch) = message { fetch.index } else { nil }
      }
      let standing = ScopeStanding(position: position)
      server.deliver([
        .scopeFetchReply(
          ScopeFetchReply(replyTo: fetch.last ?? 0, scopeIndex: scopeIndex, standing: standing)),
        server.state(0, scope: scope, at: scopeIndex),
      ])
    }
    server.joinAtPosition(position)
    server.fetch(other, params: ["page": 3])
    grant(other, at: 1)
    for number in 1...3 {
      server.canvas.likes = number
      server.scope.flush()
    }
    (other.root as? Canvas)?.likes = 1
    other.flush()
    #expect(server.takeSyncs().map(\.number) == [1, 2, 3, 1])
    _ = server.engine.leave(server.scope, now: server.now)
    _ = server.engine.leave(other, now: server.now)
    server.fetch()
    server.canvas.likes = 9
    server.scope.flush()
    grant(server.scope, at: 2)
    #expect(server.takeSyncs().map(\.number) == [4])
  }

  @Test("A scope that is synced is not synced as another Scope, too", arguments: [false, true])
  func fetchedTwice(isLogged: Bool) throws {
    let other = Scope(name: "Canvas", root: Canvas(), ticker: client.ticker)
    let result = try fetch(other, params: [:], isLogged: isLogged)
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try result()?.get() }
    #expect(client.engine.scopes.map(\.name) == ["Canvas"])
    expectBothWays()
  }

  @Test(
    "A scope that the server grants a second time is not synced as another Scope, too",
    arguments: [false, true])
  func grantedTwice(isLogged: Bool) throws {
    client.canvas.likes += 1
    client.scope.flush()
    let other = Scope(name: "Canvas", root: Canvas(), ticker: client.ticker)
    let result = try fetch(other, params: ["page": 2], isLogged: isLogged)
    other.modify { (other.root as? Canvas)?.name = "lost" }
    world.canvas.likes += 10
    world.settle()
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try result()?.get() }
    #expect(client.engine.scopes.map(\.name) == ["Canvas"])
    #expect(other.conflicts.items.map(\.mine) == [.value("lost")])
    #expect(world.canvas.likes == 11)
    #expect(client.tokens.count == 1 && world.server.sessionCount == 1)
    expectBothWays()
  }

  @Test("A scope goes on that the server grants a second time after the app has left the other one")
  func grantedTwiceAndLeft() throws {
    let other = Scope(name: "Canvas", root: Canvas(), ticker: client.ticker)
    _ = try fetch(other, params: ["page": 2])
    client.canvas.likes += 1
    client.scope.flush()
    _ = client.engine.leave(other, now: world.now)
    world.canvas.likes += 10
    world.settle()
    #expect(world.canvas.likes == 11)
    expectBothWays()
  }

  @Test("Of three Scopes for which the server grants one scope, the first goes on")
  func grantedThreeTimes() throws {
    client.canvas.likes += 1
    client.scope.flush()
    let others = (2...3).map { _ in Scope(name: "Canvas", root: Canvas(), ticker: client.ticker) }
    let results = try zip(others, 2...).map { try fetch($0, params: ["page": .integer($1)]) }
    world.settle()
    for result in results {
      #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try result()?.get() }
    }
    #expect(client.engine.scopes.first === client.scope && client.engine.scopes.count == 1)
    expectBothWays()
  }

  @Test("A scope goes on that is being asked for when the server grants it a second time")
  func askedBesideSecondGrant() throws {
    let other = Scope(name: "Canvas", root: Canvas(), ticker: client.ticker)
    let result = try fetch(other, params: ["page": 2])
    client.engine.setMode(.manual, of: client.scope, now: world.now)
    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.settle()
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try result()?.get() }
    expectBothWays()
  }

  @Test("Change sets that are on their way when the server grants a scope twice count once")
  func sentBesideSecondGrant() throws {
    let other = Scope(name: "Canvas", root: Canvas(), ticker: client.ticker)
    let result = try fetch(other, params: ["page": 2])
    for _ in 0..<3 {
      client.canvas.likes += 1
      client.scope.flush()
    }
    world.settle()
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try result()?.get() }
    #expect(world.canvas.likes == 3 && client.canvas.likes == 3)
    expectBothWays()
  }

  private func fetch(
    _ scope: Scope, params: JSONValue, isLogged: Bool = false
  ) throws -> () -> Result<Void, SyncError>? {
    var result: Result<Void, SyncError>?
    if isLogged {
      try client.engine.fetch(
        scope, params: params, history: nil, now: world.now, store: { _ in }
      ) { result = $0 }
    } else {
      client.engine.fetch(scope, params: params, now: world.now) { result = $0 }
    }
    return { result }
  }

  /// Expects what the client and the server change to reach the other, and to be counted once.
  private func expectBothWays() {
    let likes = world.canvas.likes
    client.canvas.likes += 1
    world.settle()
    world.canvas.likes += 1
    world.settle()
    #expect(world.canvas.likes == likes + 2 && client.rejections == [])
    world.cut(client.link!)
    client.canvas.likes += 1
    world.canvas.likes += 1
    world.settle()
    #expect(world.canvas.likes == likes + 4 && client.canvas.likes == likes + 4)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "A change set that a closed client abandons is sent when the log of its scope is used again")
  func abandonedWithLog() throws {
    let client = world.addClient()
    var records: [ReplicaRecord] = []
    func fetch(_ history: ReplicaHistory?) throws -> Replica {
      client.engine.connect(params: [:], now: world.now)
      let replica = try client.engine.fetch(
        client.scope, params: [:], history: history, now: world.now,
        store: { records.append($0) }, completion: { _ in })
      return try #require(replica)
    }
    let replica = try fetch(nil)
    world.settle()
    replica.stored(records.count)
    world.cut(client.link!)
    let handle = client.scope.modify { client.canvas.likes += 1 }
    let history = try #require(replica.history)
    client.engine.close()
    #expect(handle.state == .abandoned && client.canvas.likes == 1)
    records = []
    let again = try fetch(history)
    #expect(client.scope.pendingChangeSets.count == 1)
    again.stored(records.count)
    world.settle()
    #expect(world.canvas.likes == 1 && client.canvas.likes == 1)
    #expect(handle.state == .abandoned, "it learns nothing more")
  }

  @Test("A conflict of a scope that has ended is settled when the log brings its change set back")
  func broughtBack() throws {
    let client = world.addClient()
    client.engine.connect(params: [:], now: world.now)
    var records: [ReplicaRecord] = []
    func fetch(_ history: ReplicaHistory?) throws -> Replica {
      let replica = try client.engine.fetch(
        client.scope, params: [:], history: history, now: world.now,
        store: { records.append($0) }, completion: { _ in })
      return try #require(replica)
    }
    let replica = try fetch(nil)
    world.settle()
    client.wantsOnline = false
    world.cut(client.link!)
    client.canvas.likes += 1
    client.scope.flush()
    replica.stored(records.count)
    let history = try #require(replica.history)
    world.server.remove(world.scope, .gone("over"))
    client.wantsOnline = true
    world.pass(30)
    #expect(client.engine.scopes.isEmpty)
    #expect(client.scope.conflicts.items.map(\.property) == ["likes"])
    world.server.host(world.scope)
    records = []
    let again = try fetch(history)
    #expect(client.scope.conflicts.isEmpty && client.engine.pendingCount == 1)
    again.stored(records.count)
    world.settle()
    #expect(world.canvas.likes == 1 && client.canvas.likes == 1)
    #expect(client.scope.conflicts.isEmpty && client.engine.pendingCount == 0)
  }

  @Test(
    "A change set of a log without a state counts once, however often its scope is fetched again",
    arguments: [1, 2])
  func againWithoutState(version: Int) throws {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = version
    let world = InMemoryWorld(configuration: configuration)
    let client = world.addClient()
    var records: [ReplicaRecord] = []
    func fetch(_ history: ReplicaHistory?) throws -> Replica {
      let replica = try client.engine.fetch(
        client.scope, params: [:], history: history, now: world.now,
        store: { records.append($0) }, completion: { _ in })
      return try #require(replica)
    }
    var replica = try fetch(nil)
    let shape = Shape()
    client.canvas.shapes.append(shape)
    client.canvas.likes += 1
    client.scope.flush()
    guard case .named(let name, let root)? = records.first else {
      Issue.record("The log does not begin with a name: \(records)")
      return
    }
    for _ in 0..<2 {
      _ = client.engine.leave(client.scope, now: world.now)
      replica = try fetch(ReplicaHistory(client: name, root: root, records: records))
      #expect(client.canvas.likes == 1 && client.engine.pendingCount == 1)
      #expect(client.canvas.shapes.count == 1 && client.canvas.shapes.first === shape)
    }
    replica.stored(records.count)
    client.engine.connect(params: [:], now: world.now)
    world.settle()
    #expect(world.canvas.likes == 1 && world.canvas.shapes.count == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Content that no change set has stays when a log without change sets is used again")
  func contentWithoutState() throws {
    let client = world.addClient()
    var records: [ReplicaRecord] = []
    client.canvas.name = "mine"
    for _ in 0..<2 {
      let history = records.first.flatMap { record -> ReplicaHistory? in
        guard case .named(let name, let root) = record else { return nil }
        return ReplicaHistory(client: name, root: root, records: records)
      }
      try client.engine.fetch(
        client.scope, params: [:], history: history, now: world.now,
        store: { records.append($0) }, completion: { _ in })
      #expect(client.canvas.name == "mine" && client.engine.pendingCount == 0)
      _ = client.engine.leave(client.scope, now: world.now)
    }
  }

  @Test("Leaving before there was ever a session connects nobody")
  func beforeTheSession() throws {
    let client = world.addClient()
    for _ in 0..<2 {
      try client.engine.fetch(
        client.scope, params: [:], history: nil, now: world.now, store: { _ in }
      ) { _ in }
      _ = client.engine.leave(client.scope, now: world.now)
    }
    world.pass(10)
    #expect(client.engine.status == .offline && client.tokens.isEmpty)
  }

  @Test("A server of version 1 does not tell a scope twice that was left and fetched again")
  func version1() {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = 1
    let world = InMemoryWorld(configuration: configuration)
    let client = world.addClient()
    client.join()
    world.settle()
    _ = client.engine.leave(client.scope, now: world.now)
    world.canvas.likes += 1
    world.settle()
    #expect(client.canvas.likes == 0)
    client.fetch()
    world.settle()
    world.canvas.likes += 1
    world.settle()
    #expect(client.canvas.likes == 2)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "A scope that a server removes for good is lost to its clients loudly",
    arguments: [WireError.gone("over"), .notThere("never was")])
  func removedForGood(error: WireError) {
    client.wantsOnline = false
    client.link.map(world.cut)
    client.canvas.name = "pending"
    client.scope.flush()
    client.canvas.shapes.append(Shape())
    client.scope.flush()
    world.server.remove(world.scope, error)
    client.wantsOnline = true
    world.pass(30)
    #expect(client.engine.state(of: client.scope) == nil && client.engine.pendingCount == 0)
    #expect(client.events.contains { $0.contains(error.message) && $0.contains("2 pending") })
    #expect(client.scope.conflicts.items.map(\.property) == ["name", nil, "shapes"])
    #expect(client.scope.conflicts.items.allSatisfy { $0.reason == .rejected(error) })
    #expect(client.canvas.name == "pending" && client.canvas.shapes.count == 1)
    // The session is not that of the scope alone.
    #expect(client.engine.status == .online && world.server.sessionCount == 1)
  }

  @Test("The guess of a call is no conflict when its scope is removed for good")
  func removedBeforeCall() async throws {
    client.wantsOnline = false
    client.link.map(world.cut)
    client.canvas.name = "pending"
    client.scope.flush()
    let call = try client.scope.call(Like())
    world.server.remove(world.scope, .gone("over"))
    client.wantsOnline = true
    world.pass(30)
    #expect(client.engine.state(of: client.scope) == nil)
    #expect(client.scope.conflicts.items.map(\.mine) == [.value("pending")])
    #expect(client.canvas.likes == 1)
    await #expect(throws: ChangeSetError.self) { try await call.output() }
  }

  @Test("A scope whose state cannot be used is given back to the server")
  func unusable() {
    let server = ScriptedServer()
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    _ = server.takeSent()
    let other = SyncFragment(.change, uuid: UUID(), className: "Shape", properties: [:])
    server.grant(ScopePosition(epoch: "e", sequence: 1), [other])
    guard case .failure(.invalidReply)? = server.fetched.first else {
      Issue.record("The state is used: \(server.fetched)")
      return
    }
    let left = server.takeSent().compactMap { message in
      if case .scopeLeave(let leave) = message { leave.scopeIndex } else { nil }
    }
    #expect(left == [0])
  }

  @Test("A scope that a server removes for now is asked for again, and nothing is lost")
  func removedForNow() {
    client.canvas.name = "before"
    world.settle()
    world.server.remove(world.scope, .notNow("moving", retryAfter: .seconds(3)))
    world.exchange()
    #expect(client.engine.state(of: client.scope)?.stall == .refused("moving"))
    client.canvas.likes += 1
    world.exchange()
    #expect(client.engine.pendingCount == 1)
    world.server.host(world.scope)
    world.settle()
    world.pass(5)
    #expect(world.canvas.likes == 1 && client.scope.conflicts.isEmpty)
    #expect(client.engine.state(of: client.scope)?.isSynced == true)
  }

  @Test("A session of version 1 ends with a scope that is removed")
  func removedFromVersion1() {
    let peer = RawPeer.joined(world)
    world.server.remove(world.scope, .gone("over"))
    peer.take()
    #expect(peer.close?.code == 4097)
    #expect(peer.close?.reason == "scope Canvas is not served any more")
  }

  @Test("What a peer says of a scope that it has left is answered, and what it leaves twice is not")
  func afterwards() {
    let peer = RawPeer.joined(world, protocol: 2)
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))))
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))))
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 9))))
    let change = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "x"])
    #expect(peer.submit([change]).map(\.error) == [.scopeIndexNotFound(0)])
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    guard
      case .scopeFetchReply(let reply)? = peer.messages.last(where: { $0.type == "ScopeFetchReply" }
      )
    else { return }
    #expect(reply.scopeIndex == 0, "the number belongs to the scope")
  }
}

@Suite("Scopes that a live server removes", .live, .timeLimit(.minutes(5)))
@MainActor
struct RemovalTests {
  @Test("A removed scope's log is written and closed, and may be hosted again")
  func log() async throws {
    let directory = try TemporaryDirectory()
    let server = Server()
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await server.host(scope, log: FragmentLog(directory.path))
    let port = try await server.listen()
    let client = Client(
      url: "ws://127.0.0.1:\(port)",
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(20)))
    let (copy, mine) = (Canvas(), Scope(name: "Canvas", root: Canvas()))
    try await client.connect()
    try await client.fetch(mine)
    _ = copy
    let shown = try #require(mine.root as? Canvas)
    for number in 0..<50 {
      shown.likes = number
      mine.flush()
    }
    canvas.name = "the server's own"
    try await server.remove(scope, telling: .notNow("moving", retryAfter: .milliseconds(20)))
    // Nobody else may have the log while it is open.
    let next = Canvas()
    let again = Scope(name: "Canvas", root: next)
    try await server.host(again, log: FragmentLog(directory.path))
    try await client.waitForUpload(of: mine)
    try await client.waitForDownload(of: mine)
    #expect(next.name == "the server's own" && next.likes == 49)
    #expect(mine.canonicalJSON == again.canonicalJSON && mine.conflicts.isEmpty)
    try await client.waitForUpload(of: mine)
    #expect(try client.leave(mine) == [])
    #expect(throws: SyncError.notFetched(scope: "Canvas")) { try client.leave(mine) }
    try await server.remove(again)
    client.close()
    await server.stop()
  }
}
