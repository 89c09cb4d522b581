import Jetstream
import JetstreamServer
import Testing

/// Change sets that are made by whoever is told of other changes.
@Suite("Change sets made in callbacks")
struct ChangeSetReentryTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  private func names(_ sets: [ChangeSet]) -> [JSONValue?] {
    sets.map { $0.fragments.first?.properties["name"] }
  }

  @Test("A set that a listener of onChanges makes comes behind the one that it was told of")
  func listener() {
    var made: Fate?
    var before: [ChangeSet] = []
    var behind: [ChangeSet] = []
    scope.onChanges.listen { before.append($0) }
    scope.onChanges.listen { [scope, canvas] set in
      guard made == nil else { return }
      made = Fate(scope.modify("second") { canvas.name = "second" })
    }
    scope.onChanges.listen { behind.append($0) }
    let first = Fate(scope.modify("first") { canvas.name = "first" })
    #expect(names(before) == ["first", "second"] && names(behind) == ["first", "second"])
    #expect(server.engine.checkInvariants() == [])
    let messages = server.takeSyncs()
    #expect(
      messages.map { $0.fragments.first?.properties } == [
        ["name": "first"], ["name": "second"],
      ])
    #expect(pending.count == 2 && made?.handle.state == .pending)
    server.reply(to: messages[0].index, ok)
    #expect(canvas.name == "second")
    server.reply(to: messages[1].index, no)
    #expect(canvas.name == "first" && first.handle.state == .accepted)
    #expect(made?.handle.state == .rejected && made?.isConsistent == true && first.isConsistent)
  }

  @Test("Where no client syncs the scope, such a set is completed when it has come out")
  func localListener() {
    let canvas = Canvas()
    let scope = Scope(name: "Local", root: canvas, ticker: .manual())
    var made: Fate?
    var sets: [ChangeSet] = []
    scope.onChanges.listen { [scope, canvas] set in
      if made == nil { made = Fate(scope.modify { canvas.name = "second" }) }
    }
    scope.onChanges.listen { sets.append($0) }
    let first = Fate(scope.modify { canvas.name = "first" })
    #expect(names(sets) == ["first", "second"])
    #expect(first.handle.state == .accepted && first.isConsistent)
    #expect(made?.handle.state == .accepted && made?.isConsistent == true)
    #expect(made?.handle.changeSet == sets.last)
  }

  @Test("A set that is made when another one is decided, or comes, is one of its own")
  func signals() {
    var made: [Fate] = []
    pending.onAdd.listenOnce { [scope, canvas] _ in
      made.append(Fate(scope.modify { canvas.name = "on add" }))
    }
    let first = scope.modify { canvas.name = "first" }
    #expect(server.engine.checkInvariants() == [])
    first.onStateChange.listen { [scope, canvas] _ in
      made.append(Fate(scope.modify { canvas.name = "on error" }))
    }
    let messages = server.takeSyncs()
    #expect(messages.map { $0.fragments.first?.properties["name"] } == ["first", "on add"])
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[0].index, fragmentReplies: [no])),
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[1].index, fragmentReplies: [ok])),
    ])
    #expect(made.map(\.handle.state) == [.accepted, .pending] && pending.count == 1)
    #expect(canvas.name == "on error" && server.engine.checkInvariants() == [])
    server.reply(to: server.takeSyncs().first?.index ?? 0, no)
    #expect(canvas.name == "on add" && made.allSatisfy(\.isConsistent))
  }

  @Test(
    "A set that an observer makes while others' changes are applied stays in front of them",
    arguments: [true, false])
  func whileApplying(isAccepted: Bool) {
    var made: Fate?
    let token = shape.observeChangeImmediately(server, \.x) { [scope, canvas, shape] _, _, _ in
      guard made == nil else { return }
      made = Fate(
        scope.modify {
          canvas.name = "mine"
          shape.label = "mine"
          shape.y = 1
        })
    }
    defer { token.cancel() }
    // Before and behind the property whose observer makes the set.
    server.tell(
      change(shape, ["label": "theirs", "x": 5, "y": 5]), change(canvas, ["name": "theirs"]))
    #expect(shape.label == "mine" && shape.x == 5 && shape.y == 1 && canvas.name == "mine")
    #expect(server.engine.checkInvariants() == [])
    // There is no set in the middle of what others did.
    #expect(made?.handle.changeSet.fragments == [] && pending.count == 0)
    scope.flush()
    let message = server.takeSyncs().first
    let reply = isAccepted ? ok : no
    server.reply(to: message?.index ?? 0, reply, reply)
    #expect(
      made?.isConsistent == true && made?.handle.state == (isAccepted ? .accepted : .rejected))
    #expect(shape.label == (isAccepted ? "mine" : "theirs") && shape.y == (isAccepted ? 1 : 5))
    #expect(canvas.name == (isAccepted ? "mine" : "theirs") && pending.count == 0)
  }

  @Test("The same for a collection: both changes are there")
  func collectionWhileApplying() {
    let mine = Shape()
    var isMade = false
    let token = canvas.observeChangeImmediately(server, \.name) { [scope, canvas] _, _, _ in
      guard !isMade else { return }
      isMade = true
      scope.modify { canvas.shapes.append(mine) }
    }
    defer { token.cancel() }
    let theirs = Shape()
    server.tell(
      change(canvas, ["name": "theirs"]),
      SyncFragment(.add, uuid: theirs.uuid, className: "Shape", properties: ["x": 3]),
      change(
        canvas, ["shapes": [.string(shape.uuid.wireText), .string(theirs.uuid.wireText)]]))
    #expect(canvas.shapes.map(\.x) == [0, 3, 0] && canvas.shapes.contains(mine))
    #expect(server.engine.checkInvariants() == [])
    scope.flush()
    let message = server.takeSyncs().first
    server.reply(to: message?.index ?? 0, no, no)
    #expect(canvas.shapes.map(\.x) == [0, 3] && mine.scope == nil)
  }

  @Test("A set that is made while a pending value gives way to a rejection")
  func whileReverting() {
    scope.modify { shape.x = 1 }
    scope.modify {
      shape.y = 1
      shape.label = "pending"
    }
    let messages = server.takeSyncs()
    var made: Fate?
    let token = shape.observeChangeImmediately(server, \.x) { [scope, shape] _, _, _ in
      guard made == nil else { return }
      made = Fate(
        scope.modify {
          shape.x = 9
          shape.y = 9
        })
    }
    defer { token.cancel() }
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[0].index, fragmentReplies: [no])),
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[1].index, fragmentReplies: [no])),
    ])
    #expect(shape.x == 9 && shape.y == 9 && shape.label == "")
    #expect(server.engine.checkInvariants() == [])
    scope.flush()
    server.reply(to: server.takeSyncs().first?.index ?? 0, no)
    #expect(shape.x == 0 && shape.y == 0 && made?.handle.state == .rejected)
  }

  @Test("Pausing ends within a listener of onChanges: its set stays in front of what has waited")
  func resumeInListener() {
    scope.pauseIncoming()
    server.tell(change(canvas, ["name": "theirs"]), change(shape, ["x": 5]))
    scope.onChanges.listenOnce { [scope] _ in scope.resumeIncoming() }
    scope.modify { canvas.name = "mine" }
    #expect(canvas.name == "mine" && shape.x == 5 && server.engine.checkInvariants() == [])
    server.reply(to: server.takeSyncs().first?.index ?? 0, no)
    #expect(canvas.name == "theirs")
  }

  @Test("A set that is made between two messages of a frame stays in front of what came before it")
  func withinAFrame() {
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    let mine = Shape()
    server.engine.fetch(other, params: .null, now: server.now) { [scope, canvas] _ in
      scope.modify {
        canvas.name = "mine"
        canvas.shapes.append(mine)
      }
    }
    let fetch = server.takeSent().last?.index ?? 0
    let theirs = Shape()
    server.deliver([
      .scopeSync(
        ScopeSync(
          scopeIndex: 0,
          fragments: [
            SyncFragment(.add, uuid: theirs.uuid, className: "Shape", properties: ["x": 3]),
            change(
              canvas,
              [
                "name": "theirs",
                "shapes": [.string(shape.uuid.wireText), .string(theirs.uuid.wireText)],
              ]),
          ])),
      .scopeFetchReply(ScopeFetchReply(replyTo: fetch, error: .rejected("no"))),
    ])
    #expect(canvas.name == "mine" && canvas.shapes.map(\.x) == [0, 3, 0])
    #expect(canvas.shapes.last === mine && server.engine.checkInvariants() == [])
    server.reply(to: server.takeSyncs().first?.index ?? 0, no, no)
    #expect(canvas.name == "theirs" && canvas.shapes.map(\.x) == [0, 3])
  }
}
