import Foundation
import Testing

@testable import Jetstream

private func add(_ uuid: UUID, _ properties: JSONObject = [:], of name: String = "Node")
  -> SyncFragment
{
  SyncFragment(.add, uuid: uuid, className: name, properties: properties)
}

private func change(_ model: Node, _ properties: JSONObject) -> SyncFragment {
  SyncFragment(.change, uuid: model.uuid, className: "Node", properties: properties)
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ApplyTests {
  let root = Node("root")
  let scope: Scope
  let listener = Listener()

  init() { scope = manualScope(root) }

  @Test("Forward references are found in any order", arguments: [UInt64](1...20))
  func anyOrder(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let (child, child2) = (UUID(), UUID())
    var fragments = [
      add(child2, ["label": "child2"]),
      add(child, ["label": "child", "left": child2._jsonValue]),
      change(root, ["items": [child._jsonValue]]),
    ]
    fragments.shuffle(using: &generator)
    #expect(scope.apply(fragments).isComplete, "seed \(seed)")
    #expect(root.items.first?.left?.label == "child2", "seed \(seed)")
    #expect(scope.count == 3, "seed \(seed)")
    #expect(scope.model(child2)?.scope === scope, "seed \(seed)")
  }

  @Test("Applied changes equalise, do not echo, and are announced once")
  func equalise() {
    let source = Node(uuid: root.uuid)
    let sourceScope = manualScope(source)
    let sets = sourceScope.changeSets {
      source.label = "x"
      source.items = [Node("a"), Node("b")]
      source.left = source.items[1]
    }
    var announced: [[SyncFragment]] = []
    let applied = AppliedFragments(to: scope) { announced.append($0) }
    defer { withExtendedLifetime(applied) {} }
    let echoes = scope.changeSets { scope.apply(sets[0].fragments) }
    #expect(echoes.isEmpty)
    #expect(!scope.hasCollectedChanges)
    #expect(announced == [sets[0].fragments])
    #expect(scope.canonicalJSON == sourceScope.canonicalJSON)
  }

  @Test("All change sets of a session, replayed, give the same tree")
  func replay() throws {
    var log: [String] = []
    scope.onChanges.listen { set in log.append(JSONValue.array(set.fragments.map(\.json)).text) }
    for step in 0..<30 {
      root.items.insert(Node("\(step)"), at: step / 2)
      if step % 3 == 0 { root.items.remove(at: 0) }
      root.others = ModelArray(root.items.suffix(2))
      root.number = step
      scope.flush()
    }
    let fresh = manualScope(Node(uuid: root.uuid))
    fresh.root.map { ($0 as! Node).label = "root" }
    _ = fresh.takeFragments()
    for text in log {
      guard case .array(let values) = try JSONValue(parsing: text) else { continue }
      #expect(fresh.apply(try values.map { try SyncFragment(json: $0) }).isComplete)
    }
    #expect(fresh.canonicalJSON == scope.canonicalJSON)
  }

  @Test("What does not fit is reported with object and property; the rest is applied")
  func errors() {
    let (known, orphan, strange) = (UUID(), UUID(), UUID())
    let ghost = UUID()
    let report = scope.apply([
      add(known, ["label": 5, "number": 1]),
      add(orphan),
      add(strange, of: "Unicorn"),
      change(
        root,
        [
          "label": "ok", "horns": 2, "left": known._jsonValue, "right": ghost._jsonValue,
          "items": 3,
        ]),
      SyncFragment(.change, uuid: ghost, className: "Node", properties: [:]),
      add(root.uuid, of: "Shape"),
    ])
    #expect(root.label == "ok")
    #expect(root.left?.number == 1)
    #expect(scope.count == 2)
    #expect(
      Set(report.errors.map(\.error)) == [
        .invalidValue(className: "Node", model: known, property: "label", expected: "String"),
        .noParent(className: "Node", model: orphan),
        .unknownReference(
          className: "Node", model: root.uuid, property: "right",
          missing: ghost.uuidString.lowercased()),
        .invalidValue(
          className: "Node", model: root.uuid, property: "items", expected: "array of UUIDs"),
        .unknownModel(className: "Node", model: ghost),
        .classMismatch(model: root.uuid, className: "Node", other: "Shape"),
      ])
    #expect(
      Set(report.kept.map(\.reason)) == [
        .unknownClass(className: "Unicorn", model: strange),
        .unknownProperty(className: "Node", model: root.uuid, property: "horns"),
      ])
  }

  @Test(
    "A model that fragments move keeps identity, observers and open edits",
    arguments: [false, true])
  func move(addFirst: Bool) {
    let (a, b, child) = (Node("a"), Node("b"), Node("child"))
    a.items = [child]
    root.items = [a, b]
    scope.flush()
    child.observeDetach(listener) { me, _ in me.called() }
    child.number = 7
    var fragments = [
      change(a, ["items": []]), change(b, ["items": [child._jsonValue], "left": child._jsonValue]),
    ]
    if addFirst { fragments.reverse() }
    #expect(scope.apply(fragments).isComplete)
    #expect(b.items.first === child && b.left === child && a.items.isEmpty)
    #expect(listener.count == 0)
    #expect(scope.changeSets {}.first?.fragments.map(\.properties) == [["number": 7]])
  }

  @Test("What an immediate observer edits while fragments are applied is collected")
  func observerEdits() {
    root.observeChangeImmediately(listener, \.number) { [root] _, _, _ in root.label = "edited" }
    let sets = scope.changeSets { scope.apply([change(root, ["number": 5])]) }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["label": "edited"]]])
  }

  @Test("An edit of a property that the same fragments set later stays in front")
  func observerEditsLaterProperty() {
    root.observeChangeImmediately(listener, \.number) { [root] _, _, _ in root.label = "mine" }
    let sets = scope.changeSets { scope.apply([change(root, ["number": 5, "label": "theirs"])]) }
    #expect(root.label == "mine")
    #expect(sets.first?.bases == [root.uuid: ["label": "theirs"]])
    #expect(sets.first?.fragments.map(\.properties) == [["label": "mine"]])
  }

  @Test("Edits by observers of structure, of errors and of a model put below a new one")
  func otherObservers() {
    let child = Node("child")
    root.left = child
    scope.flush()
    child.observeAddedToParent(listener) { [child] _, _, _ in child.number += 1 }
    scope.onError.listen { [root] _ in root.number += 1 }
    let new = UUID()
    let sets = scope.changeSets {
      scope.apply([
        add(new, ["left": child._jsonValue]), change(root, ["right": new._jsonValue, "items": 1]),
      ])
    }
    #expect(sets.first?.fragments.count == 2)
    #expect(sets.first?.fragments.allSatisfy { $0.properties == ["number": 1] } == true)
  }

  @Test("an open local edit stays visible in front of a remote value, which becomes its base")
  func openEdit() {
    root.number = 5
    root.left = Node("mine")
    let theirs = UUID()
    #expect(
      scope.apply([add(theirs), change(root, ["number": 9, "left": theirs._jsonValue])]).isComplete)
    #expect(root.number == 5)
    #expect(root.left?.label == "mine")
    let sets = scope.changeSets {}
    #expect(sets.first?.bases == [root.uuid: ["number": 9, "left": theirs._jsonValue]])
    scope.apply([change(root, ["number": 9])])
    #expect(root.number == 9)
  }

  @Test("an open local edit that equals the remote value leaves nothing to send")
  func sameEdit() {
    root.number = 9
    scope.apply([change(root, ["number": .double(9)])])
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("collections are merged: both sides' models are there, and removals hold")
  func mergeCollections() {
    let kept = (0..<3).map { Node("\($0)") }
    root.items = ModelArray(kept)
    scope.flush()
    let theirs = UUID()
    root.items.remove(kept[1])
    root.items.append(Node("mine"))
    scope.apply([
      add(theirs, ["label": "theirs"]),
      change(root, ["items": .array(kept.map(\._jsonValue) + [theirs._jsonValue])]),
    ])
    #expect(root.items.map(\.label) == ["0", "2", "theirs", "mine"])
    let sets = scope.changeSets {}
    // On top of what they did, not instead of it.
    #expect(
      sets.first?.fragments.last?.operations
        == ["items": [.remove(kept[1].uuid), .insert(root.items.last!.uuid, .end)]])
    #expect(sets.first?.fragments.count == 2)
  }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct FullStateTests {
  let root = Node("root")
  let scope: Scope
  let listener = Listener()

  init() { scope = manualScope(root) }

  @Test("Renames the root, detaches what is absent, keeps the identity of what is there")
  func replace() throws {
    let (a, b, gone, moved) = (Node("a"), Node("b"), Node("gone"), Node("moved"))
    a.items = [moved, gone]
    root.items = [a, b]
    let newRoot = UUID()
    scope.flush()
    let state = [
      add(newRoot, ["label": "new", "items": [a._jsonValue, b._jsonValue]]),
      add(a.uuid, ["label": "a"]),
      add(b.uuid, ["label": "b", "items": [moved._jsonValue]]), add(moved.uuid, ["label": "moved"]),
    ]
    #expect(try scope.applyFullState(state, rootUUID: newRoot).isComplete)
    #expect(root.uuid == newRoot && scope.root === root && root.label == "new")
    #expect(b.items.first === moved && a.items.isEmpty)
    #expect(gone.scope == nil && moved.scope === scope)
    #expect(scope.count == 4)
    #expect(!scope.hasCollectedChanges)
  }

  @Test("Applying the same state twice notifies nobody the second time")
  func twice() throws {
    root.items = [Node("a"), Node("b")]
    root.left = root.items[0]
    scope.flush()
    let state = scope.fullState()
    for model in scope.models.compactMap({ $0 as? Node }) {
      model.observeChange(listener, isolation: here()) { $0.called() }
      model.signals.onPropertyChange.listen(listener) { me, _ in me.called() }
      model.observeTreeChange(listener, isolation: here()) { $0.called() }
      model.observeAttach(listener) { me, _ in me.called() }
      model.observeDetach(listener) { me, _ in me.called() }
      model.observeAddedToParent(listener) { me, _, _ in me.called() }
    }
    #expect(try scope.applyFullState(state, rootUUID: root.uuid).isComplete)
    #expect(scope.changeSets {}.isEmpty)
    #expect(listener.count == 0)
  }

  @Test("A missing property returns to its default in a full state, not in a change")
  func defaults() throws {
    root.number = 5
    scope.flush()
    scope.apply([change(root, ["label": "x"])])
    #expect(root.number == 5)
    try scope.applyFullState([add(root.uuid, ["label": "y"])], rootUUID: root.uuid)
    #expect(root.number == 0 && root.label == "y")
  }

  @Test("a state that cannot be applied is refused as a whole")
  func invalid() {
    #expect(throws: ScopeError.self) { try scope.applyFullState([], rootUUID: root.uuid) }
    #expect(throws: ScopeError.self) {
      try scope.applyFullState([add(root.uuid, of: "Shape")], rootUUID: root.uuid)
    }
    let child = Node("child")
    root.left = child
    #expect(throws: ScopeError.self) {
      try scope.applyFullState([add(child.uuid)], rootUUID: child.uuid)
    }
  }

  @Test("equal trees that were built in different order have one canonical text")
  func canonical() {
    let uuids = (0..<3).map { _ in UUID() }
    func build(_ order: [Int]) -> String {
      let root = Node(uuid: uuids[0])
      let scope = manualScope(root)
      let nodes = [1, 2].map { Node(uuid: uuids[$0]) }
      for index in order { root.items.append(nodes[index]) }
      if order[0] == 1 { root.items.move(from: 0, to: 1) }
      for index in order { nodes[index].number = index }
      return scope.canonicalJSON
    }
    #expect(build([0, 1]) == build([1, 0]))
  }
}
