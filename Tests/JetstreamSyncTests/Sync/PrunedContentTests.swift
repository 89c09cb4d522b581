import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A scope drops models of unknown classes that nothing names any more, once it has many. A model that is not in the
/// scope and may come back names some.
@Suite("Kept models that a returning model names")
struct PrunedContentTests {
  private let world = InMemoryWorld(unknown: .keep)
  private let shape = UUID()
  /// More than a scope keeps without a look at them.
  private let ghosts = (0..<1_200).map { _ in UUID() }

  private func change(_ properties: JSONObject, _ operations: PropertyOperations = [:])
    -> SyncFragment
  {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: properties,
      operations: operations)
  }

  /// Submits a shape that names models of an unknown class, and puts it somewhere.
  private func submit(
    _ shape: UUID, naming ghosts: ArraySlice<UUID>, _ others: SyncFragment..., by peer: RawPeer
  ) {
    let names = JSONValue.array(ghosts.map { .string($0.wireText) })
    let addition = SyncFragment(
      .add, uuid: shape, className: "Shape", properties: ["ghosts": names])
    let replies = peer.submit(
      ghosts.map { SyncFragment(.add, uuid: $0, className: "Ghost", properties: [:]) }
        + [addition] + others)
    #expect(replies.compactMap(\.error).isEmpty)
    #expect(ghosts.allSatisfy { world.scope.unknownModel($0) != nil })
  }

  private func inserting(_ shape: UUID) -> SyncFragment {
    change([:], ["shapes": [.insert(shape, .end)]])
  }

  @Test(
    "A server keeps them while a client may put back the model, which it does not know has left")
  func departed() throws {
    let (ann, bob) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    submit(shape, naming: ghosts[..<10], inserting(shape), by: ann)
    #expect(ann.submit([change([:], ["shapes": [.remove(shape)]])]) == [FragmentReply()])
    #expect(world.scope.unknownModels.isEmpty)
    let other = UUID()
    submit(other, naming: ghosts[10...], inserting(other), by: ann)
    #expect(bob.submit([change(["selected": .string(shape.wireText)])]) == [FragmentReply()])
    let back = try #require(world.canvas.selected)
    #expect(back.uuid == shape && world.scope.unknownProperties(of: back)["ghosts"] != nil)
    #expect(world.scope.unknownModels.count == ghosts.count)
  }

  @Test("A client keeps them while a pending change set hides the model")
  func hidden() throws {
    var isReader = true
    world.access = { _, _ in .decided(.success(isReader ? .readOnly : .readWrite)) }
    let client = world.addClient()
    client.join()
    world.settle()
    isReader = false
    let peer = RawPeer.joined(world, protocol: 2)
    let own = Shape()
    client.canvas.shapes.append(own)
    client.canvas.selected = own
    client.flush()
    // The shape is a part of the one that is hidden.
    let holder = UUID()
    submit(
      shape, naming: ghosts[...],
      SyncFragment(
        .add, uuid: holder, className: "Shape",
        properties: ["parts": [.string(shape.wireText)]]),
      change(["selected": .string(holder.wireText)]), by: peer)
    let link = try #require(client.link)
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(client.canvas.selected === own && client.engine.pendingCount == 1)
    // It is rejected: the client may only read.
    world.settle()
    #expect(client.canvas.selected?.parts.map(\.uuid) == [shape])
    #expect(client.scope.unknownModels.count == ghosts.count)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("So does one whose observer hides the model while it is being written")
  func hiddenByObserver() throws {
    var isReader = true
    world.access = { _, _ in .decided(.success(isReader ? .readOnly : .readWrite)) }
    let client = world.addClient()
    client.join()
    world.settle()
    isReader = false
    let peer = RawPeer.joined(world, protocol: 2)
    let (mine, holder) = (Shape(), UUID())
    let token = client.canvas.observeChangeImmediately(client, \.name) {
      [canvas = client.canvas] _, _, _ in
      canvas.selected = mine
    }
    submit(
      shape, naming: ghosts[...],
      SyncFragment(
        .add, uuid: holder, className: "Shape",
        properties: ["parts": [.string(shape.wireText)]]),
      change(["name": "theirs", "selected": .string(holder.wireText)]), by: peer)
    let link = try #require(client.link)
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(client.canvas.selected === mine)
    token.cancel()
    world.settle()
    #expect(client.canvas.selected?.parts.map(\.uuid) == [shape])
    #expect(client.scope.unknownModels.count == ghosts.count)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
