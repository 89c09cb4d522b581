import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Answers to change sets that a server cannot read, while its records are not stored.
@Suite("Unreadable change sets while records wait to be stored")
struct UnreadableWhileStalledTests {
  private let world = InMemoryWorld()
  private var host: ScopeHost { world.server.hosts.values.first! }

  /// A peer with a change set that is not stored.
  private func peer(_ version: Int) -> RawPeer {
    let peer = RawPeer.joined(world, protocol: version)
    host.order.records.store = { _ in }
    peer.send([
      SyncFragment(.change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "a"])
    ])
    return peer
  }

  /// Sends a change set without fragments. Returns the index of the message.
  private func sendUnreadable(_ peer: RawPeer) -> Int {
    let index = peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))).index
    peer.send(#"{"type":"ScopeSync","index":\#(index),"scopeIndex":\#(peer.scopeIndex)}"#)
    return index
  }

  @Test("A client of version 2 is answered at once, since the answer says nothing of others")
  func atOnce() {
    let peer = peer(2)
    let index = sendUnreadable(peer)
    #expect(peer.replies(to: index)?.first?.error?.type == "invalid-message")
    #expect(peer.replies(to: index - 1) == nil)
  }

  @Test("A client of version 1 is answered in order, and is read no further with too many")
  func inOrder() throws {
    let peer = peer(1)
    let session = try #require(world.server.sessions.values.first)
    let waiting = session.traffic.awaited.answers(of: host)
    let indexes = (0..<10).map { _ in sendUnreadable(peer) }
    #expect(indexes.allSatisfy { peer.replies(to: $0) == nil })
    #expect(session.traffic.awaited.answers(of: host) == waiting + 10)
    world.server.stored(1, of: world.scope)
    peer.take()
    #expect(indexes.allSatisfy { peer.replies(to: $0)?.first?.error != nil })
    #expect(session.traffic.awaited.answers(of: host) == 0)
  }
}
