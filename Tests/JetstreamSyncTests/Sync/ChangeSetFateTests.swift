import Jetstream
import JetstreamServer
import Testing

@Suite("What becomes of a change set")
struct ChangeSetFateTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  /// Makes a set and gives the message that carries it.
  private func send(_ body: () -> Void) -> (fate: Fate, message: ScopeSync?) {
    let handle = scope.modify(nil, body)
    let messages = server.takeSyncs()
    #expect(messages.count == 1)
    return (Fate(handle), messages.first)
  }

  private func reply(to message: ScopeSync?, _ replies: [FragmentReply]) {
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: message?.index ?? 0, fragmentReplies: replies))
    ])
  }

  @Test("The message says what was asked for")
  func labels() throws {
    scope.modify("plain") { canvas.name = "a" }
    scope.modifyAtomically("all or nothing") { canvas.name = "b" }
    try scope.modify(procedure: "Canvas.rename") { canvas.name = "c" }
    // Without the empty set that goes in front of the one for a procedure.
    let messages = server.takeSyncs().filter { !$0.fragments.isEmpty }
    #expect(messages.map(\.atomic) == [nil, true, true])
    #expect(messages.map(\.procedure) == [nil, nil, "Canvas.rename"])
    #expect(
      messages.map { $0.fragments.map(\.properties) } == [
        [["name": "a"]], [["name": "b"]], [["name": "c"]],
      ])
  }

  @Test(
    "Each reply leads to its state once, and takes back what it names",
    arguments: [
      ([true, true], ChangeSetHandle.State.accepted), ([true, false], .partlyRejected),
      ([false, true], .partlyRejected), ([false, false], .rejected),
    ])
  func replies(_ accepted: [Bool], _ state: ChangeSetHandle.State) {
    let (fate, message) = send {
      canvas.name = "new"
      shape.x = 5
    }
    #expect(message?.fragments.map(\.className) == ["Canvas", "Shape"])
    #expect(fate.handle.state == .pending && fate.isConsistent && pending.count == 1)
    reply(to: message, accepted.map { $0 ? ok : no })
    #expect(fate.handle.state == state && fate.isConsistent)
    #expect(canvas.name == (accepted[0] ? "new" : nil) && shape.x == (accepted[1] ? 5 : 0))
    #expect(fate.handle.outcomes == accepted.map { $0 ? .accepted : .rejected(.rejected("no")) })
    #expect(
      fate.handle.rejections.map(\.fragment.uuid)
        == zip(accepted, message!.fragments)
        .filter { !$0.0 }.map(\.1.uuid))
    #expect(pending.count == 0 && server.engine.pendingCount == 0)
    // Once decided, it stays decided.
    reply(to: message, [no, no])
    #expect(fate.handle.state == state && fate.isConsistent)
    #expect(server.takeSyncs().isEmpty)
  }

  @Test("Whoever asks after the end is told at once")
  func afterTheEnd() async throws {
    let (fate, message) = send { canvas.name = "new" }
    reply(to: message, [no])
    var told: [ChangeSetError?] = []
    fate.handle.whenFinished { told.append($0) }
    #expect(told == [fate.handle.error])
    guard case .rejected(let rejections)? = fate.handle.error else {
      Issue.record("The error is \(String(describing: fate.handle.error)).")
      return
    }
    #expect(rejections.map(\.error) == [.rejected("no")])
    #expect(rejections.map(\.fragment) == fate.handle.changeSet.fragments)
    await #expect(throws: ChangeSetError.rejected(rejections)) {
      try await fate.handle.finished()
    }
  }

  @Test("The server's values take the place of one's own, and are not sent back")
  func modifications() {
    var seen: [Float] = []
    let token = shape.observeChangeImmediately(server, \.x) { _, _, new in seen.append(new) }
    defer { token.cancel() }
    let (fate, message) = send {
      shape.x = 10
      canvas.name = "new"
    }
    reply(to: message, [FragmentReply(modifications: ["x": 20, "label": "theirs"]), ok])
    #expect(shape.x == 20 && shape.label == "theirs" && canvas.name == "new")
    #expect(seen == [10, 20])
    #expect(fate.handle.outcomes == [.modified(["x": 20, "label": "theirs"]), .accepted])
    #expect(fate.handle.state == .accepted && fate.isConsistent)
    scope.flush()
    #expect(server.takeSyncs().isEmpty && !scope.hasCollectedChanges)
  }

  @Test("A later set stays in front of the server's value, which shows when it is rejected")
  func modificationsBehind() {
    let (_, first) = send { shape.x = 10 }
    let (_, second) = send { shape.x = 11 }
    reply(to: first, [FragmentReply(modifications: ["x": 20])])
    #expect(shape.x == 11)
    reply(to: second, [no])
    #expect(shape.x == 20 && pending.count == 0)
  }

  @Test(
    "A reply that does not fit takes the whole set back",
    arguments: [
      [], [FragmentReply()], [FragmentReply(error: .rejected("all of it"))],
      [FragmentReply(), FragmentReply(), FragmentReply()],
    ])
  func mismatch(_ replies: [FragmentReply]) {
    let (fate, message) = send {
      canvas.name = "new"
      shape.x = 5
    }
    reply(to: message, replies)
    #expect(fate.handle.state == .rejected && fate.isConsistent && pending.count == 0)
    #expect(canvas.name == nil && shape.x == 0)
    #expect(fate.handle.outcomes.count == 2 && server.rejections.count == 2)
  }

  @Test(
    "So does a reply that cannot be read, or that answers something else",
    arguments: [
      #"{"type":"ScopeSyncReply","index":#,"replyTo":2,"fragmentReplies":"ok"}"#,
      #"{"type":"ScopeSyncReply","index":#,"replyTo":2}"#,
      #"{"type":"ScopeSyncReply","index":#,"replyTo":2,"fragmentReplies":[{},{"error":true}]}"#,
      #"{"type":"ScopeSyncReply","index":#,"replyTo":2,"fragmentReplies":[{"modifications":1},{}]}"#,
      #"{"type":"ScopeFetchReply","index":#,"replyTo":2,"scopeIndex":0}"#,
      #"{"type":"ScopeFetchReply","index":#,"replyTo":2,"error":{"message":"no"}}"#,
    ])
  func unreadable(_ text: String) {
    let (fate, message) = send {
      canvas.name = "new"
      shape.x = 5
    }
    #expect(message?.index == 2)
    server.receive(text: text)
    #expect(fate.handle.state == .rejected && fate.isConsistent && pending.count == 0)
    #expect(canvas.name == nil && shape.x == 0)
    // The session goes on.
    let (next, other) = send { canvas.name = "next" }
    reply(to: other, [ok])
    #expect(next.handle.state == .accepted && server.disconnects == 0)
  }

  @Test("Sets come, are decided and leave, and say so")
  func queueSignals() {
    var events: [String] = []
    let handles = { (handle: ChangeSetHandle) in handle.changeSet.message ?? "-" }
    pending.onAdd.listen { events.append("add \(handles($0))") }
    pending.onStateChange.listen { events.append("state \(handles($0)) \($0.state)") }
    pending.onRemove.listen { [pending] in events.append("remove \(handles($0)) \(pending.count)") }
    let one = scope.modify("one") { shape.x = 1 }
    one.onStateChange.listen { events.append("one is \($0)") }
    let two = scope.modify("two") { shape.x = 2 }
    #expect(pending.count == 2 && pending.handles.first === one && pending.handles.last === two)
    reply(to: server.takeSyncs().first, [ok])
    #expect(
      events == [
        "add one", "add two", "one is accepted", "state one accepted", "remove one 1",
      ])
    #expect(pending.count == 1 && pending.handles.first === two)
  }

  @Test("What no call of modify has made is pending as well")
  func collected() {
    canvas.name = "new"
    scope.flush()
    #expect(pending.count == 1)
    let fate = Fate(pending.handles[0])
    reply(to: server.takeSyncs().first, [no])
    #expect(fate.handle.state == .rejected && fate.isConsistent && pending.count == 0)
    #expect(canvas.name == nil)
  }

  @Test("A rejected set does not touch what later ones have set")
  func laterSets() {
    let (_, first) = send { shape.x = 2 }
    let (_, second) = send { shape.x = 3 }
    reply(to: first, [no])
    #expect(shape.x == 3)
    reply(to: second, [no])
    #expect(shape.x == 0 && pending.count == 0)
  }

  @Test("A child that was moved is back, the same one, without having been away")
  func movedChild() {
    let (a, b, child) = (Shape(), Shape(), Shape())
    let (_, made) = send {
      canvas.shapes.append(contentsOf: [a, b])
      a.parts = [child]
      canvas.selected = a
    }
    reply(to: made, made!.fragments.map { _ in ok })
    var events: [String] = []
    child.observeDetach(server) { _, _ in events.append("detach") }
    child.observeAttach(server) { _, _ in events.append("attach") }
    let (moved, message) = send {
      b.parts.append(child)
      a.parts.remove(child)
      canvas.selected = child
      canvas.shapes.move(from: 2, to: 0)
    }
    #expect(Array(b.parts) == [child] && a.parts.isEmpty)
    reply(to: message, message!.fragments.map { _ in no })
    #expect(Array(a.parts) == [child] && b.parts.isEmpty && canvas.selected === a)
    #expect(Array(canvas.shapes) == [shape, a, b])
    #expect(moved.handle.state == .rejected && events.isEmpty && child.scope === scope)
  }

  @Test(
    "A child that was removed is back, the same one, with what it holds and what is told later"
  )
  func removedChild() {
    let child = Shape()
    let (_, made) = send { shape.parts = [child] }
    reply(to: made, made!.fragments.map { _ in ok })
    let (_, message) = send { canvas.shapes.removeAll() }
    #expect(shape.scope == nil && child.scope == nil)
    server.tell(
      SyncFragment(.change, uuid: child.uuid, className: "Shape", properties: ["x": 7]))
    reply(to: message, [no])
    #expect(Array(canvas.shapes) == [shape] && Array(shape.parts) == [child])
    #expect(child.scope === scope && child.x == 7)
  }

  @Test("What was made with a rejected set is gone")
  func madeModels() {
    let made = Shape()
    let (fate, message) = send {
      canvas.shapes.append(made)
      canvas.selected = made
    }
    reply(to: message, [no, no])
    #expect(fate.handle.state == .rejected && made.scope == nil && canvas.selected == nil)
    #expect(Array(canvas.shapes) == [shape] && scope.count == 2)
  }

  @Test("What does not meet the constraints is not sent, and is not pending")
  func constraints() {
    let before = scope.canonicalJSON
    var added = 0
    pending.onAdd.listen { _ in added += 1 }
    #expect(throws: ChangeSetError.self) {
      try scope.modify(
        procedure: "Canvas.rename",
        constraints: [Constraint(.change, "Canvas", ["name": .value("new")])]
      ) {
        canvas.name = "other"
        canvas.shapes.append(Shape())
        shape.x = 4
      }
    }
    scope.flush()
    server.advance(by: .seconds(1))
    #expect(server.takeSent().isEmpty && added == 0 && pending.count == 0)
    #expect(scope.canonicalJSON == before && shape.x == 0)
  }
}
