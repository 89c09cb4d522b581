import Pacing
import Testing

@testable import JetstreamWebSocket

/// A peer that does not answer a close keeps a descriptor of the server for the close timeout.
@Suite("Sockets whose WebSocket is being closed", .live, .timeLimit(.minutes(5)))
struct ClosingSocketTests {
  /// A configuration in which a few sockets may wait, and a close may take an hour.
  private func configuration(waiting: Int) -> WebSocketListener.Configuration {
    var configuration = WebSocketListener.Configuration(
      connection: .init(closeTimeout: .seconds(3_600)), handshakeTimeout: .seconds(120))
    configuration.waiting.total = waiting
    return configuration
  }

  /// Opens WebSockets that the server closes at once, and of which no client answers the close.
  private func openRefused(_ count: Int, at listener: WebSocketListener) async throws -> [RawSocket]
  {
    var sockets: [RawSocket] = []
    for _ in 0..<count {
      let socket = try await RawSocket.upgraded(port: listener.port)
      let close = await socket.readExactly(4)
      #expect(close.prefix(2) == [0x88, 2])
      sockets.append(socket)
    }
    return sockets
  }

  @Test("They count among those that may wait, and the oldest closes are given up")
  func bounded() async throws {
    try await withListener(configuration: configuration(waiting: 8), onConnection: { _, _ in }) {
      listener in
      var sockets = try await openRefused(50, at: listener)
      // The last one came when there was room for it, and the others were closing.
      try await wait { listener.connectionCount <= 9 }
      #expect(listener.connectionCount > 1)
      // The one that came last can still answer, and the first one was let go.
      sockets[49].send([0x88, 0x82, 0, 0, 0, 0, 3, 232])
      #expect(await !sockets[49].endsInReset())
      #expect(await sockets[0].endsInReset())
      // That there are many of them keeps nothing out.
      let page = try RawSocket(port: listener.port)
      page.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(await page.readHead().hasPrefix("HTTP/1.1 200 OK\r\n"))
      withExtendedLifetime(sockets) {}
      sockets = []
    }
  }

  @Test("Open WebSockets do not count")
  func open() async throws {
    try await withListener(configuration: configuration(waiting: 4)) { listener in
      var sockets: [RawSocket] = []
      for _ in 0..<12 { sockets.append(try await .upgraded(port: listener.port)) }
      for socket in sockets {
        socket.send([0x81, 0x81, 0, 0, 0, 0, 65])
        #expect(await socket.readExactly(3) == [0x81, 1, 65])
      }
      #expect(listener.connectionCount == 12)
    }
  }
}
