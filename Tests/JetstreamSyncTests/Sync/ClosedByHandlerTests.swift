import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Synchronization
import Testing

/// Clients that an app closes in a handler which the client calls in the middle of something.
@Suite("Clients that are closed by a handler")
struct ClosedByHandlerTests {
  private let server = ScriptedServer()

  private func join(version: Int) {
    if version == 1 {
      server.join()
    } else {
      server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    }
  }

  /// Closes the client while it sends its next frame.
  private func closeWhileSending() {
    server.onSend = { [server] in
      server.onSend = nil
      server.engine.close()
    }
  }

  /// Expects the client to stay closed, and to work again once it is connected.
  private func expectClosed(attempts: Int) {
    server.onDiagnostic = nil
    server.advance(by: .seconds(100))
    #expect(server.engine.status == .offline && server.attempts.count == attempts)
    #expect(server.engine.scopes.isEmpty && server.engine.pendingCount == 0)
    _ = server.takeSent()
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "again", protocol: 2)))
    #expect(server.takeSent().map(\.index) == [0, 1])
    server.grant(ScopePosition(epoch: "e", sequence: 1))
    var sync = ScopeSync(
      scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: server.canvas.uuid, className: "Canvas", properties: ["name": "new"])
      ])
    sync.sequence = 2
    server.deliver([.scopeSync(sync)])
    #expect(server.canvas.name == "new" && server.engine.checkInvariants() == [])
  }

  @Test("A client that is closed while it sends a change set stays closed", arguments: [1, 2])
  func sending(version: Int) {
    join(version: version)
    closeWhileSending()
    server.canvas.name = "a"
    server.scope.flush()
    expectClosed(attempts: 1)
  }

  @Test("A client that is closed while it sends a change set in parts stays closed")
  func sendingParts() {
    join(version: 1)
    closeWhileSending()
    for _ in 0..<250 { server.canvas.shapes.append(Shape()) }
    server.scope.flush()
    expectClosed(attempts: 1)
  }

  @Test("A client that is closed while it asks for its scopes stays closed", arguments: [1, 2])
  func asking(version: Int) {
    join(version: version)
    server.fetch(Scope(name: "Other", root: Canvas(), ticker: server.ticker))
    server.close(4097)
    server.advance(by: .seconds(1))
    server.open()
    closeWhileSending()
    server.receive(
      .sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: version)))
    expectClosed(attempts: 2)
  }

  @Test("A scope that is left while the client asks for another one is not asked for")
  func leaving() {
    join(version: 2)
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    server.fetch(other)
    server.close(4097)
    server.advance(by: .seconds(1))
    server.open()
    _ = server.takeSent()
    server.onSend = { [server] in
      server.onSend = nil
      _ = server.engine.leave(other, now: server.now)
    }
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    let names = server.takeSent().compactMap { message in
      if case .scopeFetch(let fetch) = message { fetch.name } else { nil }
    }
    #expect(names == ["Canvas"] && server.engine.checkInvariants() == [])
  }

  @Test("A client that is closed while it asks for a session stays closed")
  func creating() {
    server.connect()
    closeWhileSending()
    server.open()
    expectClosed(attempts: 1)
  }

  @Test("A client that is closed while it resumes its session stays closed")
  func resuming() {
    join(version: 2)
    server.close()
    server.advance(by: .seconds(1))
    closeWhileSending()
    server.open()
    expectClosed(attempts: 2)
  }

  @Test("A client that is closed while it sends a ping stays closed")
  func pinging() {
    join(version: 2)
    closeWhileSending()
    server.advance(by: .seconds(12))
    #expect(server.onSend == nil)
    expectClosed(attempts: 1)
  }

  @Test("A client that is closed while it gives up an idle connection stays closed")
  func resting() {
    join(version: 2)
    server.engine.setMode(.manual, of: server.scope, now: server.now)
    // Asks the server to keep what others change.
    let request = server.takeSent().last?.index ?? 0
    closeWhileSending()
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 3, replyTo: request, scopeIndex: 0,
          standing: ScopeStanding(
            position: ScopePosition(epoch: "e", sequence: 1), resumes: true))))
    #expect(server.onSend == nil)
    expectClosed(attempts: 1)
  }

  @Test("A client that is closed when its server does not know the session stays closed")
  func unknownSession() {
    join(version: 2)
    server.onDiagnostic = { [server] _ in server.engine.close() }
    server.close(4096, WireError.sessionTokenUnrecognized.json.text)
    expectClosed(attempts: 1)
  }

  @Test(
    "A client that is closed because it cannot read a message stays closed",
    arguments: [
      #"{"type":"ScopeSync","index":#,"scopeIndex":0}"#, #"{"type":"Unknown","index":1}"#,
      #"{"type":"Unknown","index":#}"#,
    ])
  func unreadable(_ text: String) {
    join(version: 2)
    server.onDiagnostic = { [server] _ in server.engine.close() }
    server.receive(text: text)
    expectClosed(attempts: 1)
  }

  @Test("What was changed just before the client is closed is sent")
  func lastChange() {
    join(version: 2)
    server.canvas.name = "last"
    server.engine.close()
    #expect(server.takeSyncs().flatMap(\.fragments).map(\.properties) == [["name": "last"]])
  }
}

