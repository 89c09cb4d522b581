import Jetstream
import JetstreamServer
import Testing

/// Changes of scopes whose syncing the server ends.
@Suite("Pending changes of a session that is denied for good")
struct LostChangesTests {
  private let server = ScriptedServer()
  private var scope: Scope { server.scope }
  private var canvas: Canvas { server.canvas }
  private let place = ScopePosition(epoch: "e", sequence: 1)

  /// The ways in which a server ends the syncing of a client, and a client gives up.
  enum End: CaseIterable, CustomTestStringConvertible {
    case closed
    case denied
    case credentials

    var testDescription: String { "\(self)" }
  }

  private func end(_ end: End) {
    let error = WireError(message: "Not you any more", type: "other")
    switch end {
    case .closed: server.close(4096, error.json.text)
    case .denied:
      server.loseSession(denied: error)
    case .credentials:
      server.close(4096, WireError.notYou("Not you any more").json.text)
    }
  }

  @Test("They go to the ledger of a scope without a log, and stay visible", arguments: End.allCases)
  func inLedger(end: End) throws {
    server.joinAtPosition(place)
    canvas.name = "sent"
    scope.flush()
    let handle = scope.modify { canvas.likes += 1 }
    // Nothing has made a change set of it.
    canvas.shapes.append(Shape())
    self.end(end)
    #expect(server.denials.count == 1 && server.engine.state(of: scope) == nil)
    #expect(handle.state == .abandoned && server.engine.pendingCount == 0)
    #expect(scope.conflicts.items.map(\.property) == ["name", "likes", nil, "shapes"])
    for item in scope.conflicts.items {
      guard case .rejected(let error) = item.reason else {
        Issue.record("\(item.reason)")
        continue
      }
      #expect(error.type == "session-ended" && error.message.contains("Not you any more"))
    }
    #expect(canvas.name == "sent" && canvas.likes == 1 && canvas.shapes.count == 1)
    #expect(server.diagnostics.contains { $0.contains("3 pending") }, "\(server.diagnostics)")
  }

