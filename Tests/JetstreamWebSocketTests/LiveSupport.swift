#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Pacing
import Testing

@testable import JetstreamWebSocket

/// Runs a blocking call on a thread of its own, so that it cannot starve the tasks it waits for.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: work()) }
  }
}

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

  /// Takes over a socket and makes it blocking. No read waits for longer than a minute, so that a
  /// failing test ends.
  init(descriptor: Int32) {
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
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
    await blocking { [self] in
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
    await blocking { [self] in
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
    await blocking { [self] in
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
    await blocking { [self] in
      var byte: UInt8 = 0
      while true {
        let result = withUnsafeMutableBytes(of: &byte) { Platform.receive(descriptor, into: $0) }
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
      initialized = max(0, Platform.receive(descriptor, into: .init(buffer)))
    }
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
  }

  deinit {
    Platform.closeDescriptor(descriptor)
  }

  /// Takes one connection and reads its request.
  func accept() async -> (socket: RawSocket, request: String) {
    let socket = await blocking { [self] in
      RawSocket(descriptor: Platform.acceptConnection(on: self.descriptor))
    }
    return (socket, await socket.readHead())
  }

  /// Takes so many connections, and closes each at once. Needs no thread of the tests, which others may hold.
  func drop(_ count: Int, resets: Bool) {
    Thread.detachNewThread { [self] in
      for _ in 0..<count {
        let socket = Platform.acceptConnection(on: descriptor)
        if resets { Platform.resetOnClose(socket) }
        Platform.closeDescriptor(socket)
      }
    }
  }

  /// Takes one connection and shakes hands with it.
  func acceptUpgraded() async -> RawSocket {
    let (socket, request) = await accept()
    let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }!
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

  /// The next value, once it is there.
  func next() async -> Value {
    for await value in stream { return value }
    fatalError("A test that waits for a report was cancelled.")
  }
}
