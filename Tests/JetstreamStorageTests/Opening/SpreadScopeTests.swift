import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Synchronization
import Testing

/// Scopes that live on several event loops, each in a channel of its own, and clients that use them in one session.
@Suite("Scopes that are spread over event loops", .live, .timeLimit(.minutes(5)))
@MainActor
struct SpreadScopeTests {
  private static let names = ["A", "B", "C"]

  private func makeServer(loops: Int = 2) -> Server {
    var configuration = Server.Configuration()
    configuration.scopeLoops = loops
    return Server(configuration: configuration.patient)
  }

  /// A client of several scopes.
  @MainActor
  private struct Member {
    let line: BreakableLine
    let client: Client
    let scopes: [Scope]

    init(_ server: Server, _ names: [String] = SpreadScopeTests.names) async throws {
      line = BreakableLine(server.makeTransport())
      client = Client(transport: line)
      scopes = names.map { Scope(name: $0, root: Canvas()) }
      try await client.connect()
      for scope in scopes { try await client.fetch(scope) }
    }

    func canvas(_ at: Int) -> Canvas { scopes[at].root as! Canvas }

    func add(_ label: String) {
      for at in scopes.indices {
        let shape = Shape()
        shape.label = label
        canvas(at).shapes.append(shape)
      }
    }

    /// Returns once the server has everything from this client, and the other one has it from the server.
    func settle(with other: Member) async throws {
      for scope in scopes { try await client.sync(scope) }
      for scope in other.scopes { try await other.client.sync(scope) }
    }

    var content: [String] { scopes.map { $0.canonicalJSON.description } }
  }

  @Test("Two clients edit scopes of two loops and one of the server's actor in one session")
  func edit() async throws {
    let server = makeServer()
    for name in Self.names { server.host(name, schema: ScopeSchema(of: Canvas.self)) }
    let own = Scope(name: "Own", root: Canvas())
    server.host(own)
    let all = Self.names + ["Own"]
    let (first, second) = (try await Member(server, all), try await Member(server, all))
    for number in 0..<50 {
      first.add("first \(number)")
      second.add("second \(number)")
    }
    try await first.settle(with: second)
    try await second.settle(with: first)
    #expect(first.content == second.content && server.sessionCount == 2)
    #expect(first.content[3] == own.canonicalJSON.description)
    #expect(first.canvas(0).shapes.count == 100)
    await server.stop()
  }

  @Test("A client that has lost its connection goes on in all channels of its session")
  func resume() async throws {
    let server = makeServer()
    for name in Self.names { server.host(name, schema: ScopeSchema(of: Canvas.self)) }
    let (first, second) = (try await Member(server), try await Member(server))
    for number in 0..<3 {
      first.line.cut()
      first.add("offline \(number)")
      second.add("meanwhile \(number)")
      try await second.settle(with: first)
      try await first.settle(with: second)
    }
    #expect(first.content == second.content && first.canvas(2).shapes.count == 6)
    #expect(server.sessionCount == 2 && first.line.count > 1)
    await server.stop()
  }

  @Test("Spread scopes go on from their logs, over another number of loops", arguments: [0, 1, 3])
  func restart(loops: Int) async throws {
    let directories = try Self.names.map { _ in try TemporaryDirectory() }
    var server = makeServer()
    var content: [String] = []
    for count in [2, loops] {
      server = makeServer(loops: count)
      for (name, directory) in zip(Self.names, directories) {
        try await server.host(
          name, schema: ScopeSchema(of: Canvas.self), log: FragmentLog(directory.path))
      }
      let member = try await Member(server)
      if content.isEmpty {
        member.add("kept")
        try await member.settle(with: member)
        content = member.content
      }
      #expect(member.content == content && member.canvas(1).shapes.count == 1)
      member.client.close()
      await server.stop()
      for name in Self.names { try await server.remove(name) }
    }
  }

