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

  @Test("A reference to a model whose addition was refused for lack of room is rejected as well")
  func refused() {
    var configuration = ServerEngine.Configuration()
    configuration.limits.modelsPerScope = 1
    let world = InMemoryWorld(configuration: configuration, unknown: .keep)
    let peer = RawPeer.joined(world, protocol: 2)
    let ghost = UUID()
    func refer(_ name: String) -> SyncFragment {
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: [name: .string(ghost.wireText)])
    }
    let addition = SyncFragment(.add, uuid: ghost, className: "Ghost", properties: [:])
    let replies = peer.submit([addition, refer("ghost")])
    #expect(replies.map { $0.error?.type } == ["scope-full", "scope-full"])
    // As a client sends it that has not got the reply.
    let error = peer.submit([refer("spare")]).first?.error
    #expect(error?.message.hasPrefix("No such ModelObject") == true)
    #expect(world.scope.unknownValue(PropertyKey(uuid: world.canvas.uuid, name: "spare")) == nil)
    // Once it has, it may refer to whatever it likes.
    peer.acknowledge()
    world.canvas.name = "next"
    world.scope.flush()
    world.exchange()
    peer.acknowledge()
    world.advance(by: .seconds(1))
    #expect(world.server.restingTables["rejectedAdditions"] == 0)
  }

  @Test("A client that may only read cannot have the references of others rejected")
  func readOnly() {
    let world = InMemoryWorld(unknown: .keep)
    world.access = { session, _ in
      .decided(.success(session.number == 1 ? .readOnly : .readWrite))
    }
    let (reader, writer) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    let user = UUID()
    let ghost = SyncFragment(.add, uuid: user, className: "Ghost", properties: [:])
    #expect(reader.submit([ghost]).map { $0.error } == [.readOnly])
    let reference = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas",
      properties: ["assignee": .string(user.wireText)])
    #expect(writer.submit([reference]).map { $0.error } == [nil])
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
