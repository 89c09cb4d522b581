import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// A client of version 1 goes back to the values before its own change when that is rejected, and drops models with the
/// last collection that holds them: it has to be told what the server has.
@Suite("Change sets of old clients that are refused before they are judged")
struct RefusedSetTests {
  private static func limited(
    _ change: (inout ServerLimits) -> Void
  ) -> ServerEngine.Configuration {
    var configuration = ServerEngine.Configuration()
    change(&configuration.limits)
    return configuration
  }

  private func receiveAll(_ world: InMemoryWorld) {
    let link = world.links.first!
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
  }

  /// Has an old client make a change while a name of the server's is on its way, and expects that both have the same in
  /// the end.
  private func expectSame(
    _ world: InMemoryWorld, type: String, _ change: (Canvas) -> Void,
    at location: SourceLocation = #_sourceLocation
  ) {
    let shape = Shape()
    shape.label = "old"
    world.canvas.shapes = [shape]
    let old = OldClient(world)
    world.settle()
    change(old.canvas)
    old.canvas.name = "mine"
    old.flush()
    world.canvas.name = "theirs"
    world.scope.flush()
    receiveAll(world)
    world.exchange()
    #expect(old.rejections.first?.type == type, sourceLocation: location)
    #expect(old.canvas.name == "theirs", sourceLocation: location)
    #expect(old.canvas.shapes.map(\.label) == ["old"], sourceLocation: location)
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON, sourceLocation: location)
  }

  @Test("One without the right to change anything shows what the others have done")
  func readOnly() {
    let world = InMemoryWorld()
    world.access = { _, _ in .decided(.success(.readOnly)) }
    expectSame(world, type: "read-only") { _ in }
  }

  @Test("One that has sent too many fragments shows what the others have done")
  func fragments() {
    let world = InMemoryWorld(configuration: Self.limited { $0.fragmentsPerChangeSet = 1 })
    expectSame(world, type: "too-many-fragments") { $0.shapes[0].label = "new" }
  }

  @Test("One for whose models there is no room gets those again that it has removed")
  func models() {
    let world = InMemoryWorld(configuration: Self.limited { $0.modelsPerScope = 2 })
    expectSame(world, type: "scope-full") { $0.shapes = [Shape()] }
  }

  @Test("Models that only some of its changes of a collection have left out are sent again")
  func repeated() {
    let world = InMemoryWorld()
    world.access = { _, _ in .decided(.success(.readOnly)) }
    let shapes = (0..<3).map { _ in Shape() }
    world.canvas.shapes = ModelArray(shapes)
    world.scope.flush()
    let peer = RawPeer.joined(world)
    let changes = [shapes[0...1], shapes[1...2]].map { rest in
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["shapes": .array(rest.map { .string($0.uuid.wireText) })])
    }
    #expect(peer.submit(changes).allSatisfy { $0.error?.type == "read-only" })
    let correction = peer.syncs.last?.fragments ?? []
    #expect(correction.map(\.kind) == [.add, .add, .change])
    #expect(correction.dropLast().map(\.uuid) == [shapes[0].uuid, shapes[2].uuid])
    let last = correction.last?.properties["shapes"] ?? .null
    #expect(FragmentValidator.uuids(in: last) == shapes.map(\.uuid))
  }

  @Test("One that loses its rights while a large change set is judged gets what it has removed")
  func large() throws {
    var configuration = ServerEngine.Configuration()
    configuration.sliceSize = 4
    let world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
    world.access = { _, _ in .decided(.success(.readWrite)) }
    world.canvas.shapes = ModelArray((0..<20).map { _ in Shape() })
    world.canvas.hidden = [Shape()]
    let old = OldClient(world)
    world.settle()
    for shape in old.canvas.shapes { shape.x = 1 }
    old.canvas.hidden = []
    old.flush()
    world.exchange()
    #expect(world.judge() && old.rejections.isEmpty)
    let session = try #require(world.server.sessions.values.first)
    world.server.changeAccess(session.info.token, "Canvas", .success(.readOnly), now: world.now)
    while world.judge() {}
    world.exchange()
    #expect(old.rejections.first?.type == "read-only")
    #expect(old.canvas.hidden.count == 1)
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
