import Pacing
import Synchronization
import Testing

@testable import JetstreamWebSocket

/// A listener that answers with a large page, and whose timeout the test sets.
private final class LargePage: HTTPServerDelegate {
  static let size = 32 << 20
  let timeout = Mutex(Duration.seconds(120))
  /// The timeout from the time on at which the page is asked for; nil for the same.
  private let answerTimeout: Duration?
  /// Fires when the socket is closed.
  let closed = Reports(of: Bool.self)
  /// The listener keeps a connection for as long as its socket is open.
  let connection = Mutex<HTTPServerConnection?>(nil)

  init(answerTimeout: Duration? = nil) { self.answerTimeout = answerTimeout }

  var configuration: WebSocketListener.Configuration {
    .init(handshakeTimeout: timeout.withLock { $0 })
  }
  var keepsAlive: Bool { false }

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let answerTimeout { timeout.withLock { $0 = answerTimeout } }
    return HTTPResponse(status: 200, body: [UInt8](repeating: 1, count: Self.size))
  }
  func decide(on request: HTTPRequest) async -> UpgradeDecision { .accept }
  func adopt(_ connection: WebSocketConnection, of socket: Int, request: HTTPRequest) {}
  func noteClosing(of socket: Int) {}
}

/// A client that asks for a page and sends nothing more may have ended its side long before it has read the page.
@Suite("A half-closed client", .live, .timeLimit(.minutes(5)))
struct HTTPHalfCloseTests {
  /// Asks for the page.
  private func ask(
    _ server: LargePage
  ) async throws -> (client: RawSocket, transport: SocketTransport) {
    let listening = try RawServer()
    let client = try RawSocket(port: listening.port)
    let accepted = try await listening.acceptConnection()
    let transport = SocketTransport(descriptor: accepted, loop: .next()) {
      server.closed.add(true)
    }
    let connection = HTTPServerConnection(
      id: 1, transport: transport, addresses: (nil, nil), server: server)
    server.connection.withLock { $0 = connection }
    connection.start()
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    return (client, transport)
  }

  /// Waits until the loop has handled what had come before.
  private func turn(_ loop: EventLoop) async {
    for _ in 0..<4 {
      await withCheckedContinuation { done in loop.execute { done.resume() } }
    }
  }

  @Test("It gets the whole response, whenever it reads it")
  func readsOn() async throws {
    let server = LargePage()
    defer { server.connection.withLock { $0 = nil } }
    let (client, transport) = try await ask(server)
    // Then the time of the response has begun, and most of the page waits for the client to read.
    #expect(await client.readHead().hasPrefix("HTTP/1.1 200 OK\r\n"))
    // Time that begins now is over at once.
    server.timeout.withLock { $0 = .zero }
    client.finishSending()
    await turn(transport.loop)
    #expect(transport.bufferedBytes > 0)
    #expect(await client.readToEnd().count == LargePage.size)
    #expect(try await server.closed.next())
  }

  @Test("It is dropped if it reads nothing for as long as the timeout")
  func readsNothing() async throws {
    let server = LargePage(answerTimeout: .milliseconds(50))
    defer { server.connection.withLock { $0 = nil } }
    let (client, _) = try await ask(server)
    client.finishSending()
    #expect(try await server.closed.next())
    #expect(await client.readToEnd().count < LargePage.size)
  }
}
