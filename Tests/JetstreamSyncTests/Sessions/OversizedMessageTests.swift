import Foundation
import JetstreamServer
import Pacing
import Testing

/// A server sends what one client was allowed to write to the others, however little may wait for them.
@Suite("Messages larger than what may wait on a connection", .live, .timeLimit(.minutes(5)))
@MainActor
struct OversizedMessageTests {
  @Test("A change and a state reach the clients, whose connections and sessions go on")
  func changeAndState() async throws {
    var configuration = Server.Configuration()
    configuration.maximumOutboundBytes = 1 << 20
    let room = try await LiveRoom(configuration)
    let name = String(repeating: "x", count: 2 << 20)
    room.first.canvas.name = name
    func isDropped() -> Bool { room.log.contains { $0.contains("dropped") } }
    // A client that is dropped comes again, and is dropped again.
    try await wait { room.second.canvas.name == name || isDropped() }
    #expect(room.second.canvas.name == name)
    if !isDropped() {
      let third = try await Participant(port: room.port)
      #expect(third.canvas.name == name)
      #expect(room.server.connectionCount == 3 && room.server.sessions.count == 3)
    }
    #expect(!isDropped())
    await room.server.stop()
  }
}
