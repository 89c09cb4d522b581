import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client of version 1 that loses its session sends again what it has had no answer to. An addition among that may
/// be one of a model that the scope, and other clients, have had since.
@Suite("Additions that version 1 sends again")
struct RepeatedAdditionTests {
  private let world = InMemoryWorld()

  private func add(_ uuid: UUID, in peer: RawPeer) {
    let properties: JSONObject = ["x": 0]
    peer.submit([
      SyncFragment(.add, uuid: uuid, className: "Shape", properties: properties),
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["shapes": .array([.string(uuid.wireText)])]),
    ])
  }

  @Test(
    "Their values are corrected for an old client that has changed the model before it was told of them"
  )
  func values() {
    let (writer, reader) = (RawPeer.joined(world), RawPeer.joined(world))
    let uuid = UUID()
    add(uuid, in: writer)
    reader.take()
    reader.acknowledge()
    add(uuid, in: RawPeer.joined(world))
    reader.submit([SyncFragment(.change, uuid: uuid, className: "Shape", properties: ["x": 1])])
    #expect(world.canvas.shapes.first?.x == 1)
    let told = reader.syncs.flatMap(\.fragments).filter { $0.uuid == uuid }
    #expect(told.last?.properties["x"] == 1)
  }
}
