import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("Clients that give a number to another change set")
struct ReusedNumberTests {
  private let world = InMemoryWorld()
  private let client = UUID()

  private func peer() -> RawPeer {
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: client))))
    return peer
  }

  private func sync(_ peer: RawPeer, number: Int, adding likes: Int64) -> Message {
    var fragment = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
    fragment.operations["likes"] = [.add(likes)]
    var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: [fragment])
    sync.number = number
    return peer.stamp(.scopeSync(sync))
  }

  private func isReused(_ message: Message, by peer: RawPeer) -> Bool {
    peer.replies(to: message.index)?.map(\.error?.type) == [WireError.setNumberReused(1).type]
  }

  @Test("Nothing behind it is applied, since the client sends it again under another identity")
  func behind() {
    let peer = peer()
    peer.send(sync(peer, number: 1, adding: 1))
    let messages = (1...3).map { sync(peer, number: $0, adding: 10) }
    for message in messages { peer.send(message) }
    for message in messages { #expect(isReused(message, by: peer)) }
    #expect(world.canvas.likes == 1)
    // The one that was decided before is answered as it was.
    let first = sync(peer, number: 1, adding: 1)
    peer.send(first)
    #expect(peer.replies(to: first.index) == [FragmentReply()])

    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: UUID()))))
    for number in 1...3 { peer.send(sync(peer, number: number, adding: 10)) }
    #expect(world.canvas.likes == 31 && world.server.checkInvariants() == [])
  }

  @Test("Nothing is applied either once the client has fetched the scope again as before")
  func fetchedAgain() {
    let peer = peer()
    peer.send(sync(peer, number: 1, adding: 1))
    let reused = sync(peer, number: 1, adding: 10)
    peer.send(reused)
    #expect(isReused(reused, by: peer))
    // The client may have made both before it knew of the refusal.
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: client))))
    let next = sync(peer, number: 2, adding: 10)
    peer.send(next)
    #expect(isReused(next, by: peer) && world.canvas.likes == 1)

    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: UUID()))))
    peer.send(sync(peer, number: 1, adding: 10))
    #expect(world.canvas.likes == 11 && world.server.checkInvariants() == [])
  }

  @Test("The answer comes behind those that wait until they are durable")
  func inOrder() {
    let peer = peer()
    peer.send(sync(peer, number: 1, adding: 1))
    let host = world.server.hosts.values.first!
    var records: [ScopeRecord] = []
    host.order.records.store = { records.append($0) }
    let second = sync(peer, number: 2, adding: 1)
    let reused = sync(peer, number: 2, adding: 10)
    for message in [second, reused] { peer.send(message) }
    #expect(records.count == 1 && world.canvas.likes == 2)
    #expect(peer.replies(to: second.index) == nil && peer.replies(to: reused.index) == nil)
    host.order.records.stored(records.count)
    world.server.endTurn()
    peer.take()
    #expect(peer.replies(to: second.index) == [FragmentReply()] && isReused(reused, by: peer))
  }
}
