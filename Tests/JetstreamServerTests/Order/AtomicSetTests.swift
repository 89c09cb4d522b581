import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

@Suite("An atomic set is done as a whole or not at all", .paced)
struct AtomicSetTests {
  private let world = InMemoryWorld()

  /// Two clients, of which the first one moves the first shape into `hidden` before the second one knows.
  private func race(
    _ body: (WorldClient) -> ChangeSetHandle
  ) throws -> (one: WorldClient, two: WorldClient, handle: ChangeSetHandle) {
    world.canvas.shapes = [Shape(), Shape()]
    let (one, two) = (world.addClient(), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    one.canvas.hidden.append(one.canvas.shapes.remove(at: 0))
    let handle = body(two)
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    world.settle()
    return (one, two, handle)
  }

  @Test("An atomic set that loses a move is rejected, and nothing of it is done")
  func lostMove() throws {
    var told = 0
    let (one, two, handle) = try race { client in
      client.scope.modifyAtomically {
        client.canvas.shapes[1].parts.append(client.canvas.shapes.remove(at: 0))
        client.canvas.name = "moved"
        client.canvas.likes += 1
      }
    }
    let applied = AppliedFragments(to: one.scope) { _ in told += 1 }
    defer { withExtendedLifetime(applied) {} }
    #expect(handle.state == .rejected)
    #expect(world.canvas.name == nil && world.canvas.likes == 0)
    #expect(world.server.positions.map(\.sequence) == [2], "no sequence is used")
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.canvas.name == nil && client.canvas.shapes[0].parts.isEmpty)
    }
    let reasons = two.scope.conflicts.items.map(\.reason)
    #expect(!reasons.isEmpty)
    #expect(reasons.allSatisfy { if case .rejected = $0 { true } else { false } })
    guard case .rejected(let error)? = reasons.first else { return }
    #expect(error.message.contains("cannot be moved at 'shapes'"))
  }

  @Test("A set that is not atomic does without the lost move, which is in the ledger")
  func lostMoveAlone() throws {
    let (one, two, handle) = try race { client in
      client.scope.modify {
        client.canvas.shapes[1].parts.append(client.canvas.shapes.remove(at: 0))
        client.canvas.name = "moved"
      }
    }
    #expect(handle.state == .accepted && world.canvas.name == "moved")
    #expect(two.scope.conflicts.items.allSatisfy { $0.reason == .moveLost })
    #expect(Set(two.scope.conflicts.items.map(\.property)) == ["shapes", "parts"])
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(two.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("A retry of a lost move does not put the model in two places")
  func retriedLostMove() throws {
    let (one, two, _) = try race { client in
      client.scope.modify {
        client.canvas.shapes[1].parts.append(client.canvas.shapes.remove(at: 0))
      }
    }
    let lost = two.scope.conflicts.items
    #expect(lost.count == 2)
    for conflict in lost { two.scope.retry([conflict]) }
    two.scope.retry(lost)
    two.flush()
    world.settle()
    #expect(two.scope.conflicts.items == lost)
    #expect(world.canvas.hidden.count == 1 && world.canvas.shapes.count == 1)
    #expect(world.canvas.shapes.first?.parts.isEmpty == true)
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  /// Two clients, of which the second one moves the first shape into the second shape, which the first one has removed.
  private func moveIntoRemoved(
    _ body: (WorldClient) -> Void
  ) throws -> (one: WorldClient, two: WorldClient, moved: UUID) {
    world.canvas.shapes = [Shape(), Shape()]
    let (one, two) = (world.addClient(), world.addClient())
    for client in world.clients { client.join() }
    world.settle()
    one.canvas.shapes.remove(at: 1)
    body(two)
    let moved = try #require(two.canvas.shapes[0].parts.first).uuid
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    world.settle()
    return (one, two, moved)
  }

  @Test(
    "A retry of a move into a model that others have removed does not delete the moved model",
    arguments: [false, true], [false, true])
  func retriedMoveIntoNothing(isAtomic: Bool, isInParts: Bool) throws {
    let (_, two, moved) = try moveIntoRemoved { client in
      func move() { client.canvas.shapes[1].parts.append(client.canvas.shapes.remove(at: 0)) }
      if isAtomic {
        client.scope.modifyAtomically { move() }
      } else {
        client.scope.modify { move() }
      }
    }
    let conflicts = two.scope.conflicts.items
    #expect(conflicts.flatMap(\.parts).count == 2)
    if isInParts {
      for conflict in conflicts.flatMap(\.parts) {
        var part = conflict
        part.consequences = []
        two.scope.retry([part])
      }
    } else {
      two.scope.retry(conflicts)
    }
    two.flush()
    world.settle()
    #expect(world.canvas.shapes.map(\.uuid) == [moved])
    #expect(two.scope.conflicts.items == conflicts)
    #expect(two.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("A retry of one half of a move makes the whole move")
  func retriedHalf() throws {
    world.canvas.shapes = [Shape(), Shape()]
    let client = world.addClient()
    client.join()
    world.settle()
    let (moved, holder) = (client.canvas.shapes[0], client.canvas.shapes[1])
    try client.scope.modify(procedure: "none") {
      holder.parts.append(client.canvas.shapes.remove(at: 0))
    }
    world.settle()
    let conflicts = client.scope.conflicts.items.flatMap(\.parts)
    #expect(client.canvas.shapes.count == 2 && conflicts.count == 2)
    var removal = try #require(conflicts.first { $0.property == "shapes" })
    removal.consequences = []
    client.scope.retry([removal])
    world.settle()
    #expect(client.scope.conflicts.items.isEmpty)
    #expect(world.canvas.shapes.map(\.uuid) == [holder.uuid])
    #expect(world.canvas.shapes.first?.parts.map(\.uuid) == [moved.uuid])
  }

  @Test(
    "A retry that needs a rejected addition makes the moves into the added model, too",
    arguments: ["parts", "hidden"])
  func retriedWithAddition(property: String) throws {
    world.canvas.shapes = [Shape(), Shape()]
    let client = world.addClient()
    client.join()
    world.settle()
    let (moved, other, group) = (client.canvas.shapes[0], client.canvas.shapes[1], Shape())
    try client.scope.modify(procedure: "none") {
      group.parts.append(client.canvas.shapes.remove(at: 0))
      client.canvas.hidden.append(group)
    }
    try client.scope.modify(procedure: "none") { other.parts.append(group) }
    world.settle()
    let conflicts = client.scope.conflicts.items.flatMap(\.parts)
    #expect(client.canvas.shapes.count == 2)
    var insertion = try #require(conflicts.first { $0.property == property })
    insertion.consequences = []
    client.scope.retry([insertion])
    world.settle()
    #expect(world.canvas.shapes.map(\.uuid) == [other.uuid])
    let added = world.canvas.hidden.first ?? world.canvas.shapes.first?.parts.first
    #expect(added?.uuid == group.uuid && added?.parts.map(\.uuid) == [moved.uuid])
    // The addition brings the rest of its atomic change set.
    let rest = client.scope.conflicts.items.flatMap(\.parts)
    #expect(rest.map(\.property) == (property == "parts" ? [] : ["parts"]))
  }

  @Test("A move into a model that others have removed does not delete the moved model")
  func moveIntoNothing() throws {
    let (one, two, moved) = try moveIntoRemoved { client in
      client.canvas.shapes[1].parts.append(client.canvas.shapes.remove(at: 0))
    }
    #expect(world.canvas.shapes.map(\.uuid) == [moved])
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
    let reasons = Dictionary(
      two.scope.conflicts.items.map { ($0.property ?? "", $0.reason) },
      uniquingKeysWith: { first, _ in first })
    #expect(reasons["shapes"] == .moveLost)
    guard case .rejected? = reasons["parts"] else {
      Issue.record("The insertion is rejected: \(reasons)")
      return
    }
  }

  @Test("A move below a model that the same set removes has no effect")
  func moveBelowRemoved() throws {
    world.canvas.shapes = [Shape(), Shape()]
    world.scope.flush()
    let (moved, removed) = (world.canvas.shapes[0].uuid, world.canvas.shapes[1].uuid)
    let peer = RawPeer.joined(world, protocol: 2)
    var list = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
    list.operations = ["shapes": [.remove(moved), .remove(removed)]]
    var parts = SyncFragment(.change, uuid: removed, className: "Shape", properties: [:])
    parts.operations = ["parts": [.insert(moved, .end)]]
    let replies = peer.submit([list, parts])
    #expect(replies.map(\.lost) == [["shapes"], ["parts"]])
    #expect(world.canvas.shapes.map(\.uuid) == [moved])
  }

  @Test("An atomic set that adds a removed model as one of another class is rejected")
  func otherClass() throws {
    let other = RawPeer.joined(world)
    let peer = RawPeer.joined(world)
    let shape = Shape()
    world.canvas.shapes = [shape]
    world.scope.flush()
    world.canvas.shapes = []
    world.scope.flush()
    peer.take()
    peer.acknowledge()
    let before = world.scope.canonicalJSON
    var fragments = [
      SyncFragment(.add, uuid: shape.uuid, className: "Canvas", properties: [:]),
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["shapes": .array([.string(shape.uuid.wireText)]), "name": "a"]),
    ]
    #expect(peer.submit(fragments, atomic: true).allSatisfy { $0.error != nil })
    #expect(world.scope.canonicalJSON == before)
    other.take()
    #expect(!other.syncs.contains { $0.fragments.contains { $0.properties["name"] == "a" } })
    fragments[0].className = "Shape"
    #expect(peer.submit(fragments, atomic: true).allSatisfy { $0.error == nil })
  }

  @Test("An atomic set of an old client that adds what others have removed unseen is rejected")
  func mergedAway() {
    let shape = Shape()
    world.canvas.shapes = [shape]
    world.scope.flush()
    let peer = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    world.canvas.shapes = []
    world.scope.flush()
    let before = world.scope.canonicalJSON
    let replies = peer.submit(
      [
        SyncFragment(.add, uuid: shape.uuid, className: "Shape", properties: ["x": 1]),
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas",
          properties: ["shapes": .array([.string(shape.uuid.wireText)]), "name": "a"]),
      ], atomic: true)
    #expect(replies.allSatisfy { $0.error != nil })
    #expect(world.scope.canonicalJSON == before)
    other.take()
    #expect(!other.syncs.contains { $0.fragments.contains { $0.properties["name"] == "a" } })
  }
}
