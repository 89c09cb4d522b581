import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A frame with a full state and other messages is one change, like any other frame: observers are called once, for the
/// differences after it.
@Suite("Full states among the messages of a frame")
struct StateBatchTests: ScriptedSuite {
  /// Counts the calls of observers.
  private final class Calls: MembershipObserver {
    var changes: [String] = []
    var ticks = 0
    var moves = 0

    func modelEntered(_ model: ModelObject) { moves += 1 }
    func modelLeft(_ model: ModelObject) { moves += 1 }
  }

  let server = ScriptedServer()
  let shape = Shape()
  private let calls = Calls()

  init() {
    canvas.name = "before"
    shape.label = "one"
    shape.parts = [Shape()]
    canvas.named["a"] = Shape()
    joinWithShape()
    for model in [canvas, shape] as [ModelObject] {
      model.signals.onPropertyChange.listen(calls) { $0.changes.append($1.key) }
    }
    canvas.observeChange(calls, \.name, isolation: server.ticker.isolation) { calls, _, _ in
      calls.ticks += 1
    }
    scope.addMembershipObserver(calls)
  }

  /// A full state: what the scope shows now, changed by `change`. The root comes first, then the shape.
  private func state(at scopeIndex: Int = 0, _ change: (inout [SyncFragment]) -> Void) -> Message {
    var fragments = scope.fullState()
    if let at = fragments.firstIndex(where: { $0.uuid == shape.uuid }) { fragments.swapAt(1, at) }
    change(&fragments)
    return .scopeState(
      ScopeState(
        index: 0, scopeIndex: scopeIndex, rootUUID: fragments[0].uuid, fragments: fragments))
  }

  private func sync(_ fragments: SyncFragment...) -> Message {
    .scopeSync(ScopeSync(scopeIndex: 0, fragments: fragments))
  }

  private func expectCalls(
    _ changes: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    server.advance(by: .milliseconds(100))
    #expect(calls.changes == changes, sourceLocation: sourceLocation)
    #expect(calls.ticks == (changes.contains("name") ? 1 : 0), sourceLocation: sourceLocation)
    #expect(server.engine.checkInvariants() == [], sourceLocation: sourceLocation)
  }

  @Test("A change set that sets again what the state in front of it resets calls no observer")
  func setAgain() {
    server.deliver([
      state {
        $0[0].properties["name"] = .null
        $0[1].properties["label"] = "older"
      },
      sync(change(canvas, ["name": "before"]), change(shape, ["label": "one"])),
    ])
    #expect(canvas.name == "before" && shape.label == "one")
    expectCalls([])
  }

  @Test("A state resets what the change set in front of it has changed, and calls no observer")
  func resetAgain() {
    let before = state { _ in }
    server.deliver([sync(change(canvas, ["name": "between"])), before])
    #expect(canvas.name == "before")
    expectCalls([])
  }

  @Test("Of two states and the change sets behind each, observers are told the end")
  func twoStates() {
    let later = state { $0[0].properties["name"] = "third" }
    server.deliver([
      state { $0[0].properties["name"] = "first" }, sync(change(canvas, ["name": "second"])),
      later, sync(change(canvas, ["name": "fourth"])),
    ])
    #expect(canvas.name == "fourth")
    expectCalls(["name"])
  }

  @Test(
    "A model that the state does not have and the change set behind it adds is the same, and has not left"
  )
  func addedAgain() {
    let part = shape.parts[0]
    let addition = SyncFragment(
      .add, uuid: part.uuid, className: "Shape",
      properties: ["x": 0, "y": 0, "label": "again", "tags": [], "parts": []])
    server.deliver([
      state {
        $0[1].properties["parts"] = []
        $0.removeAll { $0.uuid == part.uuid }
      },
      sync(
        addition,
        SyncFragment(
          .change, uuid: shape.uuid, className: "Shape", properties: [:],
          operations: ["parts": [.insert(part.uuid, .end)]])),
    ])
    #expect(shape.parts.count == 1 && shape.parts[0] === part && part.label == "again")
    expectCalls([])
    #expect(calls.moves == 0)
  }