  @Test("A scope of a loop that is removed is gone for its clients, and the others go on")
  func remove() async throws {
    let server = makeServer()
    for name in Self.names { server.host(name, schema: ScopeSchema(of: Canvas.self)) }
    let (first, second) = (try await Member(server), try await Member(server))
    try await server.remove("B")
    await #expect(throws: SyncError.self) {
      while true { try await first.client.sync(first.scopes[1]) }
    }
    first.canvas(0).name = "goes on"
    try await first.client.sync(first.scopes[0])
    try await second.client.sync(second.scopes[0])
    #expect(second.canvas(0).name == "goes on" && server.sessionCount == 2)
    server.host("B", schema: ScopeSchema(of: Canvas.self))
    let third = try await Member(server)
    #expect(third.canvas(1).shapes.isEmpty)
    await server.stop()
  }

  @Test("A client of a server that stops is told so, in whichever channel its scope is")
  func stopReason() async throws {
    let server = makeServer()
    server.host("A", schema: ScopeSchema(of: Canvas.self))
    let connection = try await open(server)
    try connection.send(Message.encodeFrame([fetch(1)], asArray: false))
    _ = try await connection.receive()
    await server.stop()
    while try await connection.receive() != nil {}
    #expect(connection.closeStatus?.code == 1001)
  }

  @Test("The end of a session is told with what its beginning was")
  func sameInfo() async throws {
    let server = makeServer()
    var open: Set<SessionInfo> = []
    server.authenticate = {
      open.insert($0)
      return nil
    }
    server.onSessionEnd.listen { open.remove($0) }
    let connection = try await self.open(server)
    #expect(open.count == 1)
    await server.stop()
    #expect(open.isEmpty)
    withExtendedLifetime(connection) {}
  }

  @Test("A server may be released by a listener of the end of a session")
  func releasedInside() async throws {
    var configuration = Server.Configuration()
    configuration.sessionExpiry = .milliseconds(1)
    var server: Server? = Server(configuration: configuration.patient)
    server?.onSessionEnd.listenOnce { _ in server = nil }
    let transport = server!.makeTransport()
    // A tick may end the first sessions while the others are being opened. Those find no server, which is all right: one
    // session was there to end.
    var connections: [any TransportConnection] = []
    for _ in 0..<3 {
      guard let connection = try? await open(transport) else { break }
      connections.append(connection)
    }
    try await wait { server == nil }
    #expect(!connections.isEmpty)
    withExtendedLifetime(connections) {}
  }

  /// Connects and creates a session of version 2.
  private func open(_ server: Server) async throws -> any TransportConnection {
    try await open(server.makeTransport())
  }

  private func open(_ transport: some Transport) async throws -> any TransportConnection {
    let connection = try await transport.open(headers: [])
    let create = #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#
    try connection.send(Array(create.utf8))
    _ = try await connection.receive()
    return connection
  }

  private struct NoAnswer: Error {}

  /// Returns the next frame with an answer to a fetch. On a machine that is busy, pings come before it.
  private func fetchReply(on connection: any TransportConnection) async throws -> String {
    while let frame = try await connection.receive() {
      let text = String(decoding: frame, as: UTF8.self)
      if text.contains("ScopeFetchReply") { return text }
    }
    throw NoAnswer()
  }

  @Test("A client of version 1 is refused a scope of a loop with the reason")
  func oldClient() async throws {
    let server = makeServer()
    server.host("A", schema: ScopeSchema(of: Canvas.self))
    let connection = try await server.makeTransport().open(headers: [])
    try connection.send(
      Array(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#.utf8))
    _ = try await connection.receive()
    try connection.send(Message.encodeFrame([fetch(1)], asArray: false))
    let text = try await fetchReply(on: connection)
    guard case .scopeFetchReply(let reply)? = try Message.decodeFrame(Array(text.utf8)).first?.get()
    else {
      Issue.record("It does not begin with the answer: \(text)")
      return
    }
    #expect(
      reply.error?.message
        == "The scope 'A' is served to clients of version 2 of the protocol only")
    await server.stop()
  }

  private func fetch(_ index: Int) -> Message {
    .scopeFetch(ScopeFetch(index: index, name: "A"))
  }

  @Test("A fetch that comes to a loop after its scope has gone from there is to be made again")
  func late() async throws {
    let server = makeServer(loops: 1)
    server.host("A", schema: ScopeSchema(of: Canvas.self))
    let connection = try await open(server)
    try connection.send(Message.encodeFrame([fetch(1)], asArray: true))
    let answer = try await fetchReply(on: connection)
    #expect(answer == #"[{"type":"ScopeFetchReply","index":1,"replyTo":1,"channel":1}]"#)
    try await server.remove("A")
    let message = #"{"type":"ScopeFetch","index":1,"name":"A","params":{}}"#
    try connection.send(Array(#"{"channel":1,"messages":[\#(message)]}"#.utf8))
    let refusal = try await fetchReply(on: connection)
    #expect(
      refusal.contains(#""retryAfter":1"#),
      "The client would take it for the app's answer: \(refusal)")
    await server.stop()
  }

  @Test(
    "A frame of a channel that the session does not have ends the connection",
    arguments: [
      (#"{"channel":1,"messages":[]}"#, "the session has no channel 1"),
      (#"{"channel":7,"messages":[]}"#, "the session has no channel 7"),
      (
        #"{"channel":-1,"messages":[]}"#,
        #"a channel that is not of the form {"channel":1,"messages":[]}"#
      ),
      (
        #"{"channel":1,"messages":{}}"#,
        #"a channel that is not of the form {"channel":1,"messages":[]}"#
      ),
    ])
  func unknownChannel(frame: String, reason: String) async throws {
    let server = makeServer()
    server.host("A", schema: ScopeSchema(of: Canvas.self))
    let connection = try await open(server)
    try connection.send(Array(frame.utf8))
    while try await connection.receive() != nil {}
    #expect(connection.closeStatus?.code == 1007 && connection.closeStatus?.reason == reason)
    await server.stop()
  }
}

/// A transport whose connections a test can cut.
private final class BreakableLine: Transport {
  private let transport: any Transport
  private let open = Mutex<(count: Int, last: (any TransportConnection)?)>((0, nil))

  init(_ transport: any Transport) { self.transport = transport }

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    let connection = try await transport.open(headers: headers)
    open.withLock { $0 = ($0.count + 1, connection) }
    return connection
  }

  /// The number of connections so far.
  var count: Int { open.withLock { $0.count } }

  /// Cuts the last connection.
  func cut() { open.withLock { $0.last }?.close(code: 1001, reason: "") }
}
