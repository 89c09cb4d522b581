import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Many changes of one model in a change set")
struct RepeatedChangeTests {
  private static let most = FragmentValidator.mostChanges
  private let world = InMemoryWorld()
  private let shapes = (0..<3).map { _ in Shape() }

  init() {
    world.canvas.shapes = ModelArray(shapes)
    world.scope.flush()
  }

  private func list(_ shapes: some Sequence<Shape>) -> JSONValue {
    .array(shapes.map { .string($0.uuid.wireText) })
  }

  /// A change of the canvas, in a form that each version knows.
  private func change(_ at: Int, version: Int) -> SyncFragment {
    let isOdd = at % 2 == 1
    var change = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
    if version == 1 {
      change.properties["shapes"] = isOdd ? list(shapes.reversed()) : list(shapes)
    } else {
      change.operations["shapes"] = [.move(shapes[isOdd ? 0 : 1].uuid, .end)]
    }
    return change
  }

  private var refusal: String {
    "ModelObject with UUID '\(world.canvas.uuid.wireText)' is changed by more than \(Self.most) "
      + "fragments (Canvas \(world.canvas.uuid.wireText))"
  }

  @Test(
    "As many as may be are applied in their order, the others are rejected", arguments: [1, 2])
  func bound(version: Int) {
    let client = world.addClient()
    client.join()
    world.settle()
    let peer = RawPeer.joined(world, protocol: version)
    let other = SyncFragment(
      .change, uuid: shapes[2].uuid, className: "Shape", properties: ["x": 7])
    let changes = (0..<Self.most + 2).map { change($0, version: version) }
    let replies = peer.submit(changes + [other])
    #expect(replies.prefix(Self.most).allSatisfy { $0.error == nil })
    #expect(replies[Self.most...].map { $0.error?.message } == [refusal, refusal, nil])
    #expect(Array(world.canvas.shapes) == shapes.reversed() && shapes[2].x == 7)
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.rejections == [] && client.tokens == [nil])
  }

  @Test("An atomic change set with too many is rejected as a whole", arguments: [1, 2])
  func atomic(version: Int) {
    let peer = RawPeer.joined(world, protocol: version)
    let changes = (0...Self.most).map { change($0, version: version) }
    let replies = peer.submit(changes, atomic: true)
    #expect(replies.count == changes.count && replies.last?.error?.message == refusal)
    #expect(replies.allSatisfy { $0.error != nil })
    #expect(Array(world.canvas.shapes) == shapes)
    #expect(peer.submit(Array(changes.dropLast()), atomic: true).allSatisfy { $0.error == nil })
    #expect(Array(world.canvas.shapes) == shapes.reversed())
  }

  @Test("Additions of a model that the scope has count as changes", arguments: [1, 2])
  func additions(version: Int) {
    let peer = RawPeer.joined(world, protocol: version)
    let again = SyncFragment(
      .add, uuid: shapes[0].uuid, className: "Shape", properties: ["x": 3])
    let change = SyncFragment(
      .change, uuid: shapes[0].uuid, className: "Shape", properties: ["x": 4])
    let additions = Array(repeating: again, count: Self.most)
    #expect(peer.submit(additions + [change]).map { $0.error == nil }.last == false)
    #expect(shapes[0].x == 3)
    let replies = peer.submit(Array(additions.dropLast()) + [change], atomic: true)
    #expect(replies.allSatisfy { $0.error == nil } && shapes[0].x == 4)
  }
}