  @Test("Those that the resume point of a state on its way decides are no conflict")
  func stateOnItsWay() throws {
    server.joinAtPosition(place)
    canvas.name = "accepted"
    scope.flush()
    server.loseSession()
    let fetch = try #require(
      server.takeSent().compactMap { if case .scopeFetch(let fetch) = $0 { fetch } else { nil } }
        .last)
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "e", sequence: 2), decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [], sequence: 2)])
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 1, replyTo: fetch.index, scopeIndex: 0, standing: standing)))
    canvas.likes += 1
    scope.flush()
    end(.closed)
    #expect(scope.conflicts.items.map(\.property) == ["likes"])
  }

  @Test("The conflicts of a collection share the elements that count")
  func sharedElements() {
    canvas.shapes = [Shape(), Shape()]
    scope.flush()
    server.join()
    for _ in 0..<3 { scope.modify { canvas.shapes.append(Shape()) } }
    end(.closed)
    let places = scope.conflicts.items.compactMap { item in
      if case .array(let elements)? = item.theirs {
        elements.withUnsafeBufferPointer { $0.baseAddress }
      } else {
        nil
      }
    }
    #expect(places.count == 3 && Set(places).count == 1)
  }

  @Test("They are retried once the scope is fetched again, and stay in the ledger before")
  func retried() {
    server.joinAtPosition(place)
    canvas.name = "mine"
    canvas.likes += 1
    scope.flush()
    end(.closed)
    let lost = scope.conflicts.items
    func retryInVain() {
      let handle = scope.retry(scope.conflicts.items)
      #expect(handle.changeSet.fragments.isEmpty && scope.conflicts.items == lost)
      #expect(canvas.name == "mine" && canvas.likes == 1)
    }
    retryInVain()
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    retryInVain()
    scope.modify { scope.retry([lost[0]]) }
    #expect(scope.conflicts.items == lost)
    server.grant(place)
    #expect(canvas.name == nil && canvas.likes == 0 && scope.conflicts.items == lost)
    _ = server.takeSent()
    scope.retry(lost)
    #expect(canvas.name == "mine" && canvas.likes == 1 && scope.conflicts.isEmpty)
    let sent = server.takeSyncs().flatMap(\.fragments)
    #expect(sent.map(\.properties) == [["name": "mine"]])
    #expect(sent.map(\.operations) == [["likes": [.add(1)]]])
  }

  @Test("A rejected change is not made again while no client syncs its scope")
  func retriedWithoutClient() {
    server.joinAtPosition(place)
    canvas.name = "mine"
    scope.flush()
    let index = server.takeSyncs().last?.index ?? 0
    server.reply(to: index, FragmentReply(error: .rejected("no")))
    server.engine.close()
    let items = scope.conflicts.items
    #expect(scope.retry(items).changeSet.fragments.isEmpty)
    #expect(items.count == 1 && scope.conflicts.items == items && canvas.name == nil)
  }

  @Test("A scope with a log keeps them pending, and its ledger has none")
  func withLog() throws {
    server.connect()
    try server.engine.fetch(
      scope, params: .object([:]), history: nil, now: server.now, store: { _ in }
    ) { _ in }
    canvas.name = "kept"
    scope.flush()
    server.open()
    let error = WireError(message: "no")
    server.receive(.sessionCreateReply(SessionCreateReply(error: error)))
    #expect(server.denials == [.sessionDenied(reason: "no")])
    #expect(server.engine.pendingCount == 1 && scope.conflicts.isEmpty)
  }

  @Test(
    "A scope that a server ends is left once, also if a handler that is told so closes the client")
  func closedByHandler() {
    server.joinAtPosition(place)
    canvas.name = "mine"
    scope.flush()
    server.onDiagnostic = { [unowned server] diagnostic in
      if "\(diagnostic)".contains("no longer synced") { server.engine.close() }
    }
    server.deliver([.scopeLeave(ScopeLeave(scopeIndex: 0, error: .gone("over")))])
    #expect(server.leaves == 1 && server.engine.state(of: scope) == nil)
    #expect(scope.conflicts.items.map(\.property) == ["name"])
  }

  @Test("A client that the app closes adds none to the ledger")
  func closedByApp() {
    server.joinAtPosition(place)
    canvas.name = "mine"
    scope.flush()
    server.engine.close()
    #expect(scope.conflicts.isEmpty && canvas.name == "mine")
  }

  @Test("The guess of a call is no conflict, and its caller is told")
  func call() async throws {
    server.joinAtPosition(place)
    canvas.name = "pending"
    scope.flush()
    let call = try scope.call(Like())
    end(.closed)
    #expect(scope.conflicts.items.map(\.mine) == [.value("pending")])
    await #expect(throws: ChangeSetError.self) { try await call.output() }
  }

  @Test("A change set that another client of the scope has, too, is no conflict yet")
  func ofTwoClients() {
    server.joinAtPosition(place)
    let other = ScriptedServer()
    other.connect()
    other.open()
    other.fetch(scope)
    other.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "other")))
    other.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      other.state(2, scope: scope))
    let handle = scope.modify { canvas.name = "both" }
    end(.closed)
    #expect(scope.conflicts.isEmpty && handle.state == .pending)
    other.close(4096, "over")
    #expect(scope.conflicts.items.map(\.property) == ["name"] && handle.state == .abandoned)
  }

  @Test("A change that is in no change set yet is lost as loudly when its scope is removed")
  func unsealed() {
    server.joinAtPosition(place)
    canvas.name = "no change set has it"
    server.deliver([.scopeLeave(ScopeLeave(scopeIndex: 0, error: .gone("over")))])
    #expect(server.engine.state(of: scope) == nil)
    #expect(scope.conflicts.items.map(\.property) == ["name"])
    #expect(scope.conflicts.items.map(\.reason) == [.rejected(.gone("over"))])
  }
}

extension ScriptedServer {
  /// The session expires, and the server denies the next one.
  fileprivate func loseSession(denied error: WireError) {
    close(4097)
    advance(by: .seconds(1))
    open()
    receive(.sessionCreateReply(SessionCreateReply(error: error)))
  }
}