/// A connection that takes no more frames once a test says so.
private final class BrokenConnection: TransportConnection {
  struct Broken: Error {}

  private let base: any TransportConnection
  private let isBroken: Gate

  final class Gate: Sendable {
    private let state = Mutex(false)
    var isClosed: Bool { state.withLock { $0 } }
    func close() { state.withLock { $0 = true } }
  }

  init(_ base: any TransportConnection, _ isBroken: Gate) {
    (self.base, self.isBroken) = (base, isBroken)
  }

  func receive() async throws -> [UInt8]? { try await base.receive() }

  func send(_ frame: [UInt8]) throws {
    if isBroken.isClosed { throw Broken() }
    try base.send(frame)
  }

  func close(code: Int, reason: String) { base.close(code: code, reason: reason) }

  var closeStatus: (code: Int, reason: String)? { base.closeStatus }
}

private struct BrokenTransport: Transport {
  let base: any Transport
  let gate: BrokenConnection.Gate

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    BrokenConnection(try await base.open(headers: headers), gate)
  }
}

@Suite("Clients whose frames cannot be sent", .live, .timeLimit(.minutes(5)))
@MainActor
struct UnsentFrameTests {
  private let gate = BrokenConnection.Gate()

  private func join(_ server: Server) async throws -> Participant {
    server.host(Scope(name: "Canvas", root: Canvas()))
    let transport = BrokenTransport(base: server.makeTransport(), gate: gate)
    return try await Participant(Client(transport: transport))
  }

  @Test("A client that is closed because a frame cannot be sent stays closed")
  func close() async throws {
    let server = Server()
    let one = try await join(server)
    one.client.onDiagnostic.listen { [client = one.client] _ in client.close() }
    gate.close()
    one.canvas.name = "a"
    one.scope.flush()
    #expect(one.client.status == .offline && one.client.syncState(of: one.scope) == nil)
    await server.stop()
  }

  @Test("A scope that is left because a frame cannot be sent is left")
  func leave() async throws {
    let server = Server()
    let one = try await join(server)
    var left: [ChangeSet]?
    one.client.onDiagnostic.listen { [client = one.client, scope = one.scope] _ in
      // The message that ends the subscription cannot be sent, either: this is called once more in the middle of it.
      let sets = try? client.leave(scope)
      left = left ?? sets
    }
    gate.close()
    one.canvas.name = "a"
    one.scope.flush()
    #expect(left?.count == 1 && one.client.syncState(of: one.scope) == nil)
    one.client.close()
    await server.stop()
  }
}
