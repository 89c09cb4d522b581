import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// A large change set makes many parts of a full state due for a measurement.
@Suite("Turns in which the full state of a scope is measured")
struct MeasurementTurnTests {
  private let world: InMemoryWorld

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.sliceSize = 4
    configuration.streamLimit.leastBytes = 1_000
    configuration.limits.bytesPerScope = 1 << 20
    world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
  }

  private var isDue: Bool? {
    world.server.hosts[ObjectIdentifier(world.scope)]?.order.stream.isMeasurementDue
  }

  @Test(
    "The turn that decides a large change set measures nothing, and each part has a turn of its own"
  )
  func turns() {
    let peer = RawPeer.joined(world, protocol: 2)
    world.judgeAll()
    let uuids = (0..<100).map { _ in UUID() }
    let insertion = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": uuids.map { .insert($0, .end) }])
    let additions = uuids.map {
      SyncFragment(.add, uuid: $0, className: "Shape", properties: ["x": 2])
    }
    let index = peer.send([insertion] + additions)
    while peer.replies(to: index) == nil {
      #expect(isDue == false && world.judge())
      peer.take()
    }
    #expect(world.canvas.shapes.count == 100 && isDue == true)
    // A part has about 1,000 bytes, and a shape more than 100.
    #expect(world.judgeAll() > 8)
    #expect(isDue == false)
  }
}
