import Foundation
import Jetstream
import JetstreamWebSocket
import Pacing
import Synchronization
import Testing

@testable import JetstreamServer

@Suite("Addresses of clients")
struct AddressTests {
  /// Returns the address of a request whose `X-Forwarded-For` fields are given.
  private func address(
    from peer: String?, _ fields: String..., trusting proxies: Set<String> = ["10.0.0.1", "::1"]
  ) -> String? {
    var request = HTTPRequest(
      method: "GET", target: "/", headers: HTTPHeaders(fields.map { ("X-Forwarded-For", $0) }))
    request.remoteAddress = peer
    return TrustedProxies(proxies).resolve(request).remoteAddress
  }

  @Test("Only a trusted proxy names the client")
  func trust() {
    #expect(address(from: "203.0.113.5", "198.51.100.7") == "203.0.113.5")
    #expect(address(from: "10.0.0.1", "198.51.100.7", trusting: []) == "10.0.0.1")
    #expect(address(from: nil, "198.51.100.7") == nil)
    #expect(address(from: "10.0.0.1") == "10.0.0.1")
    #expect(address(from: "10.0.0.1", "198.51.100.7") == "198.51.100.7")
    #expect(address(from: "::ffff:10.0.0.1", "198.51.100.7") == "198.51.100.7")
    #expect(address(from: "0:0:0:0:0:0:0:1", "198.51.100.7") == "198.51.100.7")
  }

  @Test(
    "The last entry counts that is not of a trusted proxy, whatever the client has put in front")
  func chain() {
    #expect(address(from: "::1", "1.1.1.1, 198.51.100.7 ,10.0.0.1") == "198.51.100.7")
    #expect(address(from: "::1", "1.1.1.1", "198.51.100.7, 10.0.0.1") == "198.51.100.7")
    #expect(address(from: "::1", "10.0.0.1") == "10.0.0.1")
    #expect(address(from: "::1", "10.0.0.1, unknown, 10.0.0.1") == "10.0.0.1")
    #expect(address(from: "::1", "1.1.1.1,") == "::1")
    #expect(address(from: "::1", "198.51.100.7:4711") == "198.51.100.7")
    #expect(address(from: "::1", "[2001:db8::1]:4711") == "2001:db8::1")
    #expect(address(from: "::1", "2001:db8::1") == "2001:db8::1")
  }

  @Test("Addresses of IPv6 count by their first 64 bits, and those of IPv4 by themselves")
  func groups() {
    func group(_ address: String?) -> String? { ClientAddress.group(of: address) }
    #expect(group("2001:db8::1") == group("2001:db8:0:0:ffff::2"))
    #expect(group("2001:db8::1") != group("2001:db8:0:1::1"))
    #expect(group("fe80::1%eth0") == group("fe80::2"))
    #expect(group("203.0.113.5") == "203.0.113.5" && group("::ffff:203.0.113.5") == "203.0.113.5")
    #expect(group("a name") == "a name" && group(nil) == nil)
  }
}

@Suite("Limits of a server with sockets", .live, .timeLimit(.minutes(5)))
@MainActor
struct SocketLimitTests {
  private func connect(
    to port: UInt16, for address: String
  ) async throws -> (reply: SessionCreateReply?, status: WebSocketCloseStatus?) {
    let connection = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(port)", headers: [("X-Forwarded-For", address)],
      configuration: .patient)
    try connection.send(text: #"{"type":"SessionCreate","index":0,"version":"1.0.0","protocol":2}"#)
    let frame = try await connection.receive()
    for case .success(.sessionCreateReply(let reply)) in try frame.map({
      try Message.decodeFrame($0.bytes)
    }) ?? [] {
      return (reply, nil)
    }
    return (nil, connection.closeStatus)
  }

