import Foundation

/// Changing the forest by its rules.
extension ForestReference {
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
      refuse(scope)
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
        refuse(scope)
      } else {
        // What comes in has an effect on what may come in behind it.
        if let scope = scope(of: id) { members[scope]!.formUnion(fresh(child)) }
        new.append(child)
        entering.append(child)
      }
    }
    if new == old { return }
    keepBase(id, key.rawValue, old)
    nodes[id]!.lists[key] = new
    note(id, key.rawValue, text(old), text(new))
    for child in entering { events.append(.added(child, to: id, key.rawValue)) }
    for child in old where !new.contains(child) {
      events.append(.removed(child, from: id, key.rawValue))
    }
    settle(entering: entering, at: id)
  }

  /// Who comes with a node: attached at once, since another of the same change may be refused.
  mutating func fresh(_ child: Int) -> Set<Int> {
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
    if node == nil { collect(scope, holdingBack: holdsBack) }
    roots[scope] = node
    settle()
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
      if roots[other] == node { isRefused = true }
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
    remove(id, from: (parents[id] ?? []).filter { !tree.contains($0.parent) })
    setRoot(scope, id)
  }

  /// Forgets nodes that are deallocated. Nobody is told.
  mutating func drop(_ gone: Set<Int>) {
    for id in gone {
      for (scope, root) in roots where root == id {
        roots[scope] = nil
        members[scope] = nil
        forgetScope(scope)
      }
      forget(id)
      nodes[id] = nil
      dirty[id] = nil
    }
    for (id, node) in nodes {
      if let friend = node.friendNode, gone.contains(friend) { nodes[id]!.friendNode = nil }
    }
  }

  // MARK: Inside

  mutating func note(_ id: Int, _ key: String, _ old: String, _ new: String) {
    keepBase(id, key)
    clock += 1
    dirty[id, default: [:]][key] = clock
    events.append(.property(id, key, old: old, new: new))
  }

  /// Finds out who is in which scope now.
  mutating func settle(entering: [Int] = [], at parent: Int? = nil, remotely: Bool = false) {
    let before = told
    for (scope, root) in roots where scope != applying { members[scope] = reach(root) }
    for scope in members.keys where roots[scope] == nil { members[scope] = [] }
    if let applying, let parent, members[applying]!.contains(parent) {
      for child in entering { members[applying]!.formUnion(reach(child)) }
    }
    for scope in Set(before.keys).union(members.keys).sorted() {
      let (old, new) = (before[scope] ?? [], members[scope] ?? [])
      for node in old.subtracting(new).sorted() {
        leave(node, scope, remotely: remotely)
        events.append(.detached(node, scope))
      }
    }
    for scope in Set(before.keys).union(members.keys).sorted() {
      let (old, new) = (before[scope] ?? [], members[scope] ?? [])
      for node in new.subtracting(old).sorted() {
        enter(node, scope)
        events.append(.attached(node, scope))
      }
    }
    told = members
  }

  /// The members that the last events led to.

  /// Begins to apply fragments to a scope.
  mutating func beginApplying(_ scope: Int, creating created: Set<Int>) {
    applying = scope
    self.created = created
    refusals = 0
  }

  mutating func endApplying() {
    let scope = applying!
    applying = nil
    settle(remotely: true)
    findUnshared(scope)
    leaveCreated(scope)
    created = []
  }

  private mutating func refuse(_ scope: Int) {
    errors[scope, default: 0] += 1
    if scope == applying { refusals += 1 }
  }

  /// Takes what was read from the models for the truth: after changes that nobody foretold.
  mutating func adopt(_ nodes: [Int: Node], roots: [Int: Int]) {
    let (known, base) = (capture, bases)
    self.nodes = nodes
    self.roots = roots
    members = members.filter { roots[$0.key] != nil || $0.key < 2 }
    settle(remotely: true)
    // All this came from the others.
    for id in members[0] ?? [] where known[id] != 0 { fresh.remove(id) }
    bases = base.filter { capture[$0.key] != nil }
    findUnshared(0)
    events = []
  }

  /// After nodes were deallocated, together with scopes of their own.
  mutating func forgetSilently() {
    settle()
    events = []
  }
}
