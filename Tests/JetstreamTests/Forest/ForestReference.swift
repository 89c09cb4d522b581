import Foundation

/// What an immediate observer is to be told. Models are numbers, values are texts.
enum ForestEvent: Hashable, CustomStringConvertible {
  case property(Int, String, old: String, new: String)
  case added(Int, to: Int, String)
  case removed(Int, from: Int, String)
  case attached(Int, Int)
  case detached(Int, Int)

  var node: Int {
    switch self {
    case .property(let node, _, _, _), .added(let node, _, _), .removed(let node, _, _),
      .attached(let node, _), .detached(let node, _):
      node
    }
  }

  var description: String {
    switch self {
    case .property(let node, let key, let old, let new): "\(node).\(key): \(old) -> \(new)"
    case .added(let node, let parent, let key): "\(node) added to \(parent).\(key)"
    case .removed(let node, let parent, let key): "\(node) removed from \(parent).\(key)"
    case .attached(let node, let scope): "\(node) attached to scope \(scope)"
    case .detached(let node, let scope): "\(node) detached from scope \(scope)"
    }
  }
}

/// The rules of the forest once more, on numbers, arrays and dictionaries: slow, and with nothing in
/// common with the framework.
struct ForestReference {
  struct Link: Hashable, Comparable {
    let parent: Int
    let key: String
    static func < (a: Link, b: Link) -> Bool { (a.parent, a.key) < (b.parent, b.key) }
  }

  struct Node: Equatable {
    var isBush: Bool
    var uuid: UUID
    var plain = PlainValues()
    var references: [ReferenceKey: Int] = [:]
    var lists: [ListKey: [Int]] = [:]
    /// Who the weak reference names.
    var friend: UUID?
    /// The object it was set to; a value from elsewhere names a UUID only.
    var friendNode: Int?

    func list(_ key: ListKey) -> [Int] { lists[key] ?? [] }

    /// Who is held, in order.
    var children: [(child: Int, key: String)] {
      var result: [(Int, String)] = []
      for key in ReferenceKey.allCases {
        if let child = references[key] { result.append((child, key.rawValue)) }
      }
      for key in ListKey.allCases { result += list(key).map { ($0, key.rawValue) } }
      return result
    }
  }

  var nodes: [Int: Node] = [:]
  /// Who is at the top of each scope.
  var roots: [Int: Int] = [:]
  /// Scopes that are held by their roots.
  var owned: Set<Int> = []
  /// Who was found to be in each scope after the last change.
  var members: [Int: Set<Int>] = [:]
  /// While fragments are applied, nobody leaves this scope.
  var applying: Int?

  // What was to be told since these were last taken.
  var events: [ForestEvent] = []
  var errors: [Int: Int] = [:]
  /// Which properties have changed, and the number of the change.
  var dirty: [Int: [String: Int]] = [:]
  var clock = 0

  // MARK: Questions

  func scope(of node: Int) -> Int? {
    for (scope, inside) in members where inside.contains(node) { return scope }
    return nil
  }

  func reach(_ top: Int, onlySynced: Bool = false) -> Set<Int> {
    var reached: Set<Int> = [top]
    var open = [top]
    while let next = open.popLast() {
      for (child, key) in nodes[next]!.children where !onlySynced || key != "picks" {
        if reached.insert(child).inserted { open.append(child) }
      }
    }
    return reached
  }

  /// Who holds each node.
  var parents: [Int: [Link]] {
    var result: [Int: [Link]] = [:]
    for (parent, node) in nodes {
      for (child, key) in node.children {
        result[child, default: []].append(Link(parent: parent, key: key))
      }
    }
    return result.mapValues { $0.sorted() }
  }

  /// Whether all below `top` may come into `scope`.
  func canEnter(_ top: Int, _ scope: Int) -> Bool {
    let inside = members[scope] ?? []
    var uuids = Set(inside.map { nodes[$0]!.uuid })
    for node in reach(top) where !inside.contains(node) {
      if self.scope(of: node) != nil || !uuids.insert(nodes[node]!.uuid).inserted { return false }
    }
    return true
  }

