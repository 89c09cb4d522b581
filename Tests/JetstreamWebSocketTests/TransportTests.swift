import Foundation
import Pacing
import Testing

@testable import JetstreamWebSocket

/// Ignores what it hears, and reports the end.
private final class Listener: TransportHandler {
  let ends = Reports(of: Bool.self)
  func received(_ bytes: ArraySlice<UInt8>) {}
  func ended() { ends.add(true) }
}

@Suite(.live, .timeLimit(.minutes(5))) struct TransportTests {
  private func pair(
    _ closed: Reports<Bool>
  ) async throws -> (transport: SocketTransport, peer: RawSocket) {
    let server = try RawServer()
    let peer = try RawSocket(port: server.port)
    let accepted = try await server.acceptConnection()
    return (
      SocketTransport(descriptor: accepted, loop: .next()) { closed.add(true) }, peer
    )
  }

  /// Fills the kernel's buffers, so that the transport has to wait to write more.
  private func fill(_ transport: SocketTransport) async throws {
    let chunk = EncodedFrame(head: [1], payload: [UInt8](repeating: 0, count: 32 << 20))
    transport.enqueue(chunk)
    try await wait { transport.bufferedBytes < chunk.count }
  }

  /// Runs `body` as one step of a transport's loop.
  private func onLoop<Result: Sendable>(
    of transport: SocketTransport, _ body: @escaping @Sendable () -> Result
  ) async -> Result {
    await withCheckedContinuation { continuation in
      transport.loop.execute { continuation.resume(returning: body()) }
    }
  }

  @Test func socketsAreNonBlockingAndClosedOnExec() async throws {
    let server = try RawServer()
    let peer = try RawSocket(port: server.port)
    let accepted = try await server.acceptConnection()
    for descriptor in [accepted, Platform.makeSocket(family: AF_INET)] {
      try #require(descriptor >= 0)
      #expect(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
      #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
      Platform.closeDescriptor(descriptor)
    }
    withExtendedLifetime(peer) {}
  }

  @Test func theDescriptorIsGivenBackFromEveryState() async throws {
    let closed = Reports(of: Bool.self)
    let (untouched, peer1) = try await pair(closed)
    untouched.abort()
    untouched.abort()
    #expect(try await closed.next())
    #expect(await peer1.readToEnd().isEmpty)

    let (reading, peer2) = try await pair(closed)
    reading.resumeReading()
    reading.close(within: .zero)
    #expect(try await closed.next())
    #expect(await peer2.readToEnd().isEmpty)

    let (paused, peer3) = try await pair(closed)
    paused.resumeReading()
    paused.pauseReading()
    paused.abort()
    #expect(try await closed.next())
    #expect(await peer3.readToEnd().isEmpty)

    let (writing, peer4) = try await pair(closed)
    try await fill(writing)
    writing.abort()
    #expect(try await closed.next())
    _ = await peer4.readToEnd()
  }

  @Test func closingWritesWhatIsQueued() async throws {
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    try await fill(transport)
    transport.close(within: .seconds(60))
    #expect(await peer.readToEnd().count == 1 + (32 << 20))
    #expect(try await closed.next())
  }

  @Test func closingGivesUpOnAPeerThatDoesNotRead() async throws {
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    try await fill(transport)
    transport.close(within: .milliseconds(20))
    #expect(try await closed.next())
    _ = await peer.readToEnd()
  }

  @Test func oneFrameIsQueuedHoweverLarge() async throws {
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    let small = EncodedFrame(head: [1], payload: [])
    // Of which the kernel takes the smaller part while the peer reads nothing.
    let large = EncodedFrame(head: [2], payload: [UInt8](repeating: 0, count: 32 << 20))
    #expect(transport.enqueue(small, upTo: 1000) == .taken)
    #expect(transport.enqueue(large, upTo: 1000) == .taken)
    #expect(transport.enqueue(small, upTo: 1000) == .taken)
    #expect(transport.enqueue(large, upTo: 1000) == .full)
    #expect(transport.bufferedBytes <= large.count + 1000)
    transport.close(within: .seconds(60))
    #expect(await peer.readToEnd().count == large.count + 2)
    #expect(try await closed.next())
  }

  @Test func nothingGoesOutBehindTheLastFrame() async throws {
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    let frames = (1...3).map { EncodedFrame(head: [$0], payload: []) }
    // Not even by a write at once, before the queue was written.
    let acceptances = await onLoop(of: transport) {
      [
        transport.write(frames[0], upTo: 1000),
        transport.enqueue(frames[1], upTo: 1000, isLast: true),
        transport.write(frames[2], upTo: 1000),
        transport.enqueue(frames[2], upTo: 1000),
      ]
    }
    #expect(acceptances == [.taken, .taken, .closed, .closed])
    transport.close(within: .seconds(60))
    #expect(await peer.readToEnd() == [1, 2])
    #expect(try await closed.next())
  }

  @Test func theEndIsReportedOnce() async throws {
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    let listener = Listener()
    transport.setHandler(listener)
    transport.resumeReading()
    peer.finishSending()
    #expect(try await listener.ends.next())
    transport.resumeReading()
    transport.close(within: .zero)
    #expect(try await closed.next())
  }

  @Test func queuedFramesKeepTheirOrderAndContent() async throws {
    var generator = SeededGenerator()
    let closed = Reports(of: Bool.self)
    let (transport, peer) = try await pair(closed)
    var expected: [UInt8] = []
    for _ in 0..<400 {
      let size = [0, 1, 100, 4096, 4097, 70_000].randomElement(using: &generator)!
      let frame = EncodedFrame(head: generator.bytes(3), payload: generator.bytes(size))
      transport.enqueue(frame)
      expected += frame.bytes
    }
    async let received = peer.readToEnd()
    transport.close(within: .seconds(60))
    #expect(await received == expected, "seed \(generator.seed)")
    #expect(try await closed.next())
  }
}
