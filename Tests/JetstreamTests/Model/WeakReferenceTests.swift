import Foundation
import Testing

@testable import Jetstream

private final class Whiteboard: ModelObject {
  @Property var items: ModelArray<Item> = []
  @Property var arrows: ModelArray<Arrow> = []
  @Property var first: Arrow?
}

private class Item: ModelObject {
  @Property var title = ""
}

private final class Special: Item {}

private final class Far: ModelObject {
  @Property var number = 0
}

private final class Arrow: ModelObject {
  @Property var label = ""
  @WeakReference var source: Item?
  @WeakReference(.wireName("to")) var target: Item?
  @WeakReference(.local) var hovered: Item?
  @WeakReference var far: Far?
  @WeakReference var special: Special?
  @WeakReference(.minSyncInterval(.milliseconds(50))) var slow: Item? = nil
  @Property(.local) var tail = 0

  var targetTitle: String { target?.title ?? "none" }
}

private final class Ring: ModelObject {
  @Property var links: ModelArray<Link> = []
}

private final class Link: ModelObject {
  @WeakReference var ring: Ring?
}

/// What a reference leads to, in words.
private func words<Target>(_ state: WeakReference<Target>.State) -> String {
  switch state {
  case .none: "none"
  case .loaded: "loaded"
  case .missing: "missing"
  }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct WeakReferenceTests {
  private let board = Whiteboard()
  private let item = Item()
  private let arrow = Arrow()
  private let scope: Scope

  init() {
    scope = manualScope(board)
    board.items.append(item)
    board.arrows.append(arrow)
    scope.flush()
  }

  @Test("a weak reference stands in the schema where it is declared, with its options")
  func schema() {
    let schema = ModelSchema.of(Arrow.self)
    #expect(
      schema.properties.map(\.wireName) == [
        "label", "source", "to", "hovered", "far", "special", "slow", "tail",
      ])
    #expect(schema["target"]?.type == .weakReference("Item"))
    #expect(schema["target"]?.type.description == "UUID")
    #expect(schema.properties.filter { !$0.isSynced }.map(\.name) == ["hovered", "tail"])
    #expect(schema["source"]?.defaultValue == .null)
    #expect(schema["slow"]?.options.minSyncInterval == .milliseconds(50))
    #expect(scope.schema(named: "Far") != nil && scope.schema(named: "Special") != nil)
  }

  @Test("it neither owns nor attaches, and gives nil once the target is gone")
  func lifecycle() {
    weak var gone: Item?
    do {
      let other = Item()
      gone = other
      arrow.source = other
      #expect(arrow.source == nil, "it is not in the scope")
      #expect(words(arrow.$source) == "missing")
      #expect(other.scope == nil && other.parents.isEmpty)
      let loose = Arrow()
      loose.source = other
      #expect(loose.source === other, "both are in no scope")
    }
    #expect(gone == nil)
    #expect(arrow.source == nil && words(arrow.$source) == "missing")
    let loose = Arrow()
    do {
      let other = Item()
      loose.source = other
      gone = other
    }
    #expect(gone == nil && loose.source == nil && words(loose.$source) == "missing")
    loose.source = nil
    #expect(words(loose.$source) == "none")
  }

  @Test("two models that refer to each other weakly go when nothing else holds them")
  func circle() {
    weak var first: NodeHolder?
    weak var second: NodeHolder?
    do {
      let one = NodeHolder()
      let two = NodeHolder()
      one.holder = two
      two.holder = one
      #expect(one.holder?.holder === one)
      (first, second) = (one, two)
    }
    #expect(first == nil && second == nil)
  }

  @Test("it is nil while the target is out of the scope, and leads to it again when it returns")
  func leavesAndReturns() {
    arrow.target = item
    #expect(arrow.target === item && words(arrow.$target) == "loaded")
    board.items = []
    scope.flush()
    #expect(arrow.target == nil && words(arrow.$target) == "missing")
    if case .missing(let uuid) = arrow.$target { #expect(uuid == item.uuid) }
    board.items.append(item)
    #expect(arrow.target === item)
  }

  @Test("a change goes out as the UUID, nil as null, and the same target again is nothing")
  func collected() {
    var sets = scope.changeSets { arrow.target = item }
    #expect(
      sets.map { $0.fragments.map(\.properties) } == [[["to": .string(item.uuid.wireText)]]])
    #expect(sets[0].bases == [arrow.uuid: ["to": .null]])
    let listener = Listener()
    arrow.observeChangeImmediately(listener, \.target) { me, _, _ in me.called() }
    sets = scope.changeSets { arrow.target = item }
    #expect(sets.isEmpty && listener.count == 0)
    sets = scope.changeSets { arrow.hovered = item }
    #expect(sets.isEmpty && arrow.hovered === item)
    sets = scope.changeSets {
      arrow.target = nil
      arrow.target = item
    }
    #expect(sets.isEmpty)
    sets = scope.changeSets { arrow.target = nil }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["to": .null]]])
  }

  @Test("observers by key path, immediate ones and composites are told")
  func observed() {
    let listener = Listener()
    item.title = "title"
    arrow.observeChange(listener, \.target, isolation: here()) { $0.log.append("path") }
    arrow.observeChange(listener, \.targetTitle, isolation: here()) { $0.log.append("composite") }
    arrow.observeChangeImmediately(listener, \.target) { me, old, new in
      me.log.append("\(old?.title ?? "-") \(new?.title ?? "-")")
    }
    func log(_ body: () -> Void) -> [String] {
      listener.log = []
      body()
      scope.flush()
      return listener.log.sorted()
    }
    #expect(log { arrow.target = item } == ["- title", "composite", "path"])
    #expect(log { item.title = "new" } == ["composite"])
    #expect(log { arrow.source = item } == [])
    #expect(log { arrow.target = nil } == ["composite", "new -", "path"])
    #expect(log { item.title = "newer" } == [])
  }

  @Test("tree observers and the projected value are told too")
  func observedByState() {
    let listener = Listener()
    arrow.observeChange(listener, \.stateInWords, isolation: here()) { $0.log.append("state") }
    board.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
    arrow.target = item
    scope.flush()
    #expect(listener.log.sorted() == ["state", "tree"])
  }

  @Test(
    "an observer of old and new values keeps neither the target alive nor a tree that it leads back to",
    arguments: [false, true])
  func observedWithValues(isProjected: Bool) {
    weak var ring: Ring?
    weak var link: Link?
    do {
      let tree = Ring()
      let back = Link()
      tree.links = [back]
      back.ring = tree
      if isProjected {
        back.observeChange(\.$ring, isolation: here()) { _, _ in }
      } else {
        back.observeChange(\.ring, isolation: here()) { _, _ in }
      }
      (ring, link) = (tree, back)
    }
    #expect(ring == nil && link == nil)
  }

  @Test("an observer of values is told the old target while that is alive, and its UUID afterwards")
  func oldTargets() {
    let listener = Listener()
    arrow.observeChange(listener, \.target, isolation: here()) { me, old, new in
      me.log.append("\(old?.title ?? "-") \(new?.title ?? "-")")
    }
    arrow.observeChange(listener, \.$target, isolation: here()) { me, old, new in
      me.log.append("\(words(old)) \(words(new))")
    }
    func log(_ body: () -> Void) -> [String] {
      listener.log = []
      body()
      scope.flush()
      return listener.log.sorted()
    }
    item.title = "one"
    #expect(log { arrow.target = item } == ["- one", "none loaded"])
    do {
      let other = Item()
      other.title = "two"
      board.items.append(other)
      #expect(log { arrow.target = other } == ["loaded loaded", "one two"])
      board.items.remove(other)
      scope.flush()
    }
    scope.advance()
    #expect(log { arrow.target = item } == ["- one", "missing loaded"])
  }

  @Test("two scopes agree, in whatever order the fragments come, also when the target comes later")
  func synced() throws {
    for order in 0..<6 {
      let board = Whiteboard()
      let source = manualScope(board)
      let copy = manualScope(Whiteboard(uuid: board.uuid))
      let item = Item()
      let arrow = Arrow()
      let sets = source.changeSets {
        board.items.append(item)
        board.arrows.append(arrow)
        arrow.target = item
        arrow.far = Far()
      }
      var fragments = sets[0].fragments
      #expect(fragments.count == 3)
      if order >= 3 { fragments.swapAt(0, 1) }
      fragments = (0..<3).map { fragments[($0 + order) % 3] }
      #expect(copy.apply(fragments).isComplete)
      #expect(copy.canonicalJSON == source.canonicalJSON, "order \(order)")
      let arrived = try #require((copy.root as? Whiteboard)?.arrows.first)
      #expect(arrived.target?.uuid == item.uuid, "order \(order)")
      #expect(arrived.far == nil && words(arrived.$far) == "missing")
    }
  }

  @Test("a target that comes later is found; a model of another class is not")
  func later() {
    let uuid = UUID()
    func change(_ properties: JSONObject) -> [SyncFragment] {
      [SyncFragment(.change, uuid: arrow.uuid, className: "Arrow", properties: properties)]
    }
    let text = JSONValue.string(uuid.uuidString)
    #expect(scope.apply(change(["to": text, "special": text])).isComplete)
    #expect(arrow.target == nil && words(arrow.$target) == "missing")
    #expect(arrow.json(of: arrow.schema["target"]!) == .string(uuid.wireText))
    let late = Item(uuid: uuid)
    board.items.append(late)
    #expect(arrow.target === late && words(arrow.$target) == "loaded")
    #expect(arrow.special == nil && words(arrow.$special) == "missing")
    #expect(scope.apply(change(["to": .null])).isComplete)
    #expect(arrow.target == nil && words(arrow.$target) == "none")
    #expect(late.scope === scope)
  }

  @Test("What is no UUID is refused, and clears the reference like any optional")
  func refused() {
    arrow.target = item
    scope.flush()
    let report = scope.apply([
      SyncFragment(.change, uuid: arrow.uuid, className: "Arrow", properties: ["to": 5])
    ])
    #expect(
      report.errors.map(\.error) == [
        .invalidValue(className: "Arrow", model: arrow.uuid, property: "to", expected: "UUID")
      ])
    #expect(words(arrow.$target) == "none")
  }

  @Test("an addition that only a weak reference names has no parent")
  func noParent() {
    let uuid = UUID()
    let report = scope.apply([
      SyncFragment(.add, uuid: uuid, className: "Item", properties: [:]),
      SyncFragment(
        .change, uuid: arrow.uuid, className: "Arrow",
        properties: ["to": .string(uuid.wireText)]),
    ])
    #expect(report.errors.map(\.error) == [.noParent(className: "Item", model: uuid)])
    #expect(words(arrow.$target) == "missing")
  }

  @Test("a local change that is not in a set yet stays in front, a full state replaces the rest")
  func merged() throws {
    let other = Item()
    board.items.append(other)
    scope.flush()
    arrow.target = item
    let remote = { (target: Item) in
      SyncFragment(
        .change, uuid: arrow.uuid, className: "Arrow",
        properties: ["to": .string(target.uuid.wireText)])
    }
    #expect(scope.apply([remote(other)]).isComplete)
    #expect(arrow.target === item)
    let sets = scope.changeSets {}
    #expect(sets[0].bases == [arrow.uuid: ["to": .string(other.uuid.wireText)]])
    let state = scope.fullState()
    arrow.target = other
    scope.flush()
    #expect(try scope.applyFullState(state, rootUUID: board.uuid).isComplete)
    #expect(arrow.target === item)
  }

  @Test("the root's new UUID is what references to it say from then on")
  func renamedRoot() throws {
    let root = Node()
    let scope = manualScope(root)
    let holder = NodeHolder()
    holder.node = root
    let uuid = UUID()
    let state = [SyncFragment(.change, uuid: uuid, className: "Node", properties: [:])]
    #expect(try scope.applyFullState(state, rootUUID: uuid).isComplete)
    #expect(holder.node === root)
    #expect(holder.json(of: holder.schema["node"]!) == .string(uuid.wireText))
  }
}

private final class NodeHolder: ModelObject {
  @WeakReference var node: Node?
  @WeakReference var holder: NodeHolder?
}

extension Arrow {
  fileprivate var stateInWords: String { words($target) }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct WeakReferenceSnapshotTests {
  @Test("a snapshot keeps the UUID, names it on the wire as the model does, and does not follow it")
  func snapshot() {
    let board = Whiteboard()
    let item = Item()
    let arrow = Arrow()
    board.items.append(item)
    board.arrows.append(arrow)
    arrow.target = item
    let scope = manualScope(board)
    let frozen = arrow.snapshot()
    let uuid = JSONValue.string(item.uuid.wireText)
    if case .object(let properties) = frozen.json { #expect(properties["target"] == uuid) }
    #expect(frozen.fragments.map { $0.properties["to"] } == [uuid])
    let copy = frozen.makeModel(keepingUUIDs: false)
    #expect(copy.target == nil)
    board.arrows.append(copy)
    #expect(copy.target === item && copy.scope === scope)
  }
}
