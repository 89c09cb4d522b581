import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client gives up while the server reads a state for it, and another client asks for the same state.
@Suite("States that are half read", .paced)
struct HalfReadStateTests {
  /// Scopes of one part, two, and some more.
  static let sizes = 1...40

  private func world(shapes: Int) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = 2_000
    let world = InMemoryWorld(configuration: configuration)
    for _ in 0..<shapes { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    world.encodesAtOnce = false
    return world
  }

  private func peer(_ world: InMemoryWorld, protocol: Int) -> RawPeer {
    let peer = RawPeer(world)
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"0.1.0","protocol":\#(`protocol`),"params":{}}"#
    )
    return peer
  }

  private func frame(_ messages: [Message], endsFrame: Bool = true) -> ServerEngine.Input {
    .frame(
      .init(messages: .success(messages.map { .success($0) }), isArray: true, endsFrame: endsFrame))
  }

  /// A session of version 1 that fetches the scope, and loses its connection in the same turn.
  private func fetchAndGiveUp(_ world: InMemoryWorld) {
    let leaver = peer(world, protocol: 1)
    let fetch = leaver.stamp(.scopeFetch(ScopeFetch(name: "Canvas")))
    let garbage = ServerEngine.Frame(messages: Message.frame(Array("garbage".utf8)), isArray: false)
    world.server.received(
      [frame([fetch]), .frame(garbage)], on: leaver.link.id, now: world.now)
  }

  private func replies(to peer: RawPeer) -> Int {
    peer.take()
    return peer.messages.count { if case .scopeFetchReply = $0 { true } else { false } }
  }

  @Test("A frame of version 1 whose parts come while the state is encoded", arguments: sizes)
  func parts(shapes: Int) {
    let world = world(shapes: shapes)
    let peer = peer(world, protocol: 1)
    for endsFrame in [false, true] {
      let fetch = peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas")))
      world.server.received(
        [frame([fetch], endsFrame: endsFrame)], on: peer.link.id, now: world.now)
      while world.encode() {}
    }
    #expect(replies(to: peer) == 2)
  }

  @Test("A fetch behind one of version 1 that was given up", arguments: sizes)
  func abandoned(shapes: Int) {
    let world = world(shapes: shapes)
    fetchAndGiveUp(world)
    while world.encode() {}
    let peer = peer(world, protocol: 2)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    while world.encode() {}
    #expect(replies(to: peer) == 1)
    world.server.advance(to: world.now + .seconds(2))
    #expect(world.server.hosts.values.allSatisfy { $0.states.size == 0 })
  }

  @Test("A snapshot behind one of version 1 that was given up", arguments: sizes)
  func snapshot(shapes: Int) {
    let world = world(shapes: shapes)
    fetchAndGiveUp(world)
    var isDone = false
    world.server.prepareHistory(of: world.scope) { isDone = true }
    while world.encode() {}
    #expect(isDone)
  }

  @Test("Each of several sessions of version 1 is answered, however fast the scope changes")
  func restless() {
    let world = world(shapes: 60)
    let peers = (0..<3).map { _ in peer(world, protocol: 1) }
    for peer in peers { peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas")))) }
    var rounds = 0
    while rounds < 2_000, world.encode() {
      rounds += 1
      for shape in world.canvas.shapes { shape.x += 1 }
      world.scope.flush()
    }
    #expect(rounds < 2_000 && peers.map(replies) == [1, 1, 1])
  }
}
