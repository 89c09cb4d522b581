#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Pacing
import Synchronization
import Testing

@testable import JetstreamWebSocket

/// Sends back whatever comes.
let echo: WebSocketListener.ConnectionHandler = { connection, _ in
  while let message = try? await connection.receive() {
    try? connection.send(message)
  }
}

/// Runs `body` with a listener on the loopback that is stopped afterwards.
///
/// Times are generous unless a test is about them: what else runs may take the threads for a while.
func withListener(
  host: String = "127.0.0.1",
  configuration: WebSocketListener.Configuration = .init(handshakeTimeout: .seconds(120)),
  onRequest: @escaping WebSocketListener.RequestHandler = { _ in .text("page") },
  onUpgrade: @escaping WebSocketListener.UpgradeHandler = { _ in .accept },
  onConnection: @escaping WebSocketListener.ConnectionHandler = echo,
  _ body: (WebSocketListener) async throws -> Void
) async throws {
  let listener = try await WebSocketListener.start(
    host: host, configuration: configuration, onRequest: onRequest, onUpgrade: onUpgrade,
    onConnection: onConnection)
  do {
    try await body(listener)
  } catch {
    await listener.stop()
    throw error
  }
  await listener.stop()
}

/// Connects a client to a listener on the loopback.
func connect(
  to listener: WebSocketListener, path: String = "/",
  connection: WebSocketConfiguration = .init()
) async throws -> WebSocketConnection {
  try await WebSocketClient.connect(
    to: "ws://127.0.0.1:\(listener.port)\(path)",
    configuration: .init(connection: connection, connectTimeout: .seconds(120)))
}

/// A blocking TCP socket that sends what it is told, however malformed.
final class RawSocket: Sendable {
  static let upgrade = """
    GET / HTTP/1.1\r
    Host: a\r
    Upgrade: websocket\r
    Connection: Upgrade\r
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
    Sec-WebSocket-Version: 13\r
    \r

    """

  let descriptor: Int32
  /// True after a read that has waited for a minute.
  private let isOverdue = Mutex(false)

  /// Takes over a socket and makes it blocking. No read waits for longer than a minute, so that a
  /// failing test ends.
  init(descriptor: Int32) {
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    Self.limitWaits(of: descriptor)
  }

