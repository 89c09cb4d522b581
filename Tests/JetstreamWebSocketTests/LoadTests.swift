#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Synchronization
import Pacing
import Testing

@testable import JetstreamWebSocket

@Suite(.live, .serialized, .timeLimit(.minutes(5))) struct LoadTests {
  @Test func manyConnectionsEchoAtOnce() async throws {
    // Both ends live in this process, which may have to ask for that many descriptors.
    var limit = rlimit()
    #if canImport(Darwin)
    let resource = RLIMIT_NOFILE
    #else
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #endif
    getrlimit(resource, &limit)
    limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, 4096))
    setrlimit(resource, &limit)

    // Foundation's `Process.run()` lists the open descriptors, and reads past the end of its buffer when there are some
    // 1,300 of them: a test that starts a process would crash beside this one.
    let count = 400
    try await withListener { listener in
      try await withThrowingTaskGroup(of: WebSocketConnection.self) { group in
        for number in 0..<count {
          group.addTask {
            let connection = try await connect(to: listener)
            for round in 0..<3 {
              try connection.send(text: "\(number) \(round)")
              #expect(try await connection.receive()?.text == "\(number) \(round)")
            }
            return connection
          }
        }
        var open: [WebSocketConnection] = []
        for try await connection in group { open.append(connection) }
        #expect(listener.connectionCount == count)
        for connection in open { connection.beginClose() }
        for connection in open { #expect(try await connection.receive() == nil) }
      }
      try await wait { listener.connectionCount == 0 }
    }
  }

  @Test(arguments: [
    WebSocketConfiguration.SlowConsumerPolicy.close, .abort,
  ])
  func aClientThatNeverReadsIsDroppedAlone(
    policy: WebSocketConfiguration.SlowConsumerPolicy
  ) async throws {
    let bound = 1 << 20
    let configuration = WebSocketConfiguration(
      maximumOutboundBytes: bound, slowConsumerPolicy: policy, closeTimeout: .milliseconds(50))
    let errors = Reports(of: WebSocketError.self)
    let flood: WebSocketListener.ConnectionHandler = { connection, request in
      guard request.path == "/" else { return await echo(connection, request) }
      let payload = [UInt8](repeating: 7, count: 100_000)
      do throws(WebSocketError) {
        _ = try await connection.receive()
        while true {
          try connection.send(binary: payload)
          #expect(connection.bufferedBytes <= bound)
          await Task.yield()
        }
      } catch {
        errors.add(error)
      }
      await #expect(throws: WebSocketError.connectionLost) { _ = try await connection.receive() }
    }
    try await withListener(
      configuration: .init(connection: configuration, handshakeTimeout: .seconds(120)),
      onConnection: flood
    ) { listener in
      let healthy = try await connect(to: listener, path: "/echo")
      let stuck = try await RawSocket.upgraded(port: listener.port)
      var encoder = FrameEncoder(role: .client)
      stuck.send(encoder.message(.text("go")).bytes)
      async let dropped = errors.next()
      for round in 0..<200 {
        try healthy.send(text: "\(round)")
        #expect(try await healthy.receive()?.text == "\(round)")
      }
      #expect(try await dropped == .outboundQueueFull)
      try await wait { listener.connectionCount == 1 }
      _ = await stuck.readToEnd()
      try healthy.send(text: "still here")
      #expect(try await healthy.receive()?.text == "still here")
    }
  }

  @Test func aFullQueueThatIsKeptIsOnlyAnError() async throws {
    let (gate, opener) = AsyncStream<Void>.makeStream()
    try await withListener(onConnection: { connection, _ in
      for await _ in gate {}
      while let message = try? await connection.receive() {
        if message.text != nil { try? connection.send(message) }
      }
    }) { listener in
      let connection = try await connect(
        to: listener,
        connection: .init(maximumOutboundBytes: 100_000, slowConsumerPolicy: .keep))
      // The server reads nothing, so that both kernels are full at last, and then the queue.
      #expect(throws: WebSocketError.outboundQueueFull) {
        while true { try connection.send(binary: [UInt8](repeating: 0, count: 50_000)) }
      }
      opener.finish()
      try await wait { connection.bufferedBytes == 0 }
      try connection.send(text: "small")
      #expect(try await connection.receive()?.text == "small")
    }
  }

  @Test func aMessageLargerThanTheQueueIsSent() async throws {
    try await withListener { listener in
      let connection = try await connect(
        to: listener,
        connection: .init(maximumOutboundBytes: 100, slowConsumerPolicy: .keep))
      let text = String(repeating: "x", count: 1000)
      try connection.send(text: text)
      #expect(try await connection.receive()?.text == text)
    }
  }

  @Test func backPressureBoundsWhatIsUnread() async throws {
    let size = 10_000
    let bound = 200_000
    let connections = Reports(of: WebSocketConnection.self)
    let (gate, opener) = AsyncStream<Void>.makeStream()
    try await withListener(
      configuration: .init(
        connection: .init(maximumInboundBytes: bound), handshakeTimeout: .seconds(120)),
      onConnection: { connection, _ in
        connections.add(connection)
        for await _ in gate {}
        var next: UInt32 = 0
        while let message = try? await connection.receive() {
          let number = message.bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
          #expect(number == next && message.bytes.count == size)
          next += 1
        }
        try? connection.send(text: "unreachable")
      }
    ) { listener in
      let client = try await connect(
        to: listener,
        connection: .init(maximumOutboundBytes: 1 << 20, slowConsumerPolicy: .keep))
      let server = try await connections.next()

      // Send until both kernels and both queues are full and nothing moves any more.
      var number: UInt32 = 0
      var refusals = 0
      while refusals < 5000 {
        var bytes = [UInt8](repeating: 0, count: size)
        withUnsafeBytes(of: number) { bytes.replaceSubrange(0..<4, with: $0) }
        do {
          try client.send(binary: bytes)
          number += 1
          refusals = 0
        } catch {
          refusals += 1
          await Task.yield()
        }
        #expect(server.unread.bytes <= bound + EventLoop.readSize + size)
      }
      try await wait { server.unread.bytes >= bound }
      #expect(Int(number) * size > bound + EventLoop.readSize + size)
      opener.finish()
      await client.close()
      #expect(client.closeStatus?.code == .normal)
    }
  }

  @Test func acceptingRestsWhenDescriptorsRunOut() async throws {
    let failures = Atomic<Int>(3)
    var configuration = WebSocketListener.Configuration()
    configuration.acceptNext = { listening in
      let isFailing = failures.wrappingSubtract(1, ordering: .relaxed).oldValue > 0
      return isFailing ? -EMFILE : Platform.acceptConnection(on: listening)
    }
    try await withListener(configuration: configuration) { listener in
      let connection = try await connect(to: listener)
      try connection.send(text: "after all")
      #expect(try await connection.receive()?.text == "after all")
      #expect(failures.load(ordering: .relaxed) < 0)
    }
  }
}
