import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// A call goes on when its session has ended, and with it the rights of its principal.
@Suite("Rights to what is not decided when its session has ended", .paced)
struct LeftRightsTests {
  private let world: InMemoryWorld
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let open = Open()

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 20, bytes: 200_000)
    configuration.sliceSize = 10
    world = InMemoryWorld(configuration: configuration)
    world.authenticate = { _ in .accepted(Principal("u-1")) }
    world.access = { _, _ in .decided(.success(.readWrite)) }
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func peer(as client: UUID? = UUID()) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: client)
    return peer
  }

  private func likes(_ count: Int) -> [SyncFragment] {
    var fragment = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(1)]
    return Array(repeating: fragment, count: count)
  }

  /// Ends the session of a client by sending more behind a call than may wait.
  private func overflow(_ peer: RawPeer) {
    for number in 2...30 where peer.close == nil { peer.submit(likes(1), number: number) }
    #expect(peer.close?.code == 4097 && world.server.sessionCount == 0)
  }

  private func takeAway(_ way: Way) {
    switch way {
    case .revocation: _ = world.server.revoke("u-1", telling: .notYou("over"))
    case .access:
      let known = world.server.knownAccess(of: "u-1")
      #expect(known.map(\.name) == ["Canvas"])
      for (session, name) in known {
        world.server.changeAccess(
          session.token, name, .failure(.rejected("Out")), now: world.now)
      }
    case .end: world.server.endSession("token1", telling: .rejected("over"))
    }
  }

  enum Way: CaseIterable { case revocation, access, end }

  @Test("A call ends with the rights of its principal", arguments: Way.allCases)
  func call(way: Way) throws {
    let peer = peer()
    peer.call(number: 1)
    overflow(peer)
    let request = try #require(open.requests.first)
    #expect(request.isOpen)
    takeAway(way)
    #expect(!request.isOpen && request.comesAgain)
    #expect(throws: CancellationError.self) { try request.commit(Like()) }
    #expect(world.canvas.likes == 0)
  }

  @Test("A large change set ends with the rights of its principal", arguments: Way.allCases)
  func large(way: Way) {
    world.judgesAtOnce = false
    let peer = peer()
    peer.submit(likes(100), number: 1)
    overflow(peer)
    takeAway(way)
    while world.judge() {}
    #expect(world.canvas.likes == 0)
  }

  @Test("A call that may only read by now is rejected")
  func readOnly() throws {
    let peer = peer()
    peer.call(number: 1)
    overflow(peer)
    for (session, name) in world.server.knownAccess(of: nil) {
      world.server.changeAccess(session.token, name, .success(.readOnly), now: world.now)
    }
    #expect(throws: WireError.self) { try open.requests[0].commit(Like()) }
    #expect(world.canvas.likes == 0)
  }

  @Test(
    "A change set of a session that may only read by now, and then leaves or ends, is rejected",
    arguments: [true, false], [true, false])
  func readOnlyBeforeLeaving(isCall: Bool, ends: Bool) throws {
    world.judgesAtOnce = false
    let peer = peer()
    if isCall { peer.call(number: 1) } else { peer.submit(likes(100), number: 1) }
    for (session, name) in world.server.knownAccess(of: nil) {
      world.server.changeAccess(session.token, name, .success(.readOnly), now: world.now)
    }
    if ends {
      world.server.endSession(try #require(peer.token), now: world.now)
    } else {
      peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: peer.scopeIndex))))
    }
    if isCall {
      #expect(throws: WireError.readOnly) { try open.requests[0].commit(Like()) }
    }
    while world.judge() {}
    #expect(world.canvas.likes == 0)
  }

  @Test("A call ends when the credentials of its principal expire")
  func expiry() {
    let start = Date(timeIntervalSince1970: 1_000_000)
    world.date = start
    world.authenticate = { _ in .accepted(Principal("u-1", expiry: start + 10)) }
    let peer = peer()
    peer.call(number: 1)
    overflow(peer)
    world.server.advance(to: world.now + .seconds(5))
    #expect(open.requests[0].isOpen)
    world.date = start + 11
    world.server.advance(to: world.now + .seconds(11))
    #expect(!open.requests[0].isOpen && open.requests[0].comesAgain)
  }

  @Test(
    "A call goes on with the credentials with which its session was resumed",
    arguments: [30.0, 5.0])
  func renewedExpiry(seconds: TimeInterval) throws {
    let start = Date(timeIntervalSince1970: 1_000_000)
    world.date = start
    world.authenticate = { _ in .accepted(Principal("u-1", expiry: start + 10)) }
    let peer = peer()
    peer.call(number: 1)
    world.authenticate = { _ in .accepted(Principal("u-1", expiry: start + seconds)) }
    let token = try #require(peer.token)
    let again = RawPeer(world, params: ["sessiontoken": token])
    #expect(again.close == nil && world.server.sessionCount == 1)
    world.server.endSession(token, now: world.now)
    // Between the two expiries.
    world.date = start + 8 + (seconds > 10 ? 4 : 0)
    world.server.advance(to: world.now + .seconds(1))
    #expect(open.requests[0].isOpen == (seconds > 10))
    world.date = start + 31
    world.server.advance(to: world.now + .seconds(2))
    #expect(!open.requests[0].isOpen && open.requests[0].comesAgain)
  }

  @Test("Of another principal, nothing ends")
  func others() throws {
    let peer = peer()
    peer.call(number: 1)
    overflow(peer)
    #expect(world.server.revoke("u-2", telling: .notYou("over")) == 0)
    try open.requests[0].commit(Like())
    #expect(world.canvas.likes == 1)
  }

  @Test(
    "What waits for a call in another session of the principal is not applied when both are ended")
  func waiting() {
    let client = UUID()
    let (first, second) = (peer(as: client), peer(as: client))
    first.call(number: 1)
    second.submit(likes(1), number: 2)
    #expect(world.canvas.likes == 0 && open.requests.count == 1)
    #expect(world.server.revoke("u-1", telling: .notYou("over")) == 2)
    while world.judge() {}
    #expect(world.canvas.likes == 0 && !open.requests[0].isOpen)
  }

  @Test("A procedure that takes the rights of its caller away has no effect")
  func ownRights() {
    let peer = peer()
    peer.call(number: 1)
    #expect(throws: CancellationError.self) {
      try open.requests[0].commit { (canvas: Canvas) in
        canvas.likes = 5
        _ = world.server.revoke("u-1", telling: .notYou("over"))
      }
    }
    #expect(world.canvas.likes == 0 && world.server.positions.first?.sequence == 0)
  }

  @Test("Calls that a user's sessions have left when they ended are bounded")
  func leftCalls() {
    var last: RawPeer?
    for _ in 0..<270 {
      let peer = peer()
      peer.call(number: 1)
      world.server.endSession(peer.token ?? "", now: world.now)
      last = peer
    }
    #expect(open.requests.count == 256 && last != nil)
    world.authenticate = { _ in .accepted(Principal("u-2")) }
    peer().call(number: 1)
    #expect(open.requests.count == 257)
  }

  @Test("All scopes that a session has under one name are taken with the rights to it")
  func sameName() throws {
    let peer = peer()
    let other = Scope(name: "Canvas", root: Canvas(), ticker: world.serverTicker)
    world.server.host(other)
    world.replaced = other
    peer.fetch(as: nil)
    world.server.changeAccess(
      try #require(peer.token), "Canvas", .failure(.rejected("Out")), now: world.now)
    peer.take()
    let leaves = peer.messages.count { if case .scopeLeave = $0 { true } else { false } }
    #expect(leaves == 2)
    #expect(world.server.knownAccess(of: nil).isEmpty)
  }

  @Test("A long queue behind a call is emptied in several turns, in its order")
  func longQueue() throws {
    let world = InMemoryWorld()
    let open = Open()
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { open.requests.append($0) }
    world.judgesAtOnce = false
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: UUID())
    peer.call(number: 1)
    for number in 2...3_000 {
      peer.submit(
        [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["name": .string("\(number)")])
        ], number: number)
    }
    try open.requests[0].commit(Like())
    #expect(world.server.positions.first?.sequence == 1025 && world.canvas.name == "1025")
    #expect(world.judge() && world.canvas.name == "2049")
    // A change set that comes meanwhile is handled behind those.
    peer.submit(
      [
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "last"])
      ], number: 3_001)
    while world.judge() {}
    #expect(world.canvas.name == "last" && world.server.positions.first?.sequence == 3_001)
    #expect(peer.close == nil)
  }

  @Test("A change of rights asks no scope in which nothing is left to be decided")
  func manyScopes() throws {
    let found = try growth(from: 250) { count in
      let tests = LeftRightsTests()
      let token = try #require(tests.peer().token)
      let server = try #require(tests.world.server)
      let now = tests.world.now
      let scopes = (0..<count).map { Scope(name: "\($0)", root: Canvas(), ticker: .manual()) }
      for scope in scopes { server.host(scope) }
      return {
        for _ in 0..<count {
          #expect(server.knownAccess(of: "u-1").count == 1)
          server.changeAccess(token, "Canvas", .success(.readWrite), now: now)
        }
        withExtendedLifetime(scopes) {}
      }
    }
    #expect(found < mostLinearGrowth)
  }
}
