import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("A history that is hosted in place of the scope's own")
struct RehostedScopeTests {
  private let world = InMemoryWorld()

  /// Returns a history with the state of a scope, and five records of its likes.
  private func history(of scope: Scope, _ canvas: Canvas) -> ScopeHistory {
    let records = (101...105).map { sequence in
      ScopeRecord(
        sequence: sequence,
        fragments: [
          SyncFragment(
            .change, uuid: canvas.uuid, className: "Canvas",
            properties: ["likes": .integer(Int64(sequence))])
        ])
    }
    return ScopeHistory(
      epoch: "e", sequence: 100, state: scope.sharedState(), clients: [:], records: records)
  }

  @Test("A client of the history is sent what it has missed, and no change set from before")
  func missed() throws {
    for number in 1...3 {
      world.canvas.likes = number
      world.scope.flush()
    }
    try world.server.host(world.scope, history: history(of: world.scope, world.canvas)) { _ in }
    let order = world.server.hostedScope(world.scope).order
    var fetch = ScopeFetch(name: "Canvas")
    fetch.since = ScopePosition(epoch: "e", sequence: 103)
    #expect(order.standing(of: nil, fetch) { order.isStateLess(than: $0, for: nil) }.since == 103)
    #expect(order.stream.items(after: 103, upTo: 105)?.map(\.sequence) == [104, 105])
    #expect(order.stream.all.map(\.sequence) == Array(101...105) && world.canvas.likes == 105)
    #expect(world.server.checkInvariants() == [])
  }

  @Test("Sessions from before fetch the scope again, and go on in its history")
  func sessions() throws {
    let (ann, old) = (world.addClient(), RawPeer.joined(world))
    ann.join()
    world.settle()
    ann.canvas.name = "before"
    world.settle()
    var kept: [ScopeRecord] = []
    try world.server.host(world.scope, history: history(of: world.scope, world.canvas)) {
      kept.append($0)
    }
    old.take()
    #expect(old.close?.code == 4097)
    world.exchange()
    world.pass(2)
    ann.canvas.likes += 1
    world.exchange()
    world.server.stored(kept.count, of: world.scope)
    world.settle()
    #expect(world.canvas.likes == 106 && kept.compactMap(\.sequence) == [106])
    #expect(ann.scope.canonicalJSON == world.scope.canonicalJSON && ann.tokens == [nil])
    #expect(world.server.checkInvariants() == [])
  }
}