  /// What reading the weak reference gives.
  func friend(of id: Int) -> Int? {
    let node = nodes[id]!
    return visible(node.friend, node.friendNode, from: id)
  }

  func visible(_ uuid: UUID?, _ known: Int?, from id: Int) -> Int? {
    guard let uuid else { return nil }
    guard let scope = scope(of: id) else { return known }
    if let known, members[scope]!.contains(known) { return known }
    return members[scope]!.first { nodes[$0]!.uuid == uuid }
  }

  func total(_ id: Int) -> Int {
    let node = nodes[id]!
    return node.plain.number + (node.references[.left].map { nodes[$0]!.plain.number } ?? 0)
      + node.list(.items).reduce(0) { $0 + nodes[$1]!.plain.number }
  }

  func value(_ id: Int, _ key: String) -> String {
    let node = nodes[id]!
    if let key = ListKey(rawValue: key) { return text(node.list(key)) }
    if let key = ReferenceKey(rawValue: key) { return text(node.references[key]) }
    return node.plain.texts.first { $0.key == key }!.text
  }

  func text(_ id: Int?) -> String { id.map { "#\($0)" } ?? "nil" }
  func text(_ ids: [Int]) -> String { "[" + ids.map { "#\($0)" }.joined(separator: " ") + "]" }

  // MARK: Elementary changes

  mutating func edit(_ id: Int, _ change: (inout PlainValues) -> Void) {
    let old = nodes[id]!.plain
    change(&nodes[id]!.plain)
    for (before, after) in zip(old.texts, nodes[id]!.plain.texts) where before.text != after.text {
      note(id, after.key, before.text, after.text)
    }
  }

  /// Sets a reference; false if that was refused.
  mutating func assign(_ id: Int, _ key: ReferenceKey, _ child: Int?) {
    let old = nodes[id]!.references[key]
    if old == child { return }
    if let child, let scope = scope(of: id), !canEnter(child, scope) {
      errors[scope, default: 0] += 1
      return
    }
    nodes[id]!.references[key] = child
    note(id, key.rawValue, text(old), text(child))
    if let child { events.append(.added(child, to: id, key.rawValue)) }
    if let old { events.append(.removed(old, from: id, key.rawValue)) }
    settle(entering: child.map { [$0] } ?? [], at: id)
  }

  /// Gives a collection another content, but for what is refused.
  mutating func assign(_ id: Int, _ key: ListKey, _ list: [Int]) {
    let old = nodes[id]!.list(key)
    var new: [Int] = []
    var entering: [Int] = []
    for child in list {
      if old.contains(child) {
        new.append(child)
      } else if let scope = scope(of: id), !canEnter(child, scope) {
        errors[scope, default: 0] += 1
      } else {
        // What comes in has an effect on what may come in behind it.
        if let scope = scope(of: id) { members[scope]!.formUnion(fresh(child)) }
        new.append(child)
        entering.append(child)
      }
    }
    if new == old { return }
    nodes[id]!.lists[key] = new
    note(id, key.rawValue, text(old), text(new))
    for child in entering { events.append(.added(child, to: id, key.rawValue)) }
    for child in old where !new.contains(child) {
      events.append(.removed(child, from: id, key.rawValue))
    }
    settle(entering: entering, at: id)
  }

  /// Who comes with a node: attached at once, since another of the same change may be refused.
  private mutating func fresh(_ child: Int) -> Set<Int> {
    let fresh = reach(child).filter { scope(of: $0) == nil }
    return fresh
  }

  /// Names the friend by object or, if only `uuid` is given, by that.
  mutating func assignFriend(_ id: Int, _ friend: Int?, uuid: UUID?) {
    let old = (nodes[id]!.friend, nodes[id]!.friendNode)
    let isSame = old.0 == uuid
    // The same UUID from elsewhere leaves the object that is known.
    if isSame, friend == nil { return }
    nodes[id]!.friend = uuid
    nodes[id]!.friendNode = friend
    if isSame { return }
    note(
      id, "friend", text(visible(old.0, old.1, from: id)), text(visible(uuid, friend, from: id)))
  }

