import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Synchronization
import Testing

/// Networks that answer in place of the server until their user has signed in.
@Suite("Captive portals", .live, .timeLimit(.minutes(5)))
@MainActor
struct CaptivePortalTests {
  /// Answers some attempts to connect with a status, and passes on the others.
  private final class Portal: Transport {
    private let status: Int
    private let inner: any Transport
    private let remaining: Mutex<Int>

    init(status: Int, attempts: Int, before inner: any Transport) {
      (self.status, self.inner) = (status, inner)
      remaining = Mutex(attempts)
    }

    func open(headers: [(String, String)]) async throws -> any TransportConnection {
      let isCaptive = remaining.withLock { remaining in
        remaining -= 1
        return remaining >= 0
      }
      if isCaptive { throw WebSocketError.handshakeRefused(status: status) }
      return try await inner.open(headers: headers)
    }
  }

  private let server: Server

  init() {
    server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
  }

  private func client(behind status: Int, attempts: Int) -> Client {
    Client(
      transport: Portal(status: status, attempts: attempts, before: server.makeTransport()),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
  }

  @Test("A first call of connect goes on until the server answers", arguments: [200, 302, 511])
  func firstConnect(status: Int) async throws {
    let client = client(behind: status, attempts: 3)
    var words: [String] = []
    client.onDiagnostic.listen(client) { _, diagnostic in words.append("\(diagnostic)") }
    try await client.connect()
    #expect(client.status == .online)
    #expect(words.count { $0.contains("with status \(status)") } == 3, "\(words)")
    client.close()
  }

  @Test("A server that refuses the request ends it", arguments: [400, 404, 405])
  func refused(status: Int) async {
    let client = client(behind: status, attempts: 1)
    await #expect(throws: SyncError.self) { try await client.connect() }
    #expect(client.status == .offline)
  }
}
