import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("The identities of calls")
struct CallIdentityTests {
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let world: InMemoryWorld
  private let open = Open()
  private let ann = UUID()

  init() {
    let world = InMemoryWorld()
    self.world = world
    serve(world)
  }

  private func serve(_ world: InMemoryWorld) {
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func peer(_ world: InMemoryWorld) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: ann)
    return peer
  }

  @Test("Calls with one number in two scopes of one name have different identities")
  func sameName() {
    let peer = peer(world)
    peer.call(number: 1)
    let other = Scope(name: "Canvas", root: Canvas(), ticker: world.serverTicker)
    world.server.host(other)
    world.replaced = other
    peer.fetch(as: ann)
    peer.call(number: 1)
    #expect(open.requests.count == 2 && Set(open.requests.map(\.id)).count == 2)
  }

  @Test("A call that is sent again to a server that was started again has the same identity")
  func restart() throws {
    peer(world).call(number: 1)
    let history = try #require(world.server.history(of: world.scope))
    let next = InMemoryWorld()
    serve(next)
    try next.server.host(next.scope, history: history) { _ in }
    peer(next).call(number: 1)
    #expect(open.requests.count == 2 && Set(open.requests.map(\.id)).count == 1)
  }
}
