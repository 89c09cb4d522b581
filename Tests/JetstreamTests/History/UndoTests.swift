import Foundation
import Testing

@testable import Jetstream

/// Taking changes back, and doing them again.
@Suite(.paced) struct UndoTests {
  let root = Node("root")
  let scope: Scope
  let history: UndoHistory

  init() {
    scope = manualScope(root)
    history = UndoHistory(of: scope)
  }

  private final class Entry: ModelObject {
    @Property var edited = Date(timeIntervalSinceReferenceDate: 0)
    @Property var dates: Set<Date> = []
  }

  @Test("A date goes back and forth, whose last bit the seconds since 1970 do not have")
  func dates() {
    let entry = Entry()
    let scope = manualScope(entry)
    let history = UndoHistory(of: scope)
    let date = Date(timeIntervalSinceReferenceDate: 7e8 + 0x1p-23)
    entry.edited = date
    scope.flush()
    entry.dates = [date]
    scope.flush()
    // Written twice, it has its old value again.
    #expect(
      scope.changeSets {
        entry.edited = Date(timeIntervalSinceReferenceDate: 5)
        entry.edited = date
        entry.dates = []
        entry.dates = [date]
      }.isEmpty)
    history.undo()
    #expect(entry.dates.isEmpty)
    history.undo()
    #expect(entry.edited == Date(timeIntervalSinceReferenceDate: 0))
    history.redo()
    history.redo()
    #expect(entry.dates.count == 1 && Date._isSame(entry.edited, date))
  }

  @Test("As many change sets can be redone as can be undone, and the oldest are dropped")
  func redoLimit() {
    let history = UndoHistory(of: scope, limit: 3)
    for number in 1...5 {
      scope.modify(author: "\(number)") { root.number = number }
      history.undo(by: "\(number)")
    }
    #expect(history.redoStack.count == 3 && history.redo(by: "2") == nil)
    history.redo()
    #expect(root.number == 5 && history.redo() != nil && history.redo() != nil)
    #expect(history.redo() == nil)
  }

  @Test("Values, references and collections go back and forth")
  func backAndForth() {
    let (a, b) = (Node("a"), Node("b"))
    root.items = [a, b]
    scope.flush()
    root.number = 5
    root.left = a
    scope.flush()
    root.items.move(from: 0, to: 1)
    root.items.remove(b)
    scope.flush()
    #expect(history.undoStack.count == 3)
    history.undo()
    #expect(root.items == [a, b] && root.number == 5)
    history.undo()
    #expect(root.items == [a, b] && root.number == 0 && root.left == nil)
    history.undo()
    #expect(root.items.isEmpty && a.scope == nil)
    #expect(!history.canUndo && history.undo() == nil)
    history.redo()
    #expect(root.items == [a, b])
    history.redo()
    history.redo()
    #expect(root.items == [a] && root.left === a && root.number == 5)
    #expect(!history.canRedo && history.redo() == nil)
  }

  @Test(
    "A new change puts an end to what could be done again; what is collected is the first to go"
  )
  func newChange() {
    root.number = 1
    scope.flush()
    history.undo()
    #expect(history.canRedo)
    root.number = 2
    #expect(!history.canRedo && history.canUndo)
    history.undo()
    #expect(root.number == 0)
    history.clear()
    #expect(!history.canUndo && !history.canRedo)
  }

  @Test("What observers write meanwhile is not taken for what was taken back")
  func observersWrite() {
    let listener = Listener()
    root.observeChange(listener, \.label, isolation: here()) { [root] _ in root.number += 1 }
    root.label = "a"
    history.undo()
    #expect(root.label == "root")
    #expect(history.redoStack.map { $0.fragments.map(\.properties) } == [[["label": "root"]]])
    #expect(history.undoStack.map { $0.fragments.map(\.properties) } == [[["number": 1]]])
  }

  @Test("One author's changes go back and forth, another's stay")
  func authors() {
    scope.modify(author: "Ada") { root.number = 1 }
    scope.modify(author: "Bo") { root.label = "b" }
    scope.modify(author: "Ada") { root.items.append(Node("a")) }
    scope.modify(author: "Bo") { root.items.append(Node("c")) }
    #expect(history.undo(by: "Ada") != nil)
    #expect(root.items.map(\.label) == ["c"] && root.number == 1)
    #expect(history.redoStack.map(\.author) == ["Ada"])
    history.undo(by: "Ada")
    #expect(root.number == 0 && root.label == "b")
    #expect(history.undo(by: "Ada") == nil && history.undo(by: "nobody") == nil)
    #expect(history.undoStack.map(\.author) == ["Bo", "Bo"])
    // What Bo does is no reason for Ada not to go on.
    scope.modify(author: "Bo") { root.label = "bb" }
    history.redo(by: "Ada")
    history.redo(by: "Ada")
    #expect(history.redo(by: "Ada") == nil)
    #expect(root.number == 1 && root.items.map(\.label).sorted() == ["a", "c"])
    history.undo(by: "Bo")
    #expect(root.label == "b" && history.redoStack.map(\.author) == ["Bo"])
    scope.modify(author: "Bo") { root.number = 7 }
    #expect(!history.canRedo)
  }

  @Test("A listener of onChanges takes back what it does not like; that can be done again")
  func undoInListener() {
    var sets: [ChangeSet] = []
    scope.onChanges.listen { [history] set in
      sets.append(set)
      if sets.count == 1 { history.undo() }
    }
    root.number = 1
    scope.flush()
    #expect(
      root.number == 0
        && sets.map { $0.fragments.map(\.properties) } == [
          [["number": 1]], [["number": 0]],
        ])
    #expect(history.undoStack.isEmpty && history.redoStack == [sets[1]])
    history.redo()
    #expect(root.number == 1 && history.undoStack.count == 1 && history.redoStack.isEmpty)
  }

  @Test("A listener of onChanges takes back two change sets before either undo has come out")
  func twiceInListener() {
    root.number = 1
    scope.flush()
    root.items = [Node("a")]
    scope.flush()
    var rounds = 0
    let token = scope.onChanges.listen { [history] _ in
      rounds += 1
      guard rounds == 1 else { return }
      for _ in 0..<3 { history.undo() }
    }
    root.left = Node("b")
    scope.flush()
    token.cancel()
    #expect(root.left == nil && root.items.isEmpty && root.number == 0)
    #expect(!history.canUndo && history.redoStack.count == 3)
    history.redo()
    #expect(root.number == 1 && root.items.isEmpty)
  }

  @Test("Taking back in an observer of what others do can be done again")
  func undoWhileApplying() {
    root.number = 1
    scope.flush()
    let listener = Listener()
    root.observeChangeImmediately(listener, \.label) { [history] _, _, _ in history.undo() }
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Node", properties: ["label": "remote"])
    scope.apply([change])
    scope.flush()
    #expect(root.number == 0 && history.undoStack.isEmpty && history.redoStack.count == 1)
    history.redo()
    #expect(root.number == 1)
  }

  @Test("A listener in front of the history undoes the change set that it is called with")
  func listenerInFront() {
    let scope = manualScope(Node("other"))
    guard let root = scope.root as? Node else { return }
    var history: UndoHistory?
    var undone: [String] = []
    let token = scope.onChanges.listen { set in
      guard set.message == "unwanted" else { return }
      #expect(history?.canUndo == true)
      // Collected within the delivery, and therefore the last change.
      root.label = "collected"
      history?.undo()
      undone.append(root.label)
      history?.undo()
      undone.append("\(root.number)")
    }
    history = UndoHistory(of: scope)
    scope.modify("wanted") { root.number = 1 }
    scope.modify("unwanted") { root.number = 2 }
    #expect(undone == ["other", "1"] && root.number == 1)
    #expect(history?.undoStack.map(\.message) == ["wanted"] && history?.redoStack.count == 2)
    token.cancel()
    history?.redo()
    history?.redo()
    #expect(root.number == 2 && root.label == "collected" && history?.undoStack.count == 3)
  }

  @Test("A model that another scope has taken stays there, and a copy of what it was returns")
  func takenByAnotherScope() {
    let other = Node("other")
    let second = manualScope(other)
    let node = Node("node")
    node.left = Node("below")
    root.items.append(node)
    scope.flush()
    root.items.remove(node)
    scope.flush()
    other.items.append(node)
    node.number = 5
    node.left?.label = "theirs"
    second.flush()
    var refused: [ScopeError] = []
    scope.onError.listen { refused.append($0) }
    #expect(history.undo()?.isComplete == true && refused.isEmpty)
    #expect(other.items.first === node && node.number == 5 && node.left?.label == "theirs")
    #expect(!second.hasCollectedChanges)
    #expect(root.items.map(\.uuid) == [node.uuid] && root.items[0] !== node)
    #expect(root.items[0].number == 0 && root.items[0].left?.label == "below")
  }

  @Test("What others have written since stays")
  func othersStay() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    root.items = [a, b]
    (root.number, root.label) = (1, "mine")
    scope.flush()
    history.clear()
    (root.number, root.label) = (2, "mine too")
    root.items.remove(a)
    scope.flush()
    // Somebody else.
    scope.apply([
      SyncFragment(.add, uuid: c.uuid, className: "Node", properties: ["label": "c"]),
      SyncFragment(
        .change, uuid: root.uuid, className: "Node", properties: ["label": "theirs"],
        operations: ["items": [.insert(c.uuid, .start)]]),
    ])
    history.undo()
    #expect(root.number == 1 && root.label == "theirs")
    #expect(
      root.items.map(\.label) == ["a", "c", "b"] || root.items.map(\.label) == ["c", "a", "b"])
    history.redo()
    #expect(root.number == 2 && root.label == "theirs")
    #expect(root.items.map(\.label) == ["c", "b"])
  }

  @Test("A model comes back as the object that it was, or as a new one with all that it had")
  func objects() {
    weak var gone: Node?
    let kept = Node("kept")
    do {
      let other = Node("other")
      other.number = 7
      other.items = [Node("below")]
      gone = other
      root.items = [kept, other]
    }
    scope.flush()
    root.items = []
    scope.flush()
    #expect(gone == nil)
    history.undo()
    #expect(root.items.first === kept)
    #expect(root.items[1].number == 7 && root.items[1].items.map(\.label) == ["below"])
  }

  @Test("a set's inverse applies elsewhere, and its own inverse is the set")
  func inverse() throws {
    root.items = [Node("a"), Node("b")]
    root.items[0].left = Node("below")
    scope.flush()
    let before = scope.canonicalJSON
    let copy = manualScope(Node(uuid: root.uuid))
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    let sets = scope.changeSets {
      root.items.remove(at: 0)
      root.number = 3
      root.items.append(Node("c"))
    }
    let after = scope.canonicalJSON
    #expect(copy.apply(sets[0].fragments).isComplete)
    #expect(copy.canonicalJSON == after)
    #expect(copy.apply(sets[0].inverse.fragments).isComplete)
    #expect(copy.canonicalJSON == before)
    #expect(copy.apply(sets[0].inverse.inverse.fragments).isComplete)
    #expect(copy.canonicalJSON == after)
  }

  @Test("models that left are not in sets of a scope that does not keep them")
  func withoutRemoved() {
    root.items = [Node("a")]
    scope.flush()
    scope.keepsRemovedModels = false
    let sets = scope.changeSets { root.items = [] }
    #expect(sets[0].undo.map(\.kind) == [.change])
  }

  @Test("A state is restored as one change of what differs")
  func restored() {
    let (a, b) = (Node("a"), Node("b"))
    root.items = [a, b]
    a.left = Node("below")
    scope.flush()
    let (state, text) = (scope.fullState(), scope.canonicalJSON)
    root.items = [b, Node("c")]
    b.number = 9
    scope.flush()
    let sets = scope.changeSets { #expect(scope.restore(state).isComplete) }
    #expect(scope.canonicalJSON == text)
    #expect(root.items[1] === b)
    #expect(sets.count == 1)
    history.undo()
    #expect(root.items.map(\.label) == ["b", "c"] && b.number == 9)
    #expect(!scope.restore([]).isComplete)
  }

  @Test("A restored state has the entries of its dictionaries, and no others")
  func restoredEntries() {
    let shelf = Shelf()
    let scope = manualScope(shelf)
    let (a, b) = (Node("a"), Node("b"))
    shelf.books = ["a": a, "b": b]
    scope.flush()
    let (state, text) = (scope.fullState(), scope.canonicalJSON)
    shelf.books["b"] = Node("other")
    shelf.books["c"] = Node("c")
    scope.flush()
    #expect(scope.restore(state).isComplete)
    #expect(scope.canonicalJSON == text && shelf.books.count == 2)
  }

  final class Shelf: ModelObject {
    @Property var books: ModelDictionary<String, Node> = [:]
  }

  @Test("That an undo without an effect leaves nothing to undo is told")
  func toldWithoutEffect() {
    root.number = 5
    scope.flush()
    scope.apply([
      SyncFragment(.change, uuid: root.uuid, className: "Node", properties: ["number": 7])
    ])
    var count = 0
    history.onChange.listen { count += 1 }
    history.undo()
    #expect(root.number == 7 && !history.canUndo && count == 1)
  }

  @Test(
    "Random edits undone to the beginning and redone to the end, equal at each step",
    arguments: 1...25 as ClosedRange<UInt64>)
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let copy = manualScope(Node(uuid: root.uuid))
    _ = try? copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    scope.onChanges.listen { set in
      #expect(copy.apply(set.fragments).isComplete, "seed \(seed)")
    }
    var states = [scope.canonicalJSON]
    for step in 0..<80 {
      for _ in 0..<Int.random(in: 1...4, using: &generator) { edit(&generator, step) }
      let count = history.undoStack.count
      scope.flush()
      if history.undoStack.count > count { states.append(scope.canonicalJSON) }
      #expect(copy.canonicalJSON == scope.canonicalJSON, "seed \(seed), step \(step)")
    }
    for place in states.indices.dropLast().reversed() {
      history.undo()
      #expect(scope.canonicalJSON == states[place], "seed \(seed), undone to \(place)")
    }
    #expect(!history.canUndo)
    for place in states.indices.dropFirst() {
      history.redo()
      #expect(scope.canonicalJSON == states[place], "seed \(seed), redone to \(place)")
      #expect(copy.canonicalJSON == states[place], "seed \(seed), redone to \(place)")
    }
  }

  private func edit(_ generator: inout SeededGenerator, _ step: Int) {
    let nodes = scope.models.compactMap { $0 as? Node }.sorted { $0.uuid < $1.uuid }
    let node = nodes.randomElement(using: &generator)!
    let other = nodes.randomElement(using: &generator)!
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: node.number = step
    case 1: node.label = "step \(step)"
    case 2, 3, 4:
      let at = Int.random(in: 0...node.items.count, using: &generator)
      node.items.insert(Node("new \(step)"), at: at)
    case 5 where !node.items.isEmpty:
      node.items.remove(at: Int.random(in: 0..<node.items.count, using: &generator))
    case 6 where node.items.count > 1:
      node.items.move(from: 0, to: node.items.count - 1)
    case 7: node.left = Bool.random(using: &generator) ? other : nil
    case 8: node.others.append(other)
    default: if other !== root { other.detach() }
    }
  }
}