  @Test("Clients behind a trusted proxy count by their own addresses")
  func proxy() async throws {
    var configuration = Server.Configuration()
    configuration.limits.sessionsPerAddress = 2
    configuration.trustedProxies = ["127.0.0.1"]
    let room = try await LiveRoom(configuration)
    let errors = try await room.withstand {
      var errors: [String?] = []
      for address in ["198.51.100.7", "1.1.1.1, 198.51.100.7", "198.51.100.7", "198.51.100.8"] {
        errors.append(try await connect(to: room.port, for: address).reply?.error?.type)
      }
      let addresses = Set(room.server.sessions.map { $0.request?.remoteAddress })
      #expect(addresses == ["127.0.0.1", "198.51.100.7", "198.51.100.8"])
      return errors
    }
    #expect(errors == [nil, nil, "too-many-sessions-of-address", nil])
    #expect(room.server.limitHits == ["sessionsPerAddress": 1])
  }

  @Test("A flood of sockets that ask for nothing leaves clients their connections")
  func silentSockets() async throws {
    var configuration = Server.Configuration()
    configuration.limits.handshakes = 20
    configuration.handshakeTimeout = .seconds(1)
    let room = try await LiveRoom(configuration)
    try await room.withstand {
      var flood: [BareSocket] = []
      // Each place is free again after a second: it takes more sockets if the server is slow to accept them.
      try await wait {
        if room.server.limitHits["handshakes", default: 0] >= 40 { return true }
        flood = try flood.suffix(240) + (0..<60).map { _ in try BareSocket(port: room.port) }
        return false
      }
      // The places are free once the handshake's time is over.
      let late = try await Participant(port: room.port)
      #expect(late.canvas.name == "room")
      withExtendedLifetime(flood) {}
    }
  }

  @Test("Sockets that have become WebSockets, or have gone, make room for others")
  func released() async throws {
    var configuration = Server.Configuration()
    configuration.limits.handshakes = 3
    let room = try await LiveRoom(configuration)
    var clients: [Participant] = []
    for _ in 0..<5 {
      clients.append(try await Participant(port: room.port))
      let peer = try BareSocket(port: room.port)
      peer.send(Array("nonsense\r\n\r\n".utf8))
      _ = await peer.read()
      peer.end()
    }
    #expect(room.server.sessionCount == 7)
    #expect(room.server.limitHits == [:])
    await room.server.stop()
  }

  @Test("When half of the places are taken, connections are not kept alive behind a page")
  func pages() async throws {
    var configuration = Server.Configuration()
    configuration.limits.handshakes = 4
    let server = Server(configuration: configuration.patient)
    let port = try await server.listen()
    func isKeptAlive(_ socket: BareSocket) async -> Bool {
      socket.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
      let answer = await socket.read { String(decoding: $0, as: UTF8.self).contains("Not found\n") }
      return !String(decoding: answer, as: UTF8.self).lowercased().contains("connection: close")
    }
    // Each socket is known to be open once it has its answer.
    var (sockets, kept): ([BareSocket], [Bool]) = ([], [])
    for _ in 0..<3 {
      sockets.append(try BareSocket(port: port))
      kept.append(await isKeptAlive(sockets.last!))
    }
    #expect(kept == [true, true, false])
    await server.stop()
  }

  @Test("A flood of WebSockets without a session leaves clients their connections")
  func silentWebSockets() async throws {
    var configuration = Server.Configuration()
    configuration.limits.handshakesPerAddress = 5
    configuration.trustedProxies = ["127.0.0.1"]
    // However long it takes to open the eight, none makes room for another.
    configuration.handshakeTimeout = .seconds(3600)
    let room = try await LiveRoom(configuration)
    try await room.withstand {
      var flood: [WebSocketConnection] = []
      for _ in 0..<8 {
        flood.append(
          try await WebSocketClient.connect(
            to: "ws://127.0.0.1:\(room.port)", headers: [("X-Forwarded-For", "198.51.100.7")],
            configuration: .patient))
      }
      _ = try? await flood[7].receive()
      #expect(flood[7].closeStatus?.code == 4096)
      #expect(flood[7].closeStatus?.reason.contains("too-many-handshakes-of-address") == true)
      let other = try await connect(to: room.port, for: "198.51.100.8")
      #expect(other.reply?.error == nil && other.reply != nil)
    }
    #expect(room.server.limitHits == ["handshakesPerAddress": 3])
  }

