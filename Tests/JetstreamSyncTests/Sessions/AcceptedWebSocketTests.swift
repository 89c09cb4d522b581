import Jetstream
import JetstreamWebSocket
import Pacing
import Synchronization
import Testing

@testable import JetstreamServer

/// A server in a program whose HTTP server accepts the connections. Here that is a listener of its own.
@Suite("WebSockets that another library has accepted", .live, .timeLimit(.minutes(5)))
@MainActor
struct AcceptedWebSocketTests {
  /// A connection of the other library.
  private final class Socket: AcceptedWebSocket {
    private let connection: WebSocketConnection
    /// The number of messages that each call has returned.
    let batches = Mutex<[Int]>([])

    init(_ connection: WebSocketConnection) { self.connection = connection }

    func receive() async throws -> [WebSocketMessage]? {
      let messages = try await connection.receiveAll()
      if let messages { batches.withLock { $0.append(messages.count) } }
      return messages
    }

    func send(text: [UInt8]) throws { try connection.send(text: text) }

    func close(code: WebSocketCloseCode, reason: String) {
      connection.beginClose(code: code, reason: reason)
    }

    func abort() { connection.abort() }
  }

  private let canvas = Canvas()
  private let scope: Scope
  private let server: Server
  private let notes = Notes()

  private final class Notes {
    var sockets: [Socket] = []
    var diagnostics: [String] = []
    var warnings = 0
    var ended = 0
  }

  init() {
    server = Server(configuration: .init().patient)
    scope = Scope(name: "Canvas", root: canvas)
    server.host(scope)
    server.onDiagnostic.listen { [notes] in
      notes.diagnostics.append("\($0)")
      if $0.level >= .warning { notes.warnings += 1 }
    }
  }

  /// Opens the other library's port.
  private func open() async throws -> WebSocketListener {
    let accept: @MainActor @Sendable (WebSocketConnection, HTTPRequest) async -> Void = {
      [server, notes] connection, request in
      let socket = Socket(connection)
      notes.sockets.append(socket)
      await server.accept(socket, for: request)
      notes.ended += 1
    }
    return try await WebSocketListener.start(
      host: "127.0.0.1", port: 0, configuration: .patient,
      onRequest: { _ in .text("another page") },
      onConnection: { connection, request in await accept(connection, request) })
  }

  @Test("Edits travel both ways, and a client that stops ends its connection")
  func serves() async throws {
    let listener = try await open()
    let (first, second) = (
      try await Participant(port: listener.port), try await Participant(port: listener.port)
    )
    for _ in 0..<50 {
      first.canvas.shapes.append(Shape())
      first.scope.flush()
    }
    await second.observe(second.canvas, until: { $0.shapes.count == 50 })
    canvas.name = "of the server"
    await first.observe(first.canvas, until: { $0.name == "of the server" })
    #expect(server.sessionCount == 2 && server.connectionCount == 2 && notes.ended == 0)
    first.client.close()
    try await wait { notes.ended == 1 }
    #expect(server.connectionCount == 1)
    await server.stop()
    try await wait { notes.ended == 2 }
    #expect(server.connectionCount == 0)
    await listener.stop()
  }

