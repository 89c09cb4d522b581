import Jetstream
import JetstreamServer
import Pacing
import Testing

/// A server closes the connection with code 1009 when a message is too large for it. Sending the message again on the next
/// connection would have the same end.
@Suite("Messages that a server refuses to read")
struct RefusedMessageTests {
  private let server = ScriptedServer()
  private let start = ScopePosition(epoch: "e", sequence: 1)
  private let long = String(repeating: "x", count: 100_000)

  private func beginSession(_ token: String) {
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: token, protocol: 2)))
  }

  @Test("A change set that is too large is rejected, those behind it are sent in another session")
  func changeSet() throws {
    server.joinAtPosition(start)
    let handle = server.scope.modify { server.canvas.name = long }
    server.scope.modify { server.canvas.likes = 3 }
    #expect(server.takeSyncs().map(\.number) == [1, 2])
    server.close(1009)
    server.advance(by: .seconds(1))
    #expect(server.attempts == [nil, nil])
    beginSession("next")
    server.grant(start)
    #expect(handle.state == .rejected && server.canvas.name == nil && server.canvas.likes == 3)
    #expect(server.takeSyncs().map(\.number) == [2])
    let item = try #require(server.scope.conflicts.items.first)
    guard case .rejected(let error) = item.reason else {
      Issue.record("\(item.reason)")
      return
    }
    #expect(error.type == "message-too-large")
    // As much would be refused again, and is not sent at all.
    let again = server.scope.modify { server.canvas.name = long }
    #expect(again.state == .rejected && server.takeSyncs().isEmpty)
    server.scope.modify { server.canvas.name = "short" }
    #expect(server.takeSyncs().map(\.number) == [4])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A change set is rejected whose labels take most of the message")
  func labels() {
    server.joinAtPosition(start)
    let handle = server.scope.modify(long) { server.canvas.likes = 1 }
    #expect(server.takeSyncs().count == 1)
    server.close(1009)
    server.advance(by: .seconds(1))
    beginSession("next")
    server.grant(start)
    #expect(handle.state == .rejected && server.takeSyncs().isEmpty)
    #expect(server.engine.pendingCount == 0 && server.canvas.likes == 0)
  }

  @Test("A server of version 1 refuses the whole value of a collection")
  func wholeValue() {
    let shapes = (0..<2000).map { _ in Shape() }
    server.canvas.shapes.append(contentsOf: shapes)
    server.scope.flush()
    server.join()
    let handle = server.scope.modify { server.canvas.shapes.remove(shapes[0]) }
    #expect(server.takeSyncs().count == 1)
    server.close(1009)
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next")))
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)), server.state(2))
    #expect(handle.state == .rejected && server.takeSyncs().isEmpty)
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A scope is denied whose parameters are too large")
  func request() {
    server.connect()
    beginSession("secret")
    server.fetch(params: ["text": .string(long)])
    server.close(1009)
    guard case .failure(.scopeDenied("Canvas", let error))? = server.fetched.first else {
      Issue.record("\(server.fetched)")
      return
    }
    #expect(error.type == "message-too-large")
    server.advance(by: .seconds(1))
    beginSession("next")
    #expect(server.engine.status == .online && server.engine.scopes.isEmpty)
  }

  /// Refuses the request for the scope, and expects that its syncing ends with what is pending, once and for all.
  private func refuse(_ handle: ChangeSetHandle, besides other: Scope) {
    server.close(1009)
    #expect(server.engine.scopes.map(\.name) == [other.name])
    #expect(handle.state == .abandoned && server.canvas.likes == 1)
    #expect(server.scope.conflicts.items.map(\.property) == ["likes"])
    server.advance(by: .seconds(1))
    beginSession("next")
    server.advance(by: .seconds(5))
    let names = server.takeSent().compactMap {
      if case .scopeFetch(let fetch) = $0 { fetch.name } else { nil }
    }
    #expect(names == [other.name] && server.engine.status == .online)
  }

  @Test("The syncing of a scope ends whose request is too large although it has a log")
  func keptRequest() throws {
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    var records: [ReplicaRecord] = []
    var results: [Result<Void, SyncError>] = []
    server.connect()
    beginSession("secret")
    try server.engine.fetch(
      server.scope, params: ["text": .string(long)], history: nil, now: server.now,
      store: { records.append($0) }, completion: { results.append($0) })
    server.fetch(other)
    let handle = server.scope.modify { server.canvas.likes = 1 }
    _ = server.takeSent()
    refuse(handle, besides: other)
    #expect(results.count == 1 && server.fetched.isEmpty)
    guard case .failure(.scopeDenied("Canvas", let error))? = results.first else {
      Issue.record("\(results)")
      return
    }
    #expect(error.type == "message-too-large")
    #expect(records.contains { if case .made(1, _) = $0 { true } else { false } })
  }

  @Test("The syncing of a scope ends whose request has become too large")
  func laterRequest() {
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    server.connect()
    beginSession("secret")
    server.fetch(params: ["text": .string(long)])
    server.grant(start)
    server.fetch(other)
    server.loseSession()
    let handle = server.scope.modify { server.canvas.likes = 1 }
    _ = server.takeSent()
    refuse(handle, besides: other)
  }

  @Test("A session is denied whose parameters are too large")
  func handshake() {
    server.connect()
    server.open()
    server.close(1009)
    #expect(server.denials.count == 1 && server.engine.status == .offline)
  }

  @Test("A session that cannot be resumed with a message of this size is given up")
  func resuming() {
    server.joinAtPosition(start)
    server.scope.modify { server.canvas.likes = 1 }
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    server.close(1009)
    server.advance(by: .seconds(1))
    #expect(server.attempts == [nil, "secret", nil])
    beginSession("next")
    server.grant(start)
    #expect(server.takeSyncs().map(\.number) == [1, 1], "no change set was refused")
  }
}

@Suite("Large messages over real sockets", .live, .timeLimit(.minutes(5)))
@MainActor
struct LargeMessageTests {
  @Test("A change set that the server does not read is rejected, and the client goes on")
  func refused() async throws {
    var configuration = Server.Configuration()
    configuration.maximumMessageBytes = 100_000
    let room = try await LiveRoom(configuration)
    let client = room.first
    let handle = client.scope.modify {
      client.canvas.name = String(repeating: "x", count: 4 << 20)
    }
    await #expect(throws: ChangeSetError.self) { try await handle.finished() }
    #expect(handle.rejections.first?.error.type == "message-too-large")
    #expect(client.canvas.name == "room")
    await room.work()
    await room.server.stop()
  }

  @Test("A value of the server's own that is longer than what a client sends reaches clients")
  func ofServer() async throws {
    let room = try await LiveRoom()
    let count = 17 << 20
    room.canvas.name = String(repeating: "x", count: count)
    for client in [room.first, room.second] {
      await client.observe(client.canvas, until: { $0.name?.utf8.count == count })
    }
    await room.work()
    await room.server.stop()
  }
}
