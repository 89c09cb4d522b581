import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

@Suite("Frames with more messages than are handled in one go", .live, .timeLimit(.minutes(5)))
struct LongFrameTests {
  @Test("What the messages ask for is done once, with the last part")
  func demands() {
    let world = InMemoryWorld()
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    let fetches: [Result<Message, MessageError>] = (0..<30).map { _ in
      .success(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    }
    for part in 0..<3 {
      world.server.received(
        [
          .frame(
            .init(
              messages: .success(Array(fetches[part * 10..<part * 10 + 10])), isArray: true,
              endsFrame: part == 2))
        ], on: peer.link.id, now: world.now)
      peer.take()
      #expect(peer.messages.count { $0.type == "ScopeFetchReply" } == (part + 1) * 10)
      #expect(peer.messages.count { $0.type == "ScopeState" } == (part == 2 ? 1 : 0))
    }
  }

  @Test("The parts behind the one with which the session ends are not handled")
  func end() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 20)
    let world = InMemoryWorld(configuration: configuration)
    let peer = RawPeer.joined(world)
    for part in 0..<3 {
      let fetches: [Result<Message, MessageError>] = (0..<100).map { _ in
        .success(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
      }
      world.server.received(
        [.frame(.init(messages: .success(fetches), isArray: true, endsFrame: part == 2))],
        on: peer.link.id, now: world.now)
    }
    peer.take()
    #expect(peer.close?.code == 4097)
    #expect(world.fetches.count <= 21)
    #expect(world.endedSessions.count == 1)
  }

  @Test(
    "All of a long frame is handled in the order of its numbers, and others get their turn in between"
  )
  @MainActor
  func order() async throws {
    let room = try await LiveRoom()
    let peer = try await BadPeer.joined(port: room.port)
    let count = 5000
    // The last one first.
    let messages = (0..<count).reversed().map { at in
      #"{"type":"ScopeSync","index":\#(at + 2),"scopeIndex":0,"fragments":[{"type":"change","#
        + #""uuid":"\#(room.shape)","clsName":"Shape","properties":{"x":\#(at + 1)}}]}"#
    }
    let watcher = Watcher(of: room)
    watcher.look()
    defer { watcher.end() }
    try peer.send("[" + messages.joined(separator: ",") + "]")
    for at in 0..<count {
      let replies = try await peer.replies(to: at + 2)
      #expect(replies == [FragmentReply()])
    }
    let seen = watcher.seen
    #expect(seen.contains { 0 < $0 && $0 < Float(count) }, "It was handled in one go: \(seen)")
    await room.server.stop()
  }

  /// Looks at a value again and again. It waits in the main queue for its turn: a task that yields waits for one of the
  /// concurrent executor's threads as well, which others may keep busy.
  @MainActor
  private final class Watcher {
    private let room: LiveRoom
    private(set) var seen: Set<Float> = []
    private var isEnded = false

    init(of room: LiveRoom) { self.room = room }

    func look() {
      if isEnded { return }
      seen.insert(room.canvas.shapes[0].x)
      DispatchQueue.main.async { MainActor.assumeIsolated { self.look() } }
    }

    func end() { isEnded = true }
  }
}
