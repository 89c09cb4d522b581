import Foundation
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

@testable import Jetstream

/// Tasks that wait for a client: for its session, and for uploads and downloads.
@Suite("Tasks that wait for a client", .live, .timeLimit(.minutes(5)))
@MainActor
struct WaitingTests {
  /// The result of a task that waits; nil until it has one.
  @MainActor
  private final class Wait {
    private(set) var result: Result<Void, SyncError>?

    init(_ operation: @escaping @MainActor () async throws(SyncError) -> Void) {
      Task {
        do throws(SyncError) {
          try await operation()
          result = .success(())
        } catch {
          result = .failure(error)
        }
      }
    }

    var isSuccess: Bool { if case .success? = result { true } else { false } }
    var error: SyncError? { if case .failure(let error)? = result { error } else { nil } }

    /// Waits for the end of the task.
    func end() async throws { try await wait { result != nil } }
  }

  private let backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(5))

  // MARK: Downloads

  @Test(
    "A download is awaited in modes that close the connection between syncs",
    arguments: [SyncMode.manual, .polling(every: .seconds(3_600)), .paused])
  func restingModes(_ mode: SyncMode) async throws {
    let server = Server()
    let shared = Canvas()
    let hosted = Scope(name: "Canvas", root: shared)
    server.host(hosted)
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let directory = try TemporaryDirectory()
    let log = try FragmentLog(directory.path)
    try client.fetch(scope, mode: mode, log: log)
    let first = Wait { () async throws(SyncError) in try await client.waitForDownload(of: scope) }
    await Task.yield()
    try await client.connect()
    try await wait { canvas.uuid == shared.uuid }
    try await first.end()
    #expect(first.isSuccess)
    guard mode != .paused else { return await end(client, server) }
    try await wait { client.status == .resting }
    for name in ["one", "two", nil] {
      shared.name = name ?? shared.name
      hosted.flush()
      var seen: String?
      let next = Wait { () async throws(SyncError) in
        try await client.waitForDownload(of: scope)
        seen = canvas.name
      }
      await Task.yield()
      try await client.sync(scope)
      try await next.end()
      #expect(next.isSuccess && seen == shared.name)
      try await wait { client.status == .resting }
    }
    await end(client, server)
  }

  private func end(_ client: Client, _ server: Server) async {
    client.close()
    await server.stop()
  }

  @Test("Waits for uploads and downloads end with the reason for which the client gives up")
  func givenUp() async throws {
    let directory = try TemporaryDirectory()
    let transport = FailingTransport(error: .handshakeRefused(status: 404))
    let client = Client(transport: transport, backoff: backoff)
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try client.fetch(scope, log: FragmentLog(directory.path))
    canvas.name = "mine"
    let upload = Wait { () async throws(SyncError) in try await client.waitForUpload(of: scope) }
    let download = Wait { () async throws(SyncError) in
      try await client.waitForDownload(of: scope)
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(upload.result == nil && download.result == nil)
    let error = await #expect(throws: SyncError.self) { try await client.connect() }
    try await upload.end()
    try await download.end()
    #expect(error != nil && upload.error == error && download.error == error)
    #expect(client.syncState(of: scope)?.pendingCount == 1)
    // Until the app connects again, nothing can come.
    let late = [
      Wait { () async throws(SyncError) in try await client.waitForUpload(of: scope) },
      Wait { () async throws(SyncError) in try await client.waitForDownload(of: scope) },
    ]
    for wait in late {
      try await wait.end()
      #expect(wait.error == error)
    }
    client.close()
  }

  @Test("Waits of a scope without a log end with the server's reason for denying the session")
  func denied() async throws {
    let links = Links()
    let client = Client(transport: links.transport, backoff: backoff)
    let connecting = Wait { () async throws(SyncError) in try await client.connect() }
    let scope = Scope(name: "Canvas", root: Canvas())
    try await wait { !links.all.isEmpty }
    let fetch = Wait { () async throws(SyncError) in try await client.fetch(scope) }
    for _ in 0..<10 { await Task.yield() }
    let download = Wait { () async throws(SyncError) in
      try await client.waitForDownload(of: scope)
    }
    for _ in 0..<10 { await Task.yield() }
    let waits = [connecting, fetch, download]
    try await wait {
      links.answer(SessionCreateReply(error: .rejected("no")))
      return waits.allSatisfy { $0.result != nil }
    }
    for wait in waits { #expect(wait.error == .sessionDenied(reason: "no")) }
    client.close()
  }

  // MARK: Sessions

  /// Connections whose server is the test.
  @MainActor
  private final class Links {
    @MainActor
    final class Link {
      let connection: QueueConnection
      /// The parameters with which the client has asked for a session.
      private(set) var params: [JSONValue] = []

      init(_ connection: QueueConnection) {
        self.connection = connection
        Task {
          for await bytes in connection.outbound.stream {
            for case .success(.sessionCreate(let create)) in try Message.decodeFrame(bytes) {
              params.append(create.params)
            }
          }
        }
      }

      private var isAnswered = false

      /// Answers the client once it has asked for a session.
      func answer(_ reply: SessionCreateReply) {
        if params.isEmpty || isAnswered { return }
        isAnswered = true
        connection.inbound.continuation.yield(
          Message.encodeFrame([.sessionCreateReply(reply)], asArray: false, channel: 0))
      }
    }

    private(set) var all: [Link] = []

    /// Answers the client on its last connection: while many tests run, it may have given up the one before.
    func answer(_ reply: SessionCreateReply) { all.last?.answer(reply) }

    /// Grants a session until a wait has ended.
    func grant(_ token: String, until end: Wait) async throws {
      try await wait {
        answer(SessionCreateReply(sessionToken: token, protocol: 2))
        return end.result != nil
      }
    }

    var transport: QueueTransport {
      QueueTransport { [weak self] connection, _ in await self?.accept(connection) }
    }

    private func accept(_ connection: QueueConnection) { all.append(Link(connection)) }
  }

  @Test("Connecting after the session was lost waits for another one, with the new parameters")
  func lostSession() async throws {
    let links = Links()
    let client = Client(transport: links.transport, backoff: backoff)
    let first = Wait { () async throws(SyncError) in try await client.connect(params: "A") }
    try await wait { links.all.last?.params == ["A"] }
    try await links.grant("one", until: first)
    #expect(first.isSuccess && client.hasSession)
    links.all.last?.connection.closedByServer(code: 4097, reason: "")
    try await wait { client.status != .online }
    #expect(!client.hasSession)
    let second = Wait { () async throws(SyncError) in try await client.connect(params: "B") }
    try await wait { links.all.last?.params == ["B"] }
    #expect(second.result == nil)
    try await links.grant("two", until: second)
    #expect(second.isSuccess && client.hasSession)
    client.close()
  }

  @Test("A call that connects after a cancelled one gets a session with its own parameters")
  func cancelledCall() async throws {
    let links = Links()
    let client = Client(transport: links.transport, backoff: backoff)
    let first = Task { try await client.connect(params: "A") }
    try await wait { links.all.last?.params == ["A"] }
    first.cancel()
    await #expect(throws: SyncError.cancelled) { try await first.value }
    let second = Wait { () async throws(SyncError) in try await client.connect(params: "B") }
    // A call beside one that waits gets the same session.
    await Task.yield()
    let third = Wait { () async throws(SyncError) in try await client.connect() }
    try await wait { links.all.last?.params == ["B"] }
    try await links.grant("one", until: second)
    try await third.end()
    #expect(second.isSuccess && third.isSuccess && links.all.count > 1)
    client.close()
  }
}
