import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Connections with the token of a session, whose clients may be its owner or strangers who have the token.
@Suite("Connections that claim a session")
struct SessionClaimTests {
  private let world: InMemoryWorld

  init() { self.init(InMemoryWorld()) }

  private init(_ world: InMemoryWorld) {
    self.world = world
    world.authenticate = { _ in .pending }
  }

  private func answer(_ peer: RawPeer, _ answer: Result<Principal?, WireError>) {
    world.server.authenticated(peer.link.id, answer, now: world.now)
    peer.take()
  }

  /// A client with a session, which comes back to it later.
  private func owner() -> (peer: RawPeer, claim: (String?) -> RawPeer) {
    let peer = RawPeer(world)
    peer.createSession()
    answer(peer, .success(Principal("u-1")))
    return (peer, { RawPeer(self.world, params: ["sessiontoken": peer.token!], address: $0) })
  }

  @Test("A stranger who knows the token does not keep its owner from resuming")
  func strangersClaim() {
    let (peer, claim) = owner()
    world.cut(peer.link)
    let own = claim(nil)
    let stranger = claim(nil)
    own.take()
    #expect(own.close == nil && world.server.isWaiting(own.link.id))
    answer(stranger, .failure(.notYou("The credentials are wrong")))
    #expect(stranger.closeError?.denial == .notYou && own.close == nil)
    answer(own, .success(Principal("u-1")))
    own.send(.ping(Ping(ack: 0)))
    #expect(own.close == nil && world.server.sessionCount == 1)
    #expect(!world.server.isWaiting(own.link.id))
  }

  @Test("The last of a session's connections whose client is its owner is the session's")
  func severalClaims() {
    let (_, claim) = owner()
    let (first, second, third) = (claim(nil), claim(nil), claim(nil))
    answer(second, .success(Principal("u-1")))
    first.take()
    third.take()
    #expect(first.close?.code == 1000 && second.close == nil && third.close == nil)
    answer(third, .success(Principal("u-1")))
    second.take()
    #expect(second.close?.code == 1000 && third.close == nil)
  }

  @Test(
    "Strangers who claim a session do not have its owner's connection closed, wherever they are",
    arguments: [false, true])
  func manyClaims(shareAddress: Bool) {
    let (_, claim) = owner()
    let own = claim("192.0.2.1")
    let strangers = (0..<9).map { claim(shareAddress ? "192.0.2.1" : "198.51.\($0).1") }
    for peer in strangers + [own] { peer.take() }
    #expect(own.close == nil && strangers.allSatisfy { $0.close == nil })
    answer(own, .success(Principal("u-1")))
    #expect(own.close == nil && !world.server.isWaiting(own.link.id))
    for peer in strangers { answer(peer, .failure(.notYou("no"))) }
    #expect(strangers.allSatisfy { $0.close != nil } && own.close == nil)
  }

  @Test("All but one of a session's connections take a place among those without a session")
  func claimsCount() {
    var configuration = ServerEngine.Configuration()
    configuration.limits.handshakes = 2
    let world = InMemoryWorld(configuration: configuration)
    let tests = SessionClaimTests(world)
    let owners = (0..<4).map { _ in tests.owner() }
    // The only one of a session needs none.
    let only = owners.dropFirst().map { $0.claim(nil) }
    let claims = (0..<4).map { _ in owners[0].claim(nil) }
    for claim in only + claims { claim.take() }
    #expect(only.allSatisfy { world.server.isWaiting($0.link.id) })
    #expect(claims.map { $0.closeError?.type } == [nil, nil, nil, "too-many-handshakes"])
    #expect(world.limitHits == [.handshakes: 1])
    // One that is refused makes room, and so does one that goes.
    tests.answer(claims[1], .failure(.notYou("no")))
    world.cut(claims[2].link)
    let more = (0..<2).map { _ in owners[0].claim(nil) }
    #expect((more + [claims[0]]).allSatisfy { world.server.isWaiting($0.link.id) })
    // So do one that gets its session, and those that have waited for longer.
    tests.answer(more[1], .success(Principal("u-1")))
    #expect(!world.server.isWaiting(claims[0].link.id))
    let others = (0..<2).map { _ in RawPeer(world) }
    #expect(others.allSatisfy { $0.close == nil } && world.limitHits == [.handshakes: 1])
  }

  @Test("Claims of one session count for their address, and leave the others their places")
  func claimsOfAddress() {
    var configuration = ServerEngine.Configuration()
    configuration.limits.handshakesPerAddress = 3
    let world = InMemoryWorld(configuration: configuration)
    let tests = SessionClaimTests(world)
    let (_, claim) = tests.owner()
    let strangers = (0..<5).map { _ in claim("192.0.2.2") }
    let own = claim("192.0.2.1")
    for peer in strangers + [own] { peer.take() }
    // The first of all needs no place.
    #expect(
      strangers.map { $0.closeError?.type } == [nil, nil, nil, nil]
        + ["too-many-handshakes-of-address"])
    #expect(own.close == nil && world.limitHits == [.handshakesPerAddress: 1])
    tests.answer(own, .success(Principal("u-1")))
    // They have waited for longer than the one that got it.
    for peer in strangers { peer.take() }
    #expect(own.close == nil && strangers.allSatisfy { $0.close != nil })
    #expect(world.server.connectionCount == 1)
  }
}
