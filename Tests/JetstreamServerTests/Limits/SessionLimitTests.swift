import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Limits on sessions and on connections without one")
struct SessionLimitTests {
  private func world(_ change: (inout ServerLimits) -> Void) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    change(&configuration.limits)
    return InMemoryWorld(configuration: configuration)
  }

  /// A client that has the scope.
  private func neighbour(in world: InMemoryWorld) -> WorldClient {
    let client = world.addClient()
    client.join(as: "Grace")
    world.settle()
    return client
  }

  /// Checks that a client goes on in its only session.
  private func expectUnharmed(
    _ client: WorldClient, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let world = client.world
    client.canvas.likes += 1
    world.scope.flush()
    client.scope.flush()
    world.settle()
    #expect(world.canvas.likes == client.canvas.likes, sourceLocation: sourceLocation)
    #expect(client.tokens == [nil] && client.rejections == [], sourceLocation: sourceLocation)
    #expect(client.engine.status == .online, sourceLocation: sourceLocation)
  }

  @Test("A client beyond the number of sessions is refused, and asks again later")
  func sessions() {
    let world = world { $0.sessions = 2 }
    let client = neighbour(in: world)
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    let third = world.addClient()
    third.join()
    world.exchange()
    #expect(world.server.sessionCount == 2 && world.limitHits == [.sessions: 1])
    world.server.endSession(peer.token!, telling: .rejected("Enough"))
    world.pass(40)
    #expect(third.fetchResult != nil && third.engine.status == .online)
    expectUnharmed(client)
  }

  @Test("A principal with too many sessions is refused a further one, and others are not")
  func principal() {
    let world = world { $0.sessionsPerPrincipal = 2 }
    let client = neighbour(in: world)
    let peers = (0..<4).map { _ in RawPeer(world) }
    let errors = peers.map { $0.createSession(as: "Mallory") }
    #expect(
      errors.map { $0?.type } == [nil, nil]
        + Array(repeating: "too-many-sessions-of-principal", count: 2))
    #expect(errors[2]?.retryAfter == .seconds(30))
    #expect(peers[3].close?.code == 4096 && peers[3].closeError?.type == errors[3]?.type)
    #expect(world.limitHits == [.sessionsPerPrincipal: 2])
    #expect(RawPeer(world).createSession(as: "Trent") == nil)
    #expect(RawPeer(world).createSession() == nil, "Guests are no principal.")
    expectUnharmed(client)
  }

  @Test("A further session of a principal takes the place of the one that is absent the longest")
  func absent() {
    let world = world { $0.sessionsPerPrincipal = 3 }
    let client = neighbour(in: world)
    let peers = (0..<3).map { _ in RawPeer(world) }
    for peer in peers {
      peer.createSession(as: "Trent")
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    }
    for number in [1, 0] {
      peers[number].send(.ping(Ping(ack: 0)))
      world.cut(peers[number].link)
      world.pass(20)
    }
    #expect(RawPeer(world).createSession(as: "Trent") == nil)
    #expect(world.endedSessions.map(\.token) == [peers[1].token])
    #expect(RawPeer(world).createSession(as: "Trent") == nil)
    #expect(world.endedSessions.map(\.token) == [peers[1].token, peers[0].token])
    #expect(RawPeer(world).createSession(as: "Trent")?.type == "too-many-sessions-of-principal")
    #expect(world.server.sessionCount == 4)
    expectUnharmed(client)
  }

  @Test("A session that its client is about to resume makes room for no other one")
  func resuming() throws {
    let world = world { $0.sessionsPerPrincipal = 1 }
    let peer = RawPeer(world)
    #expect(peer.createSession(as: "Trent") == nil)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    world.cut(peer.link)
    let token = try #require(peer.token)
    world.authenticate = { $0.token == token ? .pending : .accepted(Principal("Trent")) }
    world.server.opened(1_000, params: ["sessiontoken": token], now: world.now)
    #expect(RawPeer(world).createSession()?.type == "too-many-sessions-of-principal")
    world.server.authenticated(1_000, .success(Principal("Trent")), now: world.now)
    #expect(world.server.sessionInfos.map(\.token) == [token] && world.endedSessions.isEmpty)
  }

  @Test("A client whose credentials have expired takes the place of no other session")
  func expiredReplacement() {
    let world = world { $0.sessionsPerPrincipal = 1 }
    let peer = RawPeer(world)
    #expect(peer.createSession(as: "Trent") == nil)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    world.cut(peer.link)
    world.date = Date()
    world.authenticate = { _ in .accepted(Principal("Trent", expiry: .distantPast)) }
    #expect(RawPeer(world).createSession() == .credentialsExpired)
    #expect(world.server.sessionInfos.map(\.token) == [peer.token])
  }

  @Test("Sessions from one address are limited, and a network of IPv6 counts as one address")
  func address() {
    let world = world { $0.sessionsPerAddress = 2 }
    let client = neighbour(in: world)
    func error(from address: String) -> String? {
      RawPeer(world, address: address).createSession()?.type
    }
    #expect(error(from: "203.0.113.5") == nil && error(from: "203.0.113.5") == nil)
    #expect(error(from: "203.0.113.5") == "too-many-sessions-of-address")
    #expect(error(from: "::ffff:203.0.113.5") == "too-many-sessions-of-address")
    #expect(error(from: "203.0.113.6") == nil)
    #expect(error(from: "2001:db8:0:1::1") == nil && error(from: "2001:db8:0:1:ffff::1") == nil)
    #expect(error(from: "2001:db8::1:0:0:0:2") == "too-many-sessions-of-address")
    #expect(error(from: "2001:db8:0:2::1") == nil)
    #expect(world.limitHits == [.sessionsPerAddress: 3])
    let first = world.server.sessionInfos.first { $0.request?.remoteAddress == "203.0.113.5" }
    world.server.endSession(first!.token, telling: .rejected("Enough"))
    #expect(error(from: "203.0.113.5") == nil, "A session that has ended does not count.")
    expectUnharmed(client)
  }

  @Test("A flood of silent connections keeps others out until the handshake's time is over")
  func handshakes() {
    let world = world { $0.handshakes = 3 }
    let client = neighbour(in: world)
    let flood = (0..<8).map { RawPeer(world, address: "203.0.113.\($0)") }
    for peer in flood { peer.take() }
    #expect(
      flood.map { $0.closeError?.type } == Array(repeating: nil, count: 3)
        + Array(repeating: "too-many-handshakes", count: 5))
    #expect(flood[7].close?.code == 4096 && flood[7].closeError?.retryAfter == .seconds(5))
    let late = world.addClient()
    late.join()
    world.exchange()
    #expect(late.engine.status != .online && world.limitHits == [.handshakes: 6])
    // A client that resumes its session needs no place.
    let token = world.server.sessionInfos[0].token
    world.cut(client.link!)
    world.pass(2)
    #expect(client.engine.status == .online && client.tokens == [nil, token])
    world.pass(14)
    #expect(late.engine.status == .online && late.fetchResult != nil)
    late.canvas.name = "in"
    world.settle()
    #expect(world.canvas.name == "in" && client.canvas.name == "in")
  }

  @Test("A client that has a session, or has gone, makes room for others")
  func released() {
    let world = world { $0.handshakes = 2 }
    for number in 0..<6 {
      let (peer, gone) = (RawPeer(world), RawPeer(world))
      peer.createSession()
      world.cut(gone.link)
      let refused = RawPeer(world)
      refused.send(#"{"type":"Ping","index":0,"ack":0}"#)
      #expect(peer.token != nil && refused.closeError?.type == "unrecognized-handshake")
      #expect(world.server.sessionCount == number + 1)
    }
    #expect(world.limitHits == [:])
  }

  @Test("A client that the app is being asked about keeps its place")
  func authenticating() {
    let world = world { $0.handshakes = 1 }
    world.authenticate = { _ in .pending }
    let asked = RawPeer(world)
    asked.createSession()
    let other = RawPeer(world)
    other.take()
    #expect(other.closeError?.type == "too-many-handshakes")
    world.server.authenticated(asked.link.id, .success(nil), now: world.now)
    asked.take()
    #expect(asked.token != nil)
    let third = RawPeer(world)
    third.take()
    #expect(third.close == nil)
  }

  @Test("An address with too many connections without a session is refused, and others are not")
  func handshakesOfAddress() {
    let world = world { $0.handshakesPerAddress = 3 }
    let client = neighbour(in: world)
    let flood = (0..<5).map { RawPeer(world, address: "2001:db8::\($0)") }
    for peer in flood { peer.take() }
    #expect(
      flood.map { $0.closeError?.type } == [nil, nil, nil]
        + Array(repeating: "too-many-handshakes-of-address", count: 2))
    #expect(RawPeer(world, address: "203.0.113.5").createSession() == nil)
    #expect(world.limitHits == [.handshakesPerAddress: 2])
    expectUnharmed(client)
    #expect(RawPeer(world, address: "2001:db8::a").close == nil)
    world.pass(11)
    #expect(RawPeer(world, address: "2001:db8::b").createSession() == nil)
  }

  @Test("A session that has too many scopes is refused the next one")
  func scopes() {
    let world = world { $0.scopesPerSession = 2 }
    let client = neighbour(in: world)
    for name in ["A", "B"] {
      world.moreScopes[name] = Scope(name: name, root: Canvas(), ticker: world.serverTicker)
    }
    let peer = RawPeer.joined(world, protocol: 2)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "A"))))
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "B"))))
    let replies = peer.messages.compactMap {
      if case .scopeFetchReply(let reply) = $0 { reply } else { nil }
    }
    #expect(replies.map { $0.error?.type } == [nil, nil, "too-many-scopes"])
    #expect(world.limitHits == [.scopesPerSession: 1])
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: replies[1].scopeIndex!))))
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "B"))))
    guard
      case .scopeFetchReply(let last)? = peer.messages.last(where: { $0.type == "ScopeFetchReply" })
    else { return }
    #expect(last.error == nil && last.scopeIndex != nil)
    expectUnharmed(client)
  }

  @Test("A session that has too many scopes has no other one opened", arguments: [1, 2])
  func openedScopes(version: Int) {
    var limits = ServerLimits()
    limits.scopesPerSession = 2
    let world = OpeningWorld(limit: 10, limits: limits)
    world.connect(1, version: version)
    for name in ["A", "B", "C"] { world.fetch(name, on: 1) }
    #expect(world.takeSteps() == ["open A", "open B"])
    #expect(world.take(1) == ["too-many-scopes"])
    for name in ["A", "B"] { _ = world.open(name) }
    #expect(world.take(1) == ["granted", "granted"])
    world.fetch("C", on: 1)
    #expect(world.take(1) == ["too-many-scopes"] && world.takeSteps().isEmpty)
    // One that it has is no other one.
    world.fetch("A", on: 1)
    #expect(world.take(1) == ["granted"])
  }

  @Test(
    "Repeated fetches of a scope that is being opened count as one scope, and only so many wait")
  func repeatedFetches() {
    var limits = ServerLimits()
    limits.scopesPerSession = 1
    let world = OpeningWorld(limit: 10, limits: limits, keptMessages: 20)
    world.connect(1)
    for _ in 1...3 { world.fetch("A", on: 1) }
    #expect(world.takeSteps() == ["open A"] && world.take(1).isEmpty)
    _ = world.open("A")
    #expect(world.take(1) == ["granted", "granted", "granted"])
    world.connect(2)
    for _ in 1...21 { world.fetch("B", on: 2) }
    #expect(world.takeSteps() == ["open B"] && world.take(2) == ["too-many-scopes"])
  }

  @Test("Repeated fetches of a scope in which the rights are not known count as one scope")
  func repeatedQuestions() throws {
    let world = world { $0.scopesPerSession = 2 }
    world.access = { _, _ in .pending }
    let names = ["A", "B"]
    for name in names {
      world.moreScopes[name] = Scope(name: name, root: Canvas(), ticker: world.serverTicker)
    }
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    for name in ["A", "A", "A", "B"] {
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: name))))
    }
    for name in names.reversed() {
      try world.decide(#require(peer.token), name, .success(.readWrite))
    }
    world.settle()
    #expect(world.server.hosts.values.count { $0.audience.subscriptions.count == 1 } == 2)
    #expect(world.limitHits == [:])
  }
}