  /// Lets calls that wait for the peer, or for a connection, fail after a minute.
  static func limitWaits(of descriptor: Int32) {
    var limit = timeval()
    limit.tv_sec = 60
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  convenience init(port: UInt16) throws {
    let address = try SocketAddress.resolve(host: "127.0.0.1", port: port, numericOnly: true)[0]
    let descriptor = Platform.makeSocket(family: address.family)
    _ = fcntl(descriptor, F_SETFL, 0)
    try #require(address.connect(descriptor) == 0)
    self.init(descriptor: descriptor)
  }

  /// A socket that has shaken hands with the server.
  static func upgraded(port: UInt16) async throws -> RawSocket {
    let socket = try RawSocket(port: port)
    socket.send(Array(upgrade.utf8))
    let head = await socket.readHead()
    try #require(head.hasPrefix("HTTP/1.1 101 "))
    return socket
  }

  deinit {
    Platform.closeDescriptor(descriptor)
  }

  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { raw -> Int in
        var vectors = [
          iovec(iov_base: UnsafeMutableRawPointer(mutating: raw.baseAddress), iov_len: raw.count)
        ]
        return Platform.send(descriptor, &vectors)
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func finishSending() { Platform.finishSending(descriptor) }

  /// Reads up to the end of a head of HTTP.
  func readHead() async -> String {
    await reading { [self] in
      var bytes: [UInt8] = []
      while bytes.suffix(4) != [13, 10, 13, 10] {
        guard let byte = self.read(1).first else { break }
        bytes.append(byte)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// Reads exactly `count` bytes, or less at the end.
  func readExactly(_ count: Int) async -> [UInt8] {
    await reading { [self] in
      var bytes: [UInt8] = []
      while bytes.count < count {
        let piece = self.read(count - bytes.count)
        guard !piece.isEmpty else { break }
        bytes += piece
      }
      return bytes
    }
  }

  /// Reads until the peer ends or resets the connection.
  func readToEnd() async -> [UInt8] {
    await reading { [self] in
      var bytes: [UInt8] = []
      while true {
        let piece = self.read(64 << 10)
        guard !piece.isEmpty else { return bytes }
        bytes += piece
      }
    }
  }

  /// Reads to the end, and returns true if that is a reset.
  func endsInReset() async -> Bool {
    await reading { [self] in
      var byte: UInt8 = 0
      while true {
        let result = withUnsafeMutableBytes(of: &byte) { receive(into: $0) }
        if result <= 0 { return result == -Int(ECONNRESET) }
      }
    }
  }

  /// Reads to the end as a WebSocket client would.
  func readEvents() async -> [FrameDecoder.Event] {
    decode(await readToEnd(), as: .client).events
  }

  private func read(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = max(0, receive(into: .init(buffer)))
    }
  }

  private func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let result = Platform.receive(descriptor, into: buffer)
    if result == -Int(EAGAIN) || result == -Int(EWOULDBLOCK) { isOverdue.withLock { $0 = true } }
    return result
  }

  /// Runs calls that read, and records an issue if one has waited for too long: that is no end of the connection.
  private func reading<Value: Sendable>(_ calls: @escaping @Sendable () -> Value) async -> Value {
    let value = await blocking(calls)
    if isOverdue.withLock({ $0 }) { Issue.record("The peer has been silent for a minute.") }
    return value
  }
}

/// A listening socket whose accepted connections are raw.
final class RawServer: Sendable {
  let descriptor: Int32
  let port: UInt16

  init() throws {
    let address = try SocketAddress.resolve(host: "127.0.0.1", port: 0, numericOnly: true)[0]
    descriptor = ListenerCore.listeningSocket(on: address, acceptsBoth: false, backlog: 8)
    try #require(descriptor >= 0)
    port = SocketAddress.port(of: descriptor)
    _ = fcntl(descriptor, F_SETFL, 0)
    RawSocket.limitWaits(of: descriptor)
  }

  deinit {
    Platform.closeDescriptor(descriptor)
  }

  /// Takes one connection. Throws if none comes in a minute.
  func acceptConnection() async throws -> Int32 {
    let accepted = await blocking { [self] in Platform.acceptConnection(on: descriptor) }
    return try #require(accepted >= 0 ? accepted : nil, "No connection has come: \(accepted)")
  }

  /// Takes one connection and reads its request.
  func accept() async throws -> (socket: RawSocket, request: String) {
    let socket = RawSocket(descriptor: try await acceptConnection())
    return (socket, await socket.readHead())
  }

  /// Takes so many connections, and closes each at once. Needs no thread of the tests, which others may hold.
  func drop(_ count: Int, resets: Bool) {
    Thread.detachNewThread { [self] in
      var left = count
      while left > 0 {
        let socket = Platform.acceptConnection(on: descriptor)
        if socket == -EAGAIN { continue }
        if resets { Platform.resetOnClose(socket) }
        Platform.closeDescriptor(socket)
        left -= 1
      }
    }
  }

  /// Takes one connection and shakes hands with it.
  func acceptUpgraded() async throws -> RawSocket {
    let (socket, request) = try await accept()
    let key = try #require(
      request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") })
    socket.send(
      ServerHandshake.response(
        accept: HandshakeKey.accept(for: String(key.dropFirst(19))), subprotocol: nil))
    return socket
  }
}

/// What handlers report to their test, one value after another.
struct Reports<Value: Sendable>: Sendable {
  private let stream: AsyncStream<Value>
  private let continuation: AsyncStream<Value>.Continuation

  init(of type: Value.Type = Value.self) {
    (stream, continuation) = AsyncStream<Value>.makeStream()
  }

  func add(_ value: Value) { continuation.yield(value) }

  /// Returns the next value, once it is there. Throws if the task is cancelled.
  func next() async throws -> Value {
    for await value in stream { return value }
    throw CancellationError()
  }
}