  /// Notes which sockets become WebSockets, and which are dropped.
  private final class Answers: Sendable {
    private let noted = Mutex<[Bool]>([])
    private let count = DispatchSemaphore(value: 0)

    var all: [Bool] { noted.withLock { $0 } }

    func ask(_ socket: BareSocket) {
      socket.send(Array(BareSocket.upgrade.utf8))
      Task.detached { [self] in
        let isOpen = await !socket.read { !$0.isEmpty }.isEmpty
        noted.withLock { $0.append(isOpen) }
        count.signal()
      }
    }

    /// Blocks the thread until one more is known.
    func blockUntilNext() { count.wait() }
  }

  @Test(
    "WebSockets at which a busy server has not looked yet count among the sockets that are none")
  func busyServer() async throws {
    var configuration = Server.Configuration()
    configuration.limits.handshakes = 4
    configuration.handshakeTimeout = .seconds(3600)
    let server = Server(configuration: configuration)
    let port = try await server.listen()
    let answers = Answers()
    let first = try (0..<4).map { _ in try BareSocket(port: port) }
    for socket in first { answers.ask(socket) }
    // All without a break, so that the actor has no time for the server.
    for _ in 0..<20 {
      answers.ask(try BareSocket(port: port))
      answers.blockUntilNext()
    }
    #expect(answers.all == Array(repeating: false, count: 20))
    try await wait { answers.all.count == 24 }
    #expect(answers.all.suffix(4) == [true, true, true, true])
    #expect(server.limitHits == ["handshakes": 20])
    for socket in first { socket.end() }
    await server.stop()
  }

  /// A connection for which bytes wait.
  private final class Stub: ServerConnection {
    let heldBytes: Int
    let wasAborted = Mutex(false)

    init(_ bytes: Int) { heldBytes = bytes }

    func receive() async throws -> [ServerInput]? { nil }
    var taskExecutor: (any TaskExecutor)? { nil }
    func send(_ frame: ServerText) {}
    func setLimits(_ limits: WebSocketLimits) {}
    func probe() {}
    func beginClose(code: Int, reason: String) {}
    func abort() { wasAborted.withLock { $0 = true } }
  }

  @Test("When too many bytes wait on all connections, those for which most waits are dropped")
  func unread() async throws {
    var configuration = Server.Configuration()
    configuration.limits.unreadBytes = 100
    let server = Server(configuration: configuration)
    let canvas = Canvas()
    server.host(Scope(name: "Canvas", root: canvas))
    let client = try await Participant(Client(transport: server.makeTransport()))
    let request = HTTPRequest(method: "GET", target: "/", headers: [:])
    func dropped(_ sizes: [Int], from id: Int) -> [Int] {
      let stubs = sizes.map { Stub($0) }
      for (place, stub) in stubs.enumerated() {
        _ = server.runner.opened(stub, id + place, request)
      }
      server.runner.dropUnread()
      let dropped = zip(sizes, stubs).filter { $1.wasAborted.withLock { $0 } }.map(\.0)
      for place in stubs.indices { server.runner.closed(id + place) }
      return dropped
    }
    #expect(dropped([40, 35, 25], from: 1_000) == [])
    #expect(server.limitHits == [:])
    #expect(dropped([30, 60, 20, 45], from: 2_000) == [60])
    #expect(dropped([300, 30, 200, 70], from: 3_000) == [300, 200])
    #expect(server.limitHits == ["unreadBytes": 3])
    client.canvas.name = "still there"
    await client.settle()
    #expect(canvas.name == "still there" && server.sessionCount == 1)
    await server.stop()
  }
}
