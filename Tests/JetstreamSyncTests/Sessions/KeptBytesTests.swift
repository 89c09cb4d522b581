import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// A client acknowledges what has come after a mebibyte, and otherwise with its pings only.
@Suite("The bytes that wait for a client's acknowledgement", .paced)
struct KeptBytesTests {
  private let world: InMemoryWorld
  private let client: WorldClient

  init() {
    var configuration = Server.Configuration()
    configuration.keptBytes = 1 << 20
    world = InMemoryWorld(configuration: configuration.engine)
    client = world.addClient()
    client.countsBytes = true
  }

  private func fill() {
    for _ in 0..<8 {
      let shape = Shape()
      shape.label = String(repeating: "x", count: 512 << 10)
      world.canvas.shapes.append(shape)
      world.scope.flush()
    }
  }

  @Test("With a small limit, a large state comes without a wait for a ping")
  func state() {
    fill()
    client.join()
    world.exchange()
    #expect(throws: Never.self) { try client.fetchResult?.get() }
    #expect(client.fetchResult != nil && client.canvas.shapes.count == 8)
  }

  @Test("With a small limit, many changes come without a wait for a ping")
  func changes() {
    client.join()
    world.settle()
    fill()
    world.exchange()
    #expect(client.canvas.shapes.count == 8)
  }
}
