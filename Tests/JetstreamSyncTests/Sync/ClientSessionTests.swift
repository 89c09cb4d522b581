import JetstreamServer
import Testing

@testable import Jetstream

@Suite("A client's session")
struct ClientSessionTests {
  private let server = ScriptedServer()

  @Test("The session is created with version and parameters, the status told when it changes")
  func creation() {
    server.connect()
    server.connect()
    #expect(server.attempts == [nil])
    server.open()
    guard case .sessionCreate(let request)? = server.takeSent().first else {
      Issue.record("No session was asked for.")
      return
    }
    #expect(request.index == 0 && request.params == ["user": 1])
    #expect(SemanticVersion.isValid(request.version))
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret")))
    #expect(server.statuses == [.connecting, .online] && server.engine.session.token == "secret")
  }

  @Test("A scope that is fetched again while the client closes goes on with its numbers")
  func fetchedWhileClosing() {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    server.scope.modify { server.canvas.likes = 1 }
    #expect(server.takeSyncs().map(\.number) == [1])
    server.onStatus = { [server] status in
      guard status == .offline else { return }
      server.onStatus = nil
      server.connect()
      server.fetch()
    }
    server.engine.close()
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    server.grant(ScopePosition(epoch: "e", sequence: 1))
    server.scope.modify { server.canvas.likes = 2 }
    #expect(server.takeSyncs().map(\.number) == [2])
  }

