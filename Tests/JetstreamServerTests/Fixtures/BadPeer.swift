import Foundation
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

@testable import Jetstream

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server on the loopback with two clients that go on working, whatever else happens.
@MainActor
final class LiveRoom {
  let canvas = Canvas()
  let scope: Scope
  let server: Server
  let port: UInt16
  let first: Participant
  let second: Participant
  var log: [String] = []
  private var count = 0

  init(_ configuration: Server.Configuration = .init()) async throws {
    canvas.name = "room"
    canvas.shapes.append(Shape())
    scope = Scope(name: "Canvas", root: canvas)
    server = Server(configuration: configuration.patient)
    server.host(scope)
    port = try await server.listen()
    first = try await Participant(port: port)
    second = try await Participant(port: port)
    server.onDiagnostic.listen(self) { me, diagnostic in me.log.append("\(diagnostic)") }
  }

  var root: String { canvas.uuid.uuidString.lowercased() }
  var shape: String { canvas.shapes[0].uuid.uuidString.lowercased() }

  /// One client edits, the other one receives it.
  func work() async {
    count += 1
    let sign = Float(count)
    first.canvas.shapes[0].y = sign
    await second.observe(second.canvas.shapes[0], until: { $0.y == sign })
    second.canvas.shapes[0].tags = [count]
    let tags = [count]
    await first.observe(first.canvas.shapes[0], until: { $0.tags == tags })
  }

  /// Works before, during and after `attack`, and checks that nothing of it is left anywhere.
  func withstand<Value>(_ attack: @MainActor () async throws -> Value) async throws -> Value {
    await work()
    let busy = Task { for _ in 0..<5 { await work() } }
    let result = try await attack()
    await busy.value
    await work()
    await first.settle()
    await second.settle()
    let sign = Float(count)
    #expect(canvas.name == "room")
    #expect(canvas.shapes.count == 1 && canvas.selected == nil && canvas.hidden.isEmpty)
    #expect(canvas.shapes[0].x == 0 && canvas.shapes[0].label.isEmpty)
    #expect(canvas.shapes[0].y == sign && scope.count == 2)
    #expect(first.scope.canonicalJSON == scope.canonicalJSON)
    #expect(second.scope.canonicalJSON == scope.canonicalJSON)
    await server.stop()
    return result
  }
}

/// A WebSocket that sends what a test writes.
@MainActor
final class BadPeer {
  let connection: WebSocketConnection
  private var messages: [Message] = []

  init(port: UInt16, token: String? = nil) async throws {
    connection = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(port)",
      headers: token.map { [("X-Jetstream-SessionToken", $0)] } ?? [], configuration: .patient)
  }

  /// A peer with a session that has fetched the scope; its next message has number 2.
  static func joined(port: UInt16) async throws -> BadPeer {
    let peer = try await BadPeer(port: port)
    try peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#)
    _ = try await peer.next { $0.type == "SessionCreateReply" }
    try peer.send(#"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#)
    _ = try await peer.next { $0.type == "ScopeState" }
    return peer
  }

  func send(_ text: String) throws { try connection.send(text: text) }

  /// The next message that fits; those before it are dropped.
  func next(where fits: (Message) -> Bool) async throws -> Message {
    while true {
      while !messages.isEmpty {
        let message = messages.removeFirst()
        if fits(message) { return message }
      }
      let frame = try #require(try await connection.receive(), "The server has closed.")
      for case .success(let message) in try Message.decodeFrame(frame.bytes) {
        messages.append(message)
      }
    }
  }

  /// The answer to the ScopeSync with this number.
  func replies(to index: Int) async throws -> [FragmentReply] {
    while true {
      let message = try await next { $0.type == "ScopeSyncReply" }
      if case .scopeSyncReply(let reply) = message, reply.replyTo == index {
        return reply.fragmentReplies
      }
    }
  }

  /// How the server ends the connection.
  func end() async -> WebSocketCloseStatus? {
    while (try? await connection.receive()) ?? nil != nil {}
    return connection.closeStatus
  }
}

/// A blocking TCP socket that sends what it is told, however malformed.
final class BareSocket: Sendable {
  static let upgrade =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

  private let descriptor: Int32

  /// Connects. No read waits for longer than a minute, so that a failing test ends.
  init(port: UInt16) throws {
    #if canImport(Darwin)
    let kind = SOCK_STREAM
    #else
    let kind = Int32(SOCK_STREAM.rawValue)
    #endif
    descriptor = socket(AF_INET, kind, 0)
    var limit = timeval()
    limit.tv_sec = 60
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var room: Int32 = 4096
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
    }
    try #require(result == 0)
  }

  deinit { close(descriptor) }

  /// Ends the connection in both directions, also while a thread still has the socket.
  func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  func send(_ bytes: [UInt8]) {
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    bytes.withUnsafeBytes { raw in
      #if canImport(Glibc)
      _ = Glibc.send(descriptor, raw.baseAddress, raw.count, flags)
      #elseif canImport(Musl)
      _ = Musl.send(descriptor, raw.baseAddress, raw.count, flags)
      #else
      _ = Darwin.send(descriptor, raw.baseAddress, raw.count, flags)
      #endif
    }
  }

  /// Sends one text frame of less than 126 bytes, masked with zeros.
  func send(text: String) { send([0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + text.utf8) }

  /// Reads until `isEnough`, or to the end of the connection.
  func read(until isEnough: @escaping @Sendable ([UInt8]) -> Bool = { _ in false }) async
    -> [UInt8]
  {
    let (bytes, isOverdue) = await blocking { [self] in
      var bytes: [UInt8] = []
      var piece = [UInt8](repeating: 0, count: 4096)
      while !isEnough(bytes) {
        let count = recv(descriptor, &piece, piece.count, 0)
        if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return (bytes, true) }
        guard count > 0 else { break }
        bytes += piece[..<count]
      }
      return (bytes, false)
    }
    if isOverdue { Issue.record("The server has been silent for a minute.") }
    return bytes
  }

  /// A socket that has shaken hands.
  static func upgraded(port: UInt16) async throws -> BareSocket {
    let socket = try BareSocket(port: port)
    socket.send(Array(upgrade.utf8))
    let head = await socket.read { $0.suffix(4) == [13, 10, 13, 10] }
    try #require(String(decoding: head, as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
    return socket
  }
}
