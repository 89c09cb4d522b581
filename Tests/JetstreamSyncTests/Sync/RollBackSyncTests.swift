import Jetstream
import JetstreamServer
import Testing

private struct Oops: Error {}

/// What is taken back here while a server has its say.
@Suite("Changes that are rolled back in a scope that a client syncs")
struct RollBackSyncTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  @Test("A removal that was rolled back leaves no old values behind", arguments: [0, 1, 2])
  func removal(way: Int) throws {
    switch way {
    case 0:
      _ = try? scope.modify {
        canvas.shapes.remove(shape)
        throw Oops()
      }
    case 1:
      #expect(throws: ChangeSetError.self) {
        try scope.modify(procedure: "p", constraints: [Constraint(.add, "Shape")]) {
          canvas.shapes.remove(shape)
        }
      }
    default:
      scope.modify {
        canvas.name = "kept"
        _ = try? scope.modify {
          canvas.shapes.remove(shape)
          throw Oops()
        }
      }
    }
    server.tell(change(shape, ["x": 9]))
    server.tell(change(canvas, ["name": "theirs"]))
    #expect(shape.x == 9 && canvas.shapes == [shape])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test(
    "A model that was changed before it was removed in a call of its own comes back as others know it"
  )
  func removalInNestedCall() {
    scope.modify {
      shape.x = 1
      _ = try? scope.modify { () throws in canvas.shapes.remove(shape) }
    }
    server.reply(to: server.takeSyncs().first?.index ?? 0, no)
    #expect(canvas.shapes == [shape] && shape.x == 0)
  }

  @Test(
    "What comes in while a call goes on is not lost when it is rolled back",
    arguments: [false, true])
  func incoming(isNested: Bool) {
    scope.pauseIncoming()
    server.tell(change(shape, ["x": 5, "y": 6]))
    _ = try? scope.modify {
      shape.x = 1
      if isNested {
        scope.modify { scope.resumeIncoming() }
      } else {
        scope.resumeIncoming()
      }
      throw Oops()
    }
    server.ticker.advance(by: .milliseconds(20))
    #expect(shape.x == 5 && shape.y == 6)
    #expect(!scope.isIncomingPaused && server.engine.checkInvariants() == [])
  }

  @Test("Fragments that are applied while a call goes on are not lost when it is rolled back")
  func applying() {
    _ = try? scope.modify {
      shape.x = 1
      canvas.selected = shape
      scope.apply([change(shape, ["x": 5]), change(canvas, ["selected": .null, "name": "theirs"])])
      #expect(shape.x == 1 && canvas.selected === shape)
      throw Oops()
    }
    #expect(shape.x == 5 && canvas.selected == nil && canvas.name == "theirs")
  }

  @Test("What the server has rejected cannot be undone")
  func undoOfRejected() {
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 1 }
    scope.modify {
      shape.y = 1
      canvas.name = "mine"
    }
    let messages = server.takeSyncs()
    let replies = messages[1].fragments.map { $0.className == "Shape" ? no : ok }
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[0].index, fragmentReplies: [no])),
      .scopeSyncReply(ScopeSyncReply(replyTo: messages[1].index, fragmentReplies: replies)),
    ])
    #expect(history.undoStack.map { $0.fragments.map(\.properties) } == [[["name": "mine"]]])
    #expect(history.undoStack.map { $0.undo.map(\.properties) } == [[["name": .null]]])
    history.undo()
    #expect(canvas.name == nil && !history.canUndo && history.canRedo)
    let undo = server.takeSyncs().first
    server.reply(to: undo?.index ?? 0, no)
    #expect(canvas.name == "mine" && !history.canRedo)
  }

  @Test("An undo and a redo that the server has rejected can be tried again")
  func rejectedUndo() {
    func decide(_ reply: FragmentReply) {
      server.reply(to: server.takeSyncs().first?.index ?? 0, reply)
    }
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 4 }
    decide(ok)
    history.undo()
    decide(no)
    #expect(shape.x == 4 && history.canUndo && !history.canRedo)
    history.undo()
    decide(ok)
    #expect(shape.x == 0 && !history.canUndo && history.canRedo)
    history.redo()
    decide(no)
    #expect(shape.x == 0 && !history.canUndo && history.canRedo)
    history.redo()
    decide(ok)
    #expect(shape.x == 4 && history.canUndo && !history.canRedo)
  }

  @Test("An atomic change set is undone and redone as a whole, and another one is not")
  func atomicUndo() {
    func decide(atomically isAtomic: Bool?) {
      let sync = server.takeSyncs().last
      #expect(sync?.fragments.count == 2 && sync?.atomic == isAtomic)
      server.reply(to: sync?.index ?? 0, ok, ok)
    }
    func change() {
      shape.x += 4
      canvas.likes += 1
    }
    let history = UndoHistory(of: scope)
    for isAtomic in [true, nil] as [Bool?] {
      if isAtomic == true {
        scope.modifyAtomically { change() }
      } else {
        scope.modify { change() }
      }
      decide(atomically: isAtomic)
      history.undo()
      decide(atomically: isAtomic)
      history.redo()
      decide(atomically: isAtomic)
    }
    #expect(shape.x == 8 && canvas.likes == 2)
  }

  @Test("An atomic change set of which a part cannot be undone is not undone at all")
  func hopelessAtomicUndo() {
    let history = UndoHistory(of: scope)
    scope.modifyAtomically {
      canvas.name = "mine"
      shape.x = 4
    }
    server.reply(to: server.takeSyncs().last?.index ?? 0, ok, ok)
    server.tell(change(canvas, ["shapes": []]))
    let report = history.undo()
    #expect(report?.isComplete == false && canvas.name == "mine")
    #expect(server.takeSyncs().isEmpty && !history.canUndo && !history.canRedo)
    scope.modify { canvas.likes += 1 }
    history.undo()
    #expect(canvas.likes == 0 && history.canRedo && server.engine.checkInvariants() == [])
  }

  @Test("A change set whose undo was rejected comes back to its place among the others")
  func rejectedUndoAmongOthers() {
    let history = UndoHistory(of: scope)
    for value in 1...3 as ClosedRange<Int> { scope.modify { shape.x = Float(value) } }
    for message in server.takeSyncs() { server.reply(to: message.index, ok) }
    history.undo()
    history.undo()
    scope.modify { shape.y = 9 }
    #expect(!history.canRedo)
    let messages = server.takeSyncs()
    for (message, reply) in zip(messages, [no, no, ok]) { server.reply(to: message.index, reply) }
    #expect(shape.x == 3 && shape.y == 9)
    let written = history.undoStack.flatMap { $0.fragments[0].properties.map(\.key) }
    #expect(written == ["x", "x", "x", "y"])
    for value in [3, 2, 1, 0] as [Float] {
      #expect(shape.x == value)
      history.undo()
      if value == 3 { history.undo() }
    }
  }

  @Test(
    "An undo that is rejected after it was redone leaves one change set to undo",
    arguments: [false, true])
  func rejectedUndoThatIsRedone(isRedoAccepted: Bool) {
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 4 }
    history.undo()
    history.redo()
    let replies = [ok, no, isRedoAccepted ? ok : no]
    for (message, reply) in zip(server.takeSyncs(), replies) {
      server.reply(to: message.index, reply)
    }
    #expect(shape.x == 4 && history.undoStack.count == 1 && !history.canRedo)
    history.undo()
    #expect(shape.x == 0 && !history.canUndo && history.canRedo)
  }

  @Test(
    "A redo that is rejected after it was undone leaves one change set to redo",
    arguments: [false, true])
  func rejectedRedoThatIsUndone(isUndoAccepted: Bool) {
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 4 }
    history.undo()
    history.redo()
    history.undo()
    let replies = [ok, ok, no, isUndoAccepted ? ok : no]
    for (message, reply) in zip(server.takeSyncs(), replies) {
      server.reply(to: message.index, reply)
    }
    #expect(shape.x == 0 && !history.canUndo && history.redoStack.count == 1)
    history.redo()
    #expect(shape.x == 4 && history.canUndo && !history.canRedo)
  }

  @Test("An undo that is rejected after it was redone stays behind what was changed since")
  func rejectedUndoBehindAnother() {
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 4 }
    history.undo()
    history.redo()
    scope.modify { shape.y = 9 }
    for (message, reply) in zip(server.takeSyncs(), [ok, no, ok, ok]) {
      server.reply(to: message.index, reply)
    }
    #expect(history.undoStack.flatMap { $0.fragments[0].properties.map(\.key) } == ["x", "y"])
    history.undo()
    history.undo()
    #expect(shape.x == 0 && shape.y == 0 && !history.canUndo)
  }

  @Test("When everything behind a change set is rejected, it is what can be undone")
  func rejectedChain() {
    let history = UndoHistory(of: scope)
    let handle = scope.modify { shape.x = 4 }
    history.undo()
    history.redo()
    history.undo()
    for (message, reply) in zip(server.takeSyncs(), [ok, no, no, no]) {
      server.reply(to: message.index, reply)
    }
    #expect(shape.x == 4 && !history.canRedo)
    #expect(history.undoStack.map(\.id) == [handle.changeSet.id])
  }

  @Test("What is redone in vain does not come back once there is something new")
  func rejectedRedo() {
    let history = UndoHistory(of: scope)
    scope.modify { shape.x = 4 }
    history.undo()
    for message in server.takeSyncs() { server.reply(to: message.index, ok) }
    history.redo()
    scope.modify { shape.y = 9 }
    let messages = server.takeSyncs()
    for (message, reply) in zip(messages, [no, ok]) { server.reply(to: message.index, reply) }
    #expect(shape.x == 0 && !history.canRedo)
    #expect(history.undoStack.map { $0.fragments[0].properties.map(\.key) } == [["y"]])
  }
}