  @Test("All that one call returns is handled, in order")
  func batches() async throws {
    let listener = try await open()
    let peer = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(listener.port)/", configuration: .patient)
    try peer.send(
      text: Array(
        #"{"type":"SessionCreate","index":0,"version":"0.2.0","params":{},"protocol":2}"#.utf8))
    _ = try await peer.receiveAll()
    for index in 1...100 {
      try peer.send(
        text: Array(#"{"type":"ScopeFetch","index":\#(index),"name":"nowhere","params":{}}"#.utf8))
    }
    var answers: [Int] = []
    while answers.count < 100, let messages = try await peer.receiveAll() {
      for message in messages {
        for case .success(.scopeFetchReply(let reply)) in try Message.decodeFrame(message.bytes) {
          answers.append(reply.replyTo)
        }
      }
    }
    #expect(answers == Array(1...100))
    let sizes = notes.sockets[0].batches.withLock { $0 }
    #expect(sizes.reduce(0, +) == 101)
    await listener.stop()
  }

  /// A message that ends its connection, the code with which it is closed, and the words that the server reports.
  private static let refused: [(WebSocketMessage, WebSocketCloseCode, String)] = [
    (.binary([1, 2, 3]), .unsupportedData, "binary"),
    (
      WebSocketMessage(kind: .text, bytes: Array(repeating: 0x20, count: 70_000)), .messageTooBig,
      "too large"
    ),
    (WebSocketMessage(kind: .text, bytes: [0x22, 0xFF, 0x22]), .invalidPayload, "UTF-8"),
  ]

  @Test("What the server's own sockets refuse is refused", arguments: 0..<3)
  func refuses(number: Int) async throws {
    let (message, code, words) = Self.refused[number]
    let fake = FakeSocket([message])
    await server.accept(fake, for: HTTPRequest(method: "GET", target: "/"))
    #expect(fake.closes.withLock { $0 } == [code])
    #expect(notes.diagnostics.contains { $0.contains(words) })
    #expect(server.connectionCount == 0)
  }

  @Test(
    "While a refused connection is being closed, changes of its scope neither reach nor drop it",
    arguments: [WebSocketCloseCode.messageTooBig, .unsupportedData])
  func closesInPeace(code: WebSocketCloseCode) async throws {
    let refused: WebSocketMessage =
      code == .unsupportedData
      ? .binary([1, 2, 3]) : .text(String(repeating: " ", count: 17 << 20))
    let other = try await Participant(Client(transport: server.makeTransport()))
    let socket = PatientSocket()
    let serving = Task {
      await server.accept(socket, for: HTTPRequest(method: "GET", target: "/"))
    }
    socket.take(.text(#"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#))
    socket.take(.text(#"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#))
    try await wait { socket.record.sent.contains { $0.contains("ScopeState") } }
    socket.take(refused)
    try await wait { !socket.record.closes.isEmpty }
    canvas.name = "changed meanwhile"
    scope.flush()
    await other.observe(other.canvas, until: { $0.name == "changed meanwhile" })
    #expect(socket.record.closes == [code])
    #expect(socket.record.aborts == 0 && socket.record.late == 0)
    socket.end()
    await serving.value
    #expect(socket.record.aborts == 0 && server.connectionCount == 1)
    await server.stop()
  }

  @Test("Pages of foreign origins are refused, and nothing that they send is handled")
  func origin() async {
    let hello = #"{"type":"SessionCreate","index":0,"version":"0.2.0","params":{},"protocol":2}"#
    let fake = FakeSocket([.text(hello)])
    let headers: HTTPHeaders = ["Host": "example.org", "Origin": "https://example.com"]
    await server.accept(fake, for: HTTPRequest(method: "GET", target: "/", headers: headers))
    #expect(fake.closes.withLock { $0 } == [.policyViolation] && server.sessionCount == 0)
    #expect(notes.diagnostics.contains { $0.contains("https://example.com") })
  }

  @Test(
    "A connection that takes no message is dropped, with a warning unless its client has closed it",
    arguments: [WebSocketError.closed, .outboundQueueFull])
  func dropped(error: WebSocketError) async {
    let hello = #"{"type":"SessionCreate","index":0,"version":"0.2.0","params":{},"protocol":2}"#
    let fake = FakeSocket([.text(hello)], error: error)
    await server.accept(fake, for: HTTPRequest(method: "GET", target: "/"))
    #expect(notes.diagnostics.contains { $0.contains("dropped: \(error)") })
    #expect(notes.warnings == (error == .closed ? 0 : 1) && server.connectionCount == 0)
  }

  @Test(
    "What is sent to a client that is closing its connection is left out, and the close goes on")
  func closing() async throws {
    let ended = AsyncStream<Bool>.makeStream()
    let listener = try await WebSocketListener.start(
      host: "127.0.0.1", configuration: .patient,
      onConnection: { connection, _ in
        while (try? await connection.receive()) != nil {}
        let sent: Void? = try? ServerWebSocket(connection).send(ServerText(Array("late".utf8)))
        ended.continuation.yield(sent != nil)
      })
    let client = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(listener.port)", configuration: .patient)
    await client.close(code: .normal)
    var ends = ended.stream.makeAsyncIterator()
    #expect(await ends.next() == true)
    #expect(client.closeStatus?.code == .normal)
    await listener.stop()
  }

  @Test("A server that was stopped closes what it is given")
  func stopped() async {
    await server.stop()
    let fake = FakeSocket([])
    await server.accept(fake, for: HTTPRequest(method: "GET", target: "/"))
    #expect(fake.closes.withLock { $0 } == [.goingAway] && server.connectionCount == 0)
  }

  /// A connection that returns given messages, and ends once it is closed.
  private final class FakeSocket: AcceptedWebSocket {
    private let messages: Mutex<[WebSocketMessage]>
    let closes = Mutex<[WebSocketCloseCode]>([])
    private let closed = AsyncStream<Void>.makeStream()

    private let error: WebSocketError?

    /// Makes a connection whose peer sends messages, and that takes none if there is an error.
    init(_ messages: [WebSocketMessage], error: WebSocketError? = nil) {
      self.messages = Mutex(messages)
      self.error = error
    }

    func receive() async throws -> [WebSocketMessage]? {
      let all = messages.withLock { messages in
        defer { messages = [] }
        return messages
      }
      if !all.isEmpty { return all }
      for await _ in closed.stream {}
      return nil
    }

    func send(text: [UInt8]) throws { if let error { throw error } }

    func close(code: WebSocketCloseCode, reason: String) {
      closes.withLock { $0.append(code) }
      closed.continuation.finish()
    }

    func abort() { closed.continuation.finish() }
  }

  /// A connection whose other end takes its time to answer a close.
  private final class PatientSocket: AcceptedWebSocket {
    struct Record: Sendable {
      var sent: [String] = []
      var closes: [WebSocketCloseCode] = []
      /// The number of messages that were sent behind the close.
      var late = 0
      var aborts = 0
    }

    private let messages = AsyncStream<WebSocketMessage>.makeStream()
    private let state = Mutex(Record())

    var record: Record { state.withLock { $0 } }

    /// Takes a message from the other end.
    func take(_ message: WebSocketMessage) { messages.continuation.yield(message) }

    /// Ends the connection.
    func end() { messages.continuation.finish() }

    func receive() async throws -> [WebSocketMessage]? {
      for await message in messages.stream { return [message] }
      return nil
    }

    func send(text: [UInt8]) throws {
      let isClosing = state.withLock { state in
        if !state.closes.isEmpty { state.late += 1 }
        state.sent.append(String(decoding: text, as: UTF8.self))
        return !state.closes.isEmpty
      }
      if isClosing { throw WebSocketError.closed }
    }

    func close(code: WebSocketCloseCode, reason: String) {
      state.withLock { $0.closes.append(code) }
    }

    func abort() { state.withLock { $0.aborts += 1 } }
  }
}