  @Test("A denial ends the attempt with the server's reason")
  func denial() {
    server.connect()
    server.open()
    server.fetch()
    server.receive(
      .sessionCreateReply(SessionCreateReply(error: WireError(message: "not today"))))
    #expect(server.denials == [.sessionDenied(reason: "not today")])
    #expect(throws: SyncError.sessionDenied(reason: "not today")) {
      try server.fetched.first?.get()
    }
    #expect(server.statuses == [.connecting, .offline] && server.attempts.count == 1)
    server.advance(by: .seconds(100))
    #expect(server.attempts.count == 1)
  }

  @Test("Fetches carry parameters; each way to fail has its error")
  func fetchErrors() {
    server.fetch()
    #expect(throws: SyncError.notConnected) { try server.fetched.last?.get() }
    server.join()
    #expect(server.fetched.count == 2)
    server.fetch()
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) { try server.fetched.last?.get() }
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    server.fetch(other)
    #expect(
      server.takeSent().last
        == .scopeFetch(ScopeFetch(index: 2, name: "Other", params: ["page": 2])))
    let reason = WireError.rejected("no")
    server.receive(.scopeFetchReply(ScopeFetchReply(index: 3, replyTo: 2, error: reason)))
    #expect(throws: SyncError.scopeDenied(scope: "Other", error: reason)) {
      try server.fetched.last?.get()
    }
    server.fetch(other)
    server.receive(.scopeFetchReply(ScopeFetchReply(index: 4, replyTo: 3, scopeIndex: 1)))
    server.receive(
      .scopeState(
        ScopeState(index: 5, scopeIndex: 1, rootUUID: server.canvas.uuid, fragments: [])))
    #expect(throws: SyncError.self) { try server.fetched.last?.get() }
    server.fetch(other)
    server.engine.close()
    // Nobody waits for ever.
    #expect(throws: SyncError.sessionClosed(reason: "it was closed here")) {
      try server.fetched.last?.get()
    }
    #expect(server.fetched.count == 6)
  }

  @Test("Two scopes of one session never cross")
  func scopes() {
    server.join()
    let canvas = Canvas()
    let other = Scope(name: "Other", root: canvas, ticker: server.ticker)
    server.fetch(other)
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 3, replyTo: 2, scopeIndex: 1)),
      server.state(4, scope: other, at: 1))
    server.receive(server.sync(5, ["name": "first"]))
    #expect(server.canvas.name == "first" && canvas.name == nil)
    _ = server.takeSent()
    canvas.name = "second"
    other.flush()
    let indexes = server.takeSent().compactMap { message -> Int? in
      if case .scopeSync(let sync) = message { sync.scopeIndex } else { nil }
    }
    #expect(indexes == [1] && server.canvas.name == "first")
  }

  @Test("After closing, connecting works again and so does reconnecting")
  func closeAndConnect() {
    server.join()
    server.engine.close()
    #expect(server.disconnects == 1 && server.engine.status == .offline)
    server.connect()
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "second")))
    server.close()
    #expect(server.engine.status == .waiting)
    server.advance(by: .seconds(1))
    #expect(server.attempts == [nil, nil, "second"])
  }

  @Test(
    "After closing, connecting ends where no server can answer; with a session, it is tried again")
  func closeAndConnectInVain() {
    server.join()
    server.close(isPermanent: true)
    #expect(server.engine.status == .waiting)
    server.engine.close()
    server.connect()
    server.close(isPermanent: true)
    #expect(server.engine.status == .offline)
    server.advance(by: .seconds(100))
    #expect(server.attempts == [nil, nil])
    // The client has had a session, in whichever attempt.
    #expect(server.engine.credentials.reason == .reconnect)
  }

  @Test("A missing message makes the client reconnect, a repeated one is ignored")
  func numbering() {
    server.join()
    server.receive(server.sync(3, ["name": "three"]))
    server.receive(server.sync(3, ["name": "again"]))
    #expect(server.canvas.name == "three")
    server.receive(server.sync(5, ["name": "five"]))
    #expect(server.canvas.name == "three" && server.disconnects == 1)
    server.advance(by: .seconds(1))
    server.open()
    #expect(server.attempts == [nil, "secret"])
    #expect(server.takeSent() == [.ping(Ping(ack: 3, resendMissing: true))])
    server.receive(
      .ping(Ping(ack: 1, resendMissing: true)), server.sync(4, ["name": "four"]),
      server.sync(5, ["name": "five"]))
    #expect(server.canvas.name == "five" && server.engine.status == .online)
  }

  @Test("Several messages of a frame are handled in order, and seen as one change")
  func frames() {
    server.join()
    var names: [String?] = []
    let token = server.canvas.observeChangeImmediately(server, \.name) { _, _, new in
      names.append(new)
    }
    server.receive(
      server.sync(3, ["name": "a"]), server.sync(4, ["name": "b"]), server.sync(5, ["name": "c"]))
    #expect(names == ["c"])
    token.cancel()
  }

  @Test("A ping goes out within nine to eleven seconds and acknowledges")
  func pings() {
    server.join()
    server.receive(server.sync(3, ["name": "three"]))
    server.advance(by: .seconds(8.9))
    #expect(server.takeSent().isEmpty)
    server.advance(by: .seconds(2.1))
    #expect(server.takeSent() == [.ping(Ping(ack: 3))])
  }

  @Test("A silent server is left, and tried again later and later")
  func silence() {
    server.join()
    server.advance(by: .seconds(33))
    #expect(server.disconnects == 1 && server.engine.status == .waiting)
    for _ in 0..<3 {
      server.advance(by: .seconds(30))
      server.close()
    }
    #expect(server.attempts.count == 4)
  }

  @Test("A server of which bytes arrive is alive, although its message takes long")
  func longMessage() {
    server.join()
    server.close()
    server.advance(by: .seconds(1))
    server.arrived = 0
    server.open()
    let disconnects = server.disconnects
    for _ in 0..<8 {
      server.arrived += 400_000
      server.advance(by: .seconds(5))
    }
    #expect(server.engine.status == .connecting && server.disconnects == disconnects)
    server.receive(.ping(Ping(ack: 0, resendMissing: true)))
    #expect(server.engine.status == .online)
    for _ in 0..<8 {
      server.advance(by: .seconds(5))
      server.arrived += 1
    }
    #expect(server.engine.status == .online && server.disconnects == disconnects)
    // The last byte is found with the next ping.
    server.advance(by: .seconds(11))
    server.advance(by: .seconds(31))
    #expect(server.engine.status == .online)
    server.advance(by: .seconds(1))
    #expect(server.engine.status == .waiting && server.disconnects == disconnects + 1)
  }

  @Test("A server of which nothing more arrives is left, whatever has arrived before")
  func nothingMore() {
    server.join()
    server.arrived = 1000
    server.receive(server.sync(3, ["name": "a"]))
    server.advance(by: .seconds(11))
    server.advance(by: .milliseconds(20_900))
    #expect(server.engine.status == .online)
    server.advance(by: .milliseconds(100))
    #expect(server.engine.status == .waiting)
    server.advance(by: .seconds(1))
    server.arrived = 0
    server.open()
    server.arrived = 500
    server.advance(by: .seconds(10))
    #expect(server.engine.status == .connecting)
    server.advance(by: .seconds(10))
    #expect(server.engine.status == .waiting)
  }

  @Test("A refusal of credentials ends when the client is closed")
  func refusedBeforeClosing() {
    var configuration = ClientEngine.Configuration()
    configuration.hasCredentials = true
    let server = ScriptedServer(configuration: configuration)
    func refuse() {
      server.open()
      server.receive(.sessionCreateReply(SessionCreateReply(error: .notYou("expired"))))
    }
    server.connect()
    refuse()
    #expect(server.engine.status == .waiting)
    server.engine.close()
    server.connect()
    refuse()
    #expect(server.engine.status == .waiting && server.denials.isEmpty)
    server.advance(by: .seconds(1))
    refuse()
    #expect(server.engine.status == .offline && server.denials.count == 1)
  }

  @Test("What was sent before a cut is sent again with the same numbers")
  func resend() {
    server.join()
    for name in ["a", "b", "c"] {
      server.canvas.name = name
      server.scope.flush()
    }
    let sent = server.takeSent()
    #expect(sent.map(\.index) == [0, 2, 3, 4], "a ping stands in front of what is new")
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    _ = server.takeSent()
    server.receive(.ping(Ping(ack: 2, resendMissing: true)))
    #expect(
      server.takeSent() == [.ping(Ping(ack: 2))] + sent[2...],
      "what had been seen when they were made stands in front")
  }

  @Test("The number of undecided change sets is told when it changes")
  func waitingReplies() {
    server.join()
    server.canvas.name = "a"
    server.scope.flush()
    server.canvas.name = "b"
    server.scope.flush()
    let index = server.takeSent().map(\.index).max()!
    server.receive(
      .scopeSyncReply(
        ScopeSyncReply(index: 3, replyTo: index - 1, fragmentReplies: [FragmentReply()])))
    #expect(server.counts == [1, 2, 1])
  }

  @Test("4096 is final for a session that is being made or resumed for other reasons")
  func fatalCodes() {
    server.join()
    server.close(4096, WireError.rejected("banned").json.text)
    server.advance(by: .seconds(100))
    #expect(server.attempts.count == 1 && server.engine.status == .offline)
    #expect(server.denials == [.sessionClosed(reason: "banned")])
  }

  @Test("A denied session ends the scopes without a log, and keeps those that have one")
  func deniedWithLog() throws {
    let logged = Scope(name: "Logged", root: Canvas(), ticker: server.ticker)
    var records = 0
    server.join()
    try server.engine.fetch(
      logged, params: [:], history: nil, now: server.now, store: { _ in records += 1 },
      completion: { _ in })
    server.close(4096, WireError.rejected("banned").json.text)
    #expect(server.denials == [.sessionClosed(reason: "banned")])
    #expect(server.engine.scopes.map(\.name) == ["Logged"])
    let before = records
    (logged.root as? Canvas)?.name = "offline"
    logged.flush()
    #expect(records > before && server.engine.pendingCount == 1)
    server.connect()
    server.open()
    _ = server.takeSent()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next")))
    guard case .scopeFetch(let fetch)? = server.takeSent().last else {
      Issue.record("The scope is not asked for.")
      return
    }
    #expect(fetch.name == "Logged")
    server.engine.close()
    #expect(server.engine.scopes.isEmpty)
  }

  @Test("A client that is closed when its status changes stays closed, and can be connected again")
  func closedByListener() {
    for status in [ClientStatus.connecting, .online] {
      let server = ScriptedServer()
      server.onStatus = { if $0 == status { server.engine.close() } }
      server.connect()
      #expect(server.attempts.count == (status == .connecting ? 0 : 1))
      if status == .online {
        server.open()
        server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret")))
      }
      server.advance(by: .seconds(100))
      #expect(server.statuses.last == .offline && server.reportedTokens.isEmpty)
      server.onStatus = nil
      server.join()
      #expect(server.engine.status == .online && server.reportedTokens == ["secret"])
    }
  }

  @Test("A server that does not know a session which was not named is asked again after a while")
  func unknownWithoutToken() {
    server.join()
    let unknown = WireError.sessionTokenUnrecognized.json.text
    server.close(4096, unknown)
    #expect(server.attempts == [nil, nil] && server.engine.status == .connecting)
    for attempts in 2...4 {
      #expect(server.attempts.count == attempts)
      server.open()
      server.close(4096, unknown)
      #expect(server.attempts.count == attempts && server.engine.status == .waiting)
      server.advance(by: .seconds(60))
    }
    #expect(server.denials.isEmpty && server.engine.scopes.count == 1)
  }

  @Test("A server that has waited too long for the handshake is asked again")
  func lateHandshake() {
    server.connect()
    server.open()
    server.close(4096, WireError.sessionEstablishTimedOut.json.text)
    #expect(server.engine.status == .waiting && server.denials.isEmpty)
    server.advance(by: .seconds(1))
    #expect(server.attempts.count == 2)
  }

  @Test(
    "A lost session is replaced: scopes are fetched with their parameters, sets are sent again",
    arguments: [
      (4097, ""), (4096, WireError.sessionTokenUnrecognized.json.text),
    ])
  func lostSession(code: Int, reason: String) {
    server.join()
    server.canvas.name = "pending"
    server.scope.flush()
    _ = server.takeSent()
    server.close(code, reason)
    server.advance(by: .seconds(1))
    #expect(server.attempts == [nil, nil])
    server.open()
    _ = server.takeSent()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "second")))
    #expect(
      server.takeSent() == [.scopeFetch(ScopeFetch(index: 1, name: "Canvas", params: ["page": 2]))])
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: server.canvas.uuid,
          fragments: [
            SyncFragment(
              .change, uuid: server.canvas.uuid, className: "Canvas",
              properties: ["name": "theirs", "shapes": [], "hidden": []])
          ])))
    #expect(server.canvas.name == "pending", "the state does not hide what is pending")
    let sync = server.takeSent().last
    guard case .scopeSync(let body)? = sync else {
      Issue.record("The set was not sent again.")
      return
    }
    #expect(body.fragments.first?.properties == ["name": "pending"])
    server.receive(
      .scopeSyncReply(
        ScopeSyncReply(
          index: 3, replyTo: body.index, fragmentReplies: [FragmentReply(error: .rejected("no"))])))
    #expect(server.canvas.name == "theirs")
  }
}
