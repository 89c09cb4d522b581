import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Models that have left stay in memory, in case that an unknown property comes to refer to them again.
@Suite("Limits on the size of a scope that keeps unknown content")
struct KeptContentLimitTests {
  private func world(_ change: (inout ServerLimits) -> Void) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.leastBytes = 4_000
    change(&configuration.limits)
    return InMemoryWorld(configuration: configuration, unknown: .keep)
  }

  private func change(
    _ world: InMemoryWorld, _ properties: JSONObject, _ operations: PropertyOperation...
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: properties,
      operations: operations.isEmpty ? [:] : ["shapes": operations])
  }

  private func text(_ bytes: Int) -> JSONValue { .string(String(repeating: "x", count: bytes)) }

  private func add(_ world: InMemoryWorld, _ shape: UUID, _ bytes: Int = 1) -> [SyncFragment] {
    [
      SyncFragment(.add, uuid: shape, className: "Shape", properties: ["label": text(bytes)]),
      change(world, [:], .insert(shape, .end)),
    ]
  }

  /// Adds a model of an unknown class, to which a property refers.
  private func addGhost(
    _ world: InMemoryWorld, _ ghost: UUID, at name: String, _ properties: JSONObject = [:]
  ) -> [SyncFragment] {
    [
      SyncFragment(.add, uuid: ghost, className: "Ghost", properties: properties),
      change(world, [name: .string(ghost.wireText)]),
    ]
  }

  /// Submits fragments. Returns the type of the first error; nil if all are accepted.
  private func submit(_ fragments: [SyncFragment], by peer: RawPeer) -> String? {
    let replies = peer.submit(fragments)
    peer.acknowledge()
    return replies.compactMap { $0.error }.first.map { $0.type ?? $0.message }
  }

  @Test("Removed models make room for others")
  func models() {
    let world = world { $0.modelsPerScope = 4 }
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(submit([change(world, ["future": 1])], by: peer) == nil)
    let shapes = (0..<3).map { _ in UUID() }
    for shape in shapes { #expect(submit(add(world, shape), by: peer) == nil) }
    #expect(submit(add(world, UUID()), by: peer) == "scope-full")
    for shape in shapes.prefix(2) {
      #expect(submit([change(world, [:], .remove(shape))], by: peer) == nil)
    }
    for _ in 0..<2 { #expect(submit(add(world, UUID()), by: peer) == nil) }
    #expect(submit(add(world, UUID()), by: peer) == "scope-full")
    #expect(world.scope.count == 4)
  }

  @Test("Models that come and go leave nothing behind in the estimated size")
  func bytes() {
    let world = world { $0.bytesPerScope = 50_000 }
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(submit([change(world, ["future": 1])], by: peer) == nil)
    #expect(submit(add(world, UUID(), 20_000), by: peer) == nil)
    var errors: [String] = []
    for _ in 0..<100 {
      let shape = UUID()
      if let error = submit(add(world, shape), by: peer) { errors.append(error) }
      if let error = submit([change(world, [:], .remove(shape))], by: peer) {
        errors.append(error)
      }
    }
    #expect(errors == [])
    let order = world.server.hostedScope(world.scope).order
    let estimate = order.stream.estimatedBytes(of: order.modelCount)
    #expect(estimate > 15_000 && estimate < 30_000, "\(estimate) bytes are estimated.")
  }

  @Test("A model that is added again while an unknown property refers to it counts once")
  func addedAgain() {
    let world = world { $0.modelsPerScope = 2 }
    let peer = RawPeer.joined(world, protocol: 2)
    let ghost = UUID()
    #expect(submit(addGhost(world, ghost, at: "ghost"), by: peer) == nil)
    #expect(submit(addGhost(world, ghost, at: "spare"), by: peer) == nil)
    #expect(submit(addGhost(world, UUID(), at: "other"), by: peer) == "scope-full")
  }

  @Test("Models of unknown classes that a reference brings back count, with all below them")
  func comeBack() {
    let world = world { $0.modelsPerScope = 3 }
    let peer = RawPeer.joined(world, protocol: 2)
    let (ghost, below) = (UUID(), UUID())
    let set =
      addGhost(world, ghost, at: "ghost", ["nested": ["below": .string(below.wireText)]])
      + [SyncFragment(.add, uuid: below, className: "Ghost", properties: [:])]
    #expect(submit(set, by: peer) == nil)
    #expect(submit([change(world, ["ghost": .null])], by: peer) == nil)
    #expect(submit(add(world, UUID()), by: peer) == nil)
    let reference = change(world, ["ghost": ["nested": .string(ghost.wireText)]])
    #expect(submit([reference], by: peer) == "scope-full")
    #expect(world.scope.unknownModels.isEmpty)
  }

  @Test("Models of unknown classes that a reference brings back count as what they are")
  func comeBackLarge() {
    let world = world { $0.bytesPerScope = 50_000 }
    let peer = RawPeer.joined(world, protocol: 2)
    let (ghost, below) = (UUID(), UUID())
    let set =
      addGhost(world, ghost, at: "ghost", ["below": .string(below.wireText)])
      + [SyncFragment(.add, uuid: below, className: "Ghost", properties: ["text": text(30_000)])]
    #expect(submit(set, by: peer) == nil)
    #expect(submit([change(world, ["ghost": .null])], by: peer) == nil)
    #expect(submit(add(world, UUID(), 30_000), by: peer) == nil)
    let reference = change(world, ["ghost": .string(ghost.wireText)])
    #expect(submit([reference], by: peer) == "scope-full")
    #expect(world.scope.unknownModels.isEmpty)
  }
}
