import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// The memory of additions that were rejected, in scopes that keep unknown content.
@Suite("Rejected additions", .paced)
struct RejectedAdditionTests {
  @Test("A server forgets the rejected additions of sessions that have ended", arguments: [1, 2])
  func ended(version: Int) {
    let world = InMemoryWorld(unknown: .keep)
    let peer = RawPeer.joined(world, protocol: version)
    for _ in 0..<10 {
      let replies = peer.submit([
        SyncFragment(.add, uuid: UUID(), className: "Shape", properties: ["x": "no number"])
      ])
      #expect(replies.count == 1 && replies[0].error != nil)
    }
    #expect(world.server.restingTables["rejectedAdditions"] == 10)
    world.cut(peer.link)
    world.advance(by: .seconds(601))
    #expect(world.server.sessionCount == 0)
    #expect(world.server.restingTables["rejectedAdditions"] == 0)
  }

  @Test("A scope in which nothing is accepted remembers rejected additions up to a limit")
  func bounded() {
    var tombstones = Tombstones()
    for _ in 0..<Tombstones.rejectedLimit {
      tombstones.note(addition: UUID(), isRejected: true, upTo: 1)
    }
    #expect(tombstones.rejected.count == Tombstones.rejectedLimit)
    let last = UUID()
    tombstones.note(addition: last, isRejected: true, upTo: 1)
    #expect(tombstones.rejected == [last: 1])
  }
}
