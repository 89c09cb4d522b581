import Jetstream
import JetstreamServer
import Testing

/// What a server sends and a client cannot read counts as received: it would not become readable by being sent again.
@Suite("Messages that a client cannot read")
struct UnreadableMessageTests {
  private let server = ScriptedServer()

  private func createSession(version: Int? = 2) {
    server.connect()
    server.open()
    server.fetch()
    server.receive(
      .sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: version)))
    _ = server.takeSent()
  }

  /// The session goes on, with all messages until now acknowledged.
  private func expectSession(knowing index: Int) {
    #expect(server.engine.status == .online && server.attempts.count == 1)
    server.advance(by: .seconds(20))
    let pings = server.takeSent().compactMap { message in
      if case .ping(let ping) = message { ping.ack } else { nil }
    }
    #expect(pings.last == index)
  }

  @Test(
    "A grant that cannot be read ends the fetch",
    arguments: [
      #"{"type":"ScopeFetchReply","index":1,"replyTo":1,"scopeIndex":"none"}"#,
      #"{"type":"ScopeFetchReply","index":1,"replyTo":1}"#,
      #"{"type":"ScopeFetchReply","index":1,"replyTo":1,"scopeIndex":0,"standing":7}"#,
      #"{"type":"ScopeFetchReply","index":1,"replyTo":1,"scopeIndex":0,"standing":"#
        + #"{"epoch":"e","sequence":1,"decided":1,"decisions":[{"number":1,"sequence":1,"#
        + #""fragmentReplies":[],"checksum":4294967296}]}}"#,
    ])
  func unreadableGrant(text: String) {
    createSession()
    server.receive(text: text)
    #expect {
      try server.fetched.last?.get()
    } throws: {
      if case SyncError.invalidReply = $0 { true } else { false }
    }
    #expect(server.engine.scopes.isEmpty)
    expectSession(knowing: 1)
  }

  @Test(
    "A first state that cannot be read ends the fetch",
    arguments: [
      #"{"type":"ScopeState","index":2,"scopeIndex":0,"rootUUID":"root","fragments":[]}"#,
      #"{"type":"ScopeState","index":2,"scopeIndex":0,"fragments":7}"#,
      #"{"type":"ScopeState","index":2}"#,
    ], [1, 2])
  func unreadableState(text: String, version: Int) {
    createSession(version: version == 1 ? nil : version)
    let standing = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 4))
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 1, replyTo: 1, scopeIndex: 0, standing: version == 1 ? nil : standing)))
    server.receive(text: text)
    #expect(throws: SyncError.self) { try server.fetched.last?.get() }
    #expect(server.engine.scopes.isEmpty)
    expectSession(knowing: 2)
  }

  @Test("A message of an unknown type is passed over")
  func unknownType() {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    server.receive(text: ##"{"type":"ScopeCursor","index":#,"scopeIndex":0}"##)
    server.receive(server.sync(4, ["name": "named"]))
    #expect(server.canvas.name == "named")
    expectSession(knowing: 4)
  }

  @Test("What a scope has missed is fetched anew, as a whole")
  func unreadableChange() {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    server.receive(text: ##"{"type":"ScopeSync","index":#,"scopeIndex":0,"fragments":[7]}"##)
    guard case .scopeFetch(let fetch)? = server.takeSent().last else {
      Issue.record("The scope was not asked for.")
      return
    }
    #expect(fetch.name == "Canvas" && fetch.since == nil && fetch.tell == .everything)
    #expect(server.engine.status == .online && server.engine.scopes.count == 1)
  }

  @Test("A change set of the stream that cannot be read is asked for once, as a whole")
  func unreadableInStream() throws {
    let canvas = server.canvas.uuid
    func frame(_ sequence: Int, _ fragments: String) -> String {
      #"{"type":"ScopeSync","index":0,"scopeIndex":0,"fragments":[\#(fragments)],"#
        + #""sequence":\#(sequence)}"#
    }
    let named = SyncFragment(
      .change, uuid: canvas, className: "Canvas", properties: ["name": "named"])
    func takeFetches() -> [ScopeFetch] {
      server.takeSent().compactMap { if case .scopeFetch(let fetch) = $0 { fetch } else { nil } }
    }
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    server.receive(text: "[\(frame(8, "7")),\(frame(9, named.json.text)),\(frame(10, "7"))]")
    server.receive(text: frame(11, "7"))
    let fetches = takeFetches()
    #expect(fetches.count == 1)
    let fetch = try #require(fetches.first)
    #expect(fetch.since == nil && fetch.tell == .everything)
    let standing = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 11))
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 3, replyTo: fetch.index, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(index: 4, scopeIndex: 0, rootUUID: canvas, fragments: [named])))
    #expect(takeFetches().isEmpty && server.canvas.name == "named")
    #expect(server.engine.state(of: server.scope)?.isSynced == true)
    expectSession(knowing: 4)
  }

  @Test(
    "A change set of the stream that names no scope is taken for one of any scope",
    arguments: [
      #"{"type":"ScopeSync","index":0,"scopeIndex":"none","fragments":[],"sequence":8}"#,
      #"{"type":"ScopeSync","index":0,"fragments":[],"sequence":8,"number":1}"#,
      #"{"type":"ScopeSync","index":0,"fragments":[7],"sequence":8}"#,
      #"{"type":"ScopeSync","scopeIndex":0,"fragments":[],"sequence":8}"#,
      #"{"index":0,"scopeIndex":0,"fragments":[],"sequence":8}"#, "7",
    ])
  func unreadableScopeInStream(text: String) throws {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    // The second one comes before the answer.
    server.receive(text: "[\(text),\(text)]")
    #expect(server.engine.state(of: server.scope)?.isUpToDate == false)
    #expect(server.diagnostics.contains { $0.contains("skipped a message") })
    let fetches = server.takeSent().compactMap { message in
      if case .scopeFetch(let fetch) = message { fetch } else { nil }
    }
    let fetch = try #require(fetches.first)
    #expect(fetches.count == 1 && fetch.since == nil && fetch.tell == .everything)
    let standing = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 8))
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 3, replyTo: fetch.index, scopeIndex: 0, standing: standing)),
      server.state(4))
    #expect(server.engine.state(of: server.scope)?.isSynced == true)
    expectSession(knowing: 4)
  }

  @Test(
    "A message of another kind without an index costs nothing",
    arguments: [
      #"{"type":"Ping","index":0,"ack":"none"}"#, #"{"type":"ScopeCursor","index":0}"#,
      #"{"type":"ScopeCursor"}"#, #"{"type":"ScopeSyncReply","index":0,"replyTo":1}"#,
    ])
  func unreadableOther(text: String) {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    server.receive(text: text)
    #expect(server.takeSent().isEmpty)
    #expect(server.engine.state(of: server.scope)?.isSynced == true)
  }

  @Test("A state that cannot be read is asked for again after a while, and nothing is dropped")
  func unreadableLaterState() {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    server.receive(text: ##"{"type":"ScopeSync","index":#,"scopeIndex":0,"fragments":[7]}"##)
    let fetch = server.takeSent().last
    server.receive(
      text:
        ##"{"type":"ScopeFetchReply","index":#,"replyTo":\##(fetch?.index ?? 0),"scopeIndex":"x"}"##
    )
    guard case .refused? = server.engine.state(of: server.scope)?.stall else {
      Issue.record("\(server.engine.state(of: server.scope) as Any)")
      return
    }
    server.canvas.name = "mine"
    server.scope.flush()
    #expect(server.engine.pendingCount == 1 && server.takeSent().isEmpty)
    server.advance(by: .seconds(2))
    let asked = server.takeSent().contains { if case .scopeFetch = $0 { true } else { false } }
    #expect(asked && server.attempts.count == 1)
  }

  @Test("Towards version 1, what cannot be read costs the session, and nothing else")
  func oldServer() {
    server.join()
    server.receive(text: ##"{"type":"ScopeSync","index":#,"scopeIndex":0,"fragments":[7]}"##)
    #expect(server.engine.session.token == nil && server.engine.scopes.count == 1)
    server.advance(by: .seconds(2))
    #expect(server.attempts == [nil, nil])
  }
}