  mutating func setRoot(_ scope: Int, _ node: Int?) {
    if let node, !canEnter(node, scope) {
      errors[scope, default: 0] += 1
      return
    }
    roots[scope] = node
    settle()
    if node == nil, owned.remove(scope) != nil { members[scope] = nil }
  }

  /// Takes a node out of properties that hold it.
  mutating func remove(_ id: Int, from links: [Link]) {
    for link in links {
      if let key = ReferenceKey(rawValue: link.key) {
        assign(link.parent, key, nil)
      } else if let key = ListKey(rawValue: link.key) {
        assign(link.parent, key, nodes[link.parent]!.list(key).filter { $0 != id })
      }
    }
  }

  /// Makes a node the root of a scope without one; false if that is refused.
  mutating func move(_ id: Int, to scope: Int) {
    if roots[scope] == id { return }
    let tree = reach(id)
    let parents = parents
    var isRefused = roots[scope] != nil || Set(tree.map { nodes[$0]!.uuid }).count < tree.count
    for node in tree {
      guard let other = self.scope(of: node) else { continue }
      if roots[other] == node, node != id || !owned.contains(other) { isRefused = true }
      if node != id,
        (parents[node] ?? []).contains(where: {
          self.scope(of: $0.parent) != nil && !tree.contains($0.parent)
        })
      {
        isRefused = true
      }
    }
    if isRefused {
      errors[scope, default: 0] += 1
      return
    }
    if let own = self.scope(of: id), roots[own] == id { setRoot(own, nil) }
    remove(id, from: (parents[id] ?? []).filter { !tree.contains($0.parent) })
    setRoot(scope, id)
  }

  /// Forgets nodes that are deallocated. Nobody is told.
  mutating func drop(_ gone: Set<Int>) {
    for id in gone {
      for (scope, root) in roots where root == id {
        roots[scope] = nil
        owned.remove(scope)
        members[scope] = nil
      }
      nodes[id] = nil
      dirty[id] = nil
    }
    for (id, node) in nodes {
      if let friend = node.friendNode, gone.contains(friend) { nodes[id]!.friendNode = nil }
    }
  }

  // MARK: Inside

  private mutating func note(_ id: Int, _ key: String, _ old: String, _ new: String) {
    clock += 1
    dirty[id, default: [:]][key] = clock
    events.append(.property(id, key, old: old, new: new))
  }

  /// Finds out who is in which scope now.
  private mutating func settle(entering: [Int] = [], at parent: Int? = nil) {
    let before = told
    for (scope, root) in roots where scope != applying { members[scope] = reach(root) }
    for scope in members.keys where roots[scope] == nil { members[scope] = [] }
    if let applying, let parent, members[applying]!.contains(parent) {
      for child in entering { members[applying]!.formUnion(reach(child)) }
    }
    for scope in Set(before.keys).union(members.keys).sorted() {
      let (old, new) = (before[scope] ?? [], members[scope] ?? [])
      for node in new.subtracting(old).sorted() { events.append(.attached(node, scope)) }
      for node in old.subtracting(new).sorted() { events.append(.detached(node, scope)) }
    }
    told = members
  }

  /// The members that the last events led to.
  private var told: [Int: Set<Int>] = [:]

  /// Begins to apply fragments to a scope.
  mutating func beginApplying(_ scope: Int) { applying = scope }

  mutating func endApplying() {
    applying = nil
    settle()
  }

  /// Takes what was read from the models for the truth: after changes that nobody foretold.
  mutating func adopt(_ nodes: [Int: Node], roots: [Int: Int]) {
    self.nodes = nodes
    self.roots = roots
    members = members.filter { roots[$0.key] != nil || $0.key < 2 }
    settle()
    events = []
  }

  /// After nodes were deallocated, together with scopes of their own.
  mutating func forgetSilently() {
    settle()
    events = []
  }
}
