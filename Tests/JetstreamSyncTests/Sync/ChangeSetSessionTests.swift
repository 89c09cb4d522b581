import Jetstream
import JetstreamServer
import Testing

/// Change sets that meet with the start, the loss and the end of a session.
@Suite("Change sets and sessions")
struct ChangeSetSessionTests {
  private let server = ScriptedServer()
  private let ok = FragmentReply()
  private let no = FragmentReply(error: .rejected("no"))

  private var canvas: Canvas { server.canvas }
  private var scope: Scope { server.scope }
  private var pending: PendingChangeSets { scope.pendingChangeSets }

  /// Everything up to the state, which stays away.
  private func connectWithoutState() {
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret")))
    _ = server.takeSent()
  }

  private func state(_ properties: JSONObject) -> [SyncFragment] {
    [SyncFragment(.change, uuid: canvas.uuid, className: "Canvas", properties: properties)]
  }

  // MARK: Before the state, offline, lost sessions

  @Test("A set that was made before the state came is sent behind it, and decided")
  func beforeTheState() {
    connectWithoutState()
    let first = Fate(scope.modifyAtomically { canvas.name = "early" })
    let second = Fate(scope.modify { canvas.shapes.append(Shape()) })
    #expect(server.takeSent().isEmpty && pending.count == 2)
    let theirs = Canvas()
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: theirs.uuid,
          fragments: [
            SyncFragment(
              .change, uuid: theirs.uuid, className: "Canvas", properties: ["name": "theirs"])
          ])))
    #expect(canvas.uuid == theirs.uuid && canvas.name == "early" && canvas.shapes.count == 1)
    #expect(
      first.handle.changeSet.fragments.map(\.uuid) == [theirs.uuid]
        && first.handle.changeSet.isAtomic)
    let messages = server.takeSyncs()
    #expect(messages.map(\.atomic) == [true, nil])
    #expect(messages.first?.fragments.map(\.uuid) == [theirs.uuid])
    server.reply(to: messages[0].index, no)
    server.reply(to: messages[1].index, ok, ok)
    #expect(first.handle.state == .rejected && second.handle.state == .accepted)
    #expect(first.isConsistent && second.isConsistent && pending.count == 0)
    #expect(canvas.name == "theirs" && canvas.shapes.count == 1)
  }

  @Test("A state that does not name a property leaves what is pending in front of its default")
  func stateWithoutProperty() {
    server.join()
    scope.modify { canvas.name = "mine" }
    server.replaceSession(state(["shapes": []]))
    #expect(canvas.name == "mine" && server.engine.checkInvariants() == [])
    let message = server.takeSyncs().last
    server.reply(to: message?.index ?? 0, no)
    #expect(canvas.name == nil)
  }

  @Test("A set of a lost session is sent again, as it was meant, and decided once")
  func lostSession() throws {
    server.join()
    let sets = [
      Fate(scope.modify { canvas.name = "a" }), Fate(scope.modifyAtomically { canvas.name = "b" }),
      Fate(try scope.modify(procedure: "Canvas.rename") { canvas.name = "c" }),
    ]
    // Without the empty sets that go in front of the one for a procedure.
    #expect(server.takeSyncs().filter { !$0.fragments.isEmpty }.count == 3)
    server.replaceSession(state(["name": "theirs"]))
    let again = server.takeSyncs().filter { !$0.fragments.isEmpty }
    #expect(again.map(\.atomic) == [nil, true, true])
    #expect(again.map(\.procedure) == [nil, nil, "Canvas.rename"])
    #expect(sets.allSatisfy { $0.handle.state == .pending } && pending.count == 3)
    for (message, reply) in zip(again, [ok, no, ok]) { server.reply(to: message.index, reply) }
    #expect(sets.map(\.handle.state) == [.accepted, .rejected, .accepted])
    #expect(sets.allSatisfy(\.isConsistent) && pending.count == 0 && canvas.name == "c")
  }

  @Test("Sets that are made offline wait, and an atomic one is sent as one")
  func offline() {
    server.join()
    server.close()
    let fate = Fate(
      scope.modifyAtomically {
        canvas.name = "offline"
        canvas.shapes.append(Shape())
      })
    #expect(server.takeSent().isEmpty && fate.handle.state == .pending)
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    let messages = server.takeSyncs()
    #expect(messages.map(\.atomic) == [true] && messages.first?.fragments.count == 2)
    server.reply(to: messages.first?.index ?? 0, no, no)
    #expect(fate.handle.state == .rejected && canvas.name == nil && canvas.shapes.isEmpty)
  }

  @Test("A decision that comes while the scope is paused waits with everything else")
  func paused() {
    server.join()
    let fate = Fate(scope.modify { canvas.name = "a" })
    let message = server.takeSyncs().first
    scope.pauseIncoming()
    server.reply(to: message?.index ?? 0, no)
    #expect(fate.handle.state == .pending && canvas.name == "a" && pending.count == 1)
    scope.resumeIncoming()
    #expect(fate.handle.state == .rejected && fate.isConsistent && canvas.name == nil)
  }

  @Test("Closing abandons what is not decided; it stays visible")
  func close() {
    server.join()
    let fate = Fate(scope.modify { canvas.name = "a" })
    var left = 0
    pending.onRemove.listen { _ in left += 1 }
    server.engine.close()
    #expect(fate.handle.state == .abandoned && fate.isConsistent)
    #expect(
      fate.handle.error
        == .abandoned(reason: "\(SyncError.sessionClosed(reason: "it was closed here"))"))
    #expect(pending.count == 0 && left == 1 && canvas.name == "a")
    // Nobody syncs the scope any more.
    #expect(scope.modify { canvas.name = "b" }.state == .accepted && pending.count == 0)
  }

  @Test("A scope that is denied abandons what was made meanwhile")
  func denied() {
    connectWithoutState()
    let fate = Fate(scope.modify { canvas.name = "a" })
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, error: .rejected("not yours"))))
    #expect(fate.handle.state == .abandoned && fate.isConsistent && pending.count == 0)
    #expect(canvas.name == "a")
  }

  @Test("So does a state that does not fit, and a session that is denied")
  func wrongState() {
    connectWithoutState()
    let fate = Fate(scope.modify { canvas.name = "a" })
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      .scopeState(
        ScopeState(index: 2, scopeIndex: 0, rootUUID: canvas.uuid, fragments: [])))
    #expect(fate.handle.state == .abandoned && fate.isConsistent)
    // In the same session, a server of version 1 would send the scope twice.
    server.fetch()
    server.advance(by: .seconds(1))
    server.open()
    let other = Fate(scope.modify { canvas.name = "b" })
    server.close(4096, WireError.rejected("banned").json.text)
    #expect(other.handle.state == .abandoned && other.isConsistent && pending.count == 0)
  }

  @Test("Letting go of the client abandons")
  func released() {
    server.join()
    let fate = Fate(scope.modify { canvas.name = "a" })
    server.release()
    #expect(fate.handle.state == .abandoned && fate.isConsistent && pending.count == 0)
    #expect(scope.modify { canvas.name = "b" }.state == .accepted)
  }

  /// A client of the same scope at another server.
  private func otherClient() -> ScriptedServer {
    let other = ScriptedServer()
    other.connect()
    other.open()
    other.fetch(scope)
    other.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "other")))
    other.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      other.state(2, scope: scope))
    return other
  }

  @Test("Two clients of one scope: the first decision counts, and only the last to go abandons")
  func twoClients() {
    server.join()
    let other = otherClient()
    let first = Fate(scope.modify { canvas.name = "a" })
    let second = Fate(scope.modify { canvas.name = "b" })
    let third = Fate(scope.modify { canvas.name = "c" })
    let messages = server.takeSyncs()
    #expect(messages.count == 3 && other.takeSyncs().count == 3 && pending.count == 3)
    server.reply(to: messages[0].index, ok)
    #expect(first.handle.state == .accepted && pending.count == 2)
    other.engine.close()
    #expect(second.handle.state == .pending && pending.count == 2)
    server.reply(to: messages[1].index, no)
    #expect(second.handle.state == .rejected)
    server.engine.close()
    #expect(third.handle.state == .abandoned && pending.count == 0)
    #expect(first.isConsistent && second.isConsistent && third.isConsistent)
  }

  @Test("Two clients of one scope: a pause holds back the messages of both, until its end")
  func pausedTwice() {
    server.join()
    let other = otherClient()
    let root = canvas.uuid
    func change(_ properties: JSONObject) -> SyncFragment {
      SyncFragment(.change, uuid: root, className: "Canvas", properties: properties)
    }
    scope.pauseIncoming()
    server.tell(change(["name": "a"]))
    other.tell(change(["likes": 1]))
    #expect(canvas.name == nil && canvas.likes == 0)
    scope.resumeIncoming()
    #expect(canvas.name == "a" && canvas.likes == 1)
    server.engine.close()
    scope.pauseIncoming()
    other.tell(change(["likes": 2]))
    scope.resumeIncoming()
    #expect(canvas.likes == 2)
  }

  @Test("What came in the frame in which the app closes the client is decided")
  func closeWithinAFrame() {
    server.join()
    let fate = Fate(scope.modify { canvas.name = "a" })
    let message = server.takeSyncs().first
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    server.engine.fetch(other, params: .null, now: server.now) { [server] _ in server.engine.close()
    }
    let fetch = server.takeSent().last?.index ?? 0
    server.deliver([
      .scopeSyncReply(
        ScopeSyncReply(replyTo: message?.index ?? 0, fragmentReplies: [ok])),
      .scopeFetchReply(ScopeFetchReply(replyTo: fetch, error: .rejected("no"))),
    ])
    #expect(fate.handle.state == .accepted && fate.isConsistent && pending.count == 0)
  }

  @Test("A state in the frame of a reply does not swallow the decision")
  func stateBehindAReply() {
    server.join()
    let fate = Fate(scope.modify { canvas.name = "a" })
    let message = server.takeSyncs().first
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: message?.index ?? 0, fragmentReplies: [no])),
      .scopeState(
        ScopeState(scopeIndex: 0, rootUUID: canvas.uuid, fragments: state(["name": "theirs"]))),
    ])
    #expect(fate.handle.state == .rejected && fate.isConsistent && canvas.name == "theirs")
    #expect(server.rejections.count == 1)
  }
}

@Suite("Awaiting a change set")
@MainActor struct ChangeSetAwaitTests {
  @Test("Whoever awaits the end is told")
  func awaiting() async {
    let server = ScriptedServer()
    server.join()
    let decided = server.scope.modify { server.canvas.name = "a" }
    let message = server.takeSyncs().first
    let undecided = server.scope.modify { server.canvas.name = "b" }
    let ends = [decided, undecided].map { handle in
      Task { @MainActor () -> ChangeSetError? in
        do throws(ChangeSetError) { try await handle.finished() } catch { return error }
        return nil
      }
    }
    await Task.yield()
    server.reply(to: message?.index ?? 0, FragmentReply())
    server.engine.close()
    let first = await ends[0].value
    let second = await ends[1].value
    #expect(first == nil && second == undecided.error && undecided.state == .abandoned)
  }
}