  @Test("Operations behind a state apply to its values", arguments: [true, false])
  func operations(isNamed: Bool) {
    canvas.likes = 7
    scope.flush()
    server.reply(to: server.takeSent().last!.index, ok)
    calls.changes = []
    let other = Shape()
    server.deliver([
      state {
        $0[0].properties["likes"] = isNamed ? 3 : nil
        $0[0].properties["shapes"] = []
        $0[0].properties["hidden"] = .array([.string(shape.uuid.wireText)])
      },
      sync(
        SyncFragment(
          .add, uuid: other.uuid, className: "Shape",
          properties: ["x": 0, "y": 0, "label": "other", "tags": [], "parts": []]),
        SyncFragment(
          .change, uuid: canvas.uuid, className: "Canvas", properties: ["named/a": .null],
          operations: [
            "likes": [.add(2)], "shapes": [.insert(other.uuid, .end)],
          ])),
    ])
    #expect(canvas.likes == (isNamed ? 5 : 2))
    #expect(canvas.shapes.map(\.label) == ["other"] && canvas.hidden.first === shape)
    #expect(canvas.named["a"] == nil)
    #expect(calls.changes.sorted() == ["hidden", "likes", "named", "shapes"])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A pending change that is decided behind a state shows what counts in the end")
  func decided() {
    canvas.name = "mine"
    scope.flush()
    let accepted = server.takeSent().last!.index
    server.advance(by: .milliseconds(100))
    (calls.changes, calls.ticks) = ([], 0)
    server.deliver([
      state { $0[0].properties["name"] = "theirs" },
      .scopeSyncReply(ScopeSyncReply(replyTo: accepted, fragmentReplies: [ok])),
    ])
    #expect(canvas.name == "mine" && server.engine.pendingCount == 0)
    expectCalls([])

    canvas.name = "mine again"
    scope.flush()
    let rejected = server.takeSent().last!.index
    server.advance(by: .milliseconds(100))
    (calls.changes, calls.ticks) = ([], 0)
    server.deliver([
      state { $0[0].properties["name"] = "theirs" },
      sync(change(canvas, ["name": "later"])),
      .scopeSyncReply(ScopeSyncReply(replyTo: rejected, fragmentReplies: [no])),
    ])
    #expect(canvas.name == "later" && server.engine.pendingCount == 0)
    expectCalls(["name"])
  }

  @Test("A fetch completes once the whole frame with its state is applied")
  func completion() {
    let copy = Canvas()
    let other = Scope(name: "Other", root: copy, ticker: server.ticker)
    var shown: [String?] = []
    server.engine.fetch(other, params: [:], now: server.now) { _ in shown.append(copy.name) }
    let fetch = server.takeSent().last!.index
    let root = UUID()
    func fragment(_ name: JSONValue) -> SyncFragment {
      SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": name])
    }
    server.deliver([
      .scopeFetchReply(ScopeFetchReply(replyTo: fetch, scopeIndex: 1)),
      .scopeState(
        ScopeState(index: 0, scopeIndex: 1, rootUUID: root, fragments: [fragment("state")])),
      .scopeSync(ScopeSync(scopeIndex: 1, fragments: [fragment("behind it")])),
    ])
    #expect(shown == ["behind it"])
  }
}

/// A callback of one scope may change another scope whose part of the same frame is not applied yet.
@Suite("Change sets that are made while a full state is in the batch")
struct StateBatchEditTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()
  private let first = Scope(name: "First", root: Canvas(), ticker: Ticker.manual())

  /// Fetches the canvas, which has its state, after another scope, which has none yet. Calls `edit` when that one has
  /// its own.
  private func join(_ edit: @escaping () -> Void) {
    canvas.shapes = [shape]
    scope.flush()
    server.connect()
    server.open()
    server.engine.fetch(first, params: [:], now: server.now) { _ in edit() }
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret")))
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      .scopeFetchReply(ScopeFetchReply(index: 2, replyTo: 2, scopeIndex: 1)),
      server.state(3, at: 1))
  }

  /// Receives a frame with a state of the canvas, a change set behind it, and the state of the other scope, so that the
  /// edit happens while the canvas's state is in the batch.
  private func receive(_ index: Int, _ fragments: [SyncFragment], _ behind: SyncFragment...) {
    server.receive(
      .scopeState(
        ScopeState(
          index: index, scopeIndex: 1, rootUUID: fragments[0].uuid, fragments: fragments)),
      .scopeSync(ScopeSync(index: index + 1, scopeIndex: 1, fragments: behind)),
      server.state(index + 2, scope: first, at: 0))
    #expect(server.engine.checkInvariants() == [])
  }

  private func answer(_ index: Int, _ replies: [FragmentReply]) {
    let sent = server.takeSent().last!.index
    server.receive(
      .scopeSyncReply(ScopeSyncReply(index: index, replyTo: sent, fragmentReplies: replies)))
    #expect(server.engine.pendingCount == 0 && server.engine.checkInvariants() == [])
  }

  @Test(
    "A change set shows its values in front of the state's, which are shown if it is rejected",
    arguments: [true, false])
  func changed(isAccepted: Bool) {
    join { [canvas, scope] in
      canvas.name = "mine"
      canvas.likes += 1
      canvas.hidden.append(canvas.shapes[0])
      scope.flush()
    }
    var state = scope.fullState()
    state[0].properties["name"] = "theirs"
    state[0].properties["likes"] = 4
    receive(
      4, state,
      SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
        operations: ["likes": [.add(1)]]))
    #expect(canvas.name == "mine" && canvas.likes == 1 && canvas.hidden.first === shape)
    answer(7, [isAccepted ? ok : no])
    #expect(canvas.name == (isAccepted ? "mine" : "theirs"))
    #expect(canvas.likes == (isAccepted ? 1 : 5) && canvas.hidden.isEmpty == !isAccepted)
  }

  @Test(
    "A model that a change set puts back has the state's values but for those that were changed")
  func putBack() {
    join { [canvas, scope, shape] in
      canvas.hidden.append(shape)
      shape.x = 4
      scope.flush()
    }
    let state = scope.fullState()
    canvas.shapes.removeAll()
    scope.flush()
    let removal = server.takeSent().last!.index
    var theirs = state
    theirs[1].properties["label"] = "theirs"
    receive(
      4, theirs, SyncFragment(.change, uuid: shape.uuid, className: "Shape", properties: ["y": 3]))
    #expect(canvas.hidden.first === shape && canvas.shapes.isEmpty)
    #expect(shape.label == "theirs" && shape.x == 4 && shape.y == 3)
    server.receive(
      .scopeSyncReply(ScopeSyncReply(index: 7, replyTo: removal, fragmentReplies: [ok])))
    answer(8, [ok, ok])
    #expect(canvas.hidden.first === shape && shape.x == 4)
  }
}
