/// Maintains the tree: the links between parents and children, and which models the root reaches.
///
/// Its methods only update links and collect events; ``StructureEvents`` calls observers
/// afterwards. Attaching and detaching a tree of n models costs O(n), without recursion.
///
/// Unlinking does not detach a model at once. A model that has lost a parent is a suspect, because
/// it may still be reached over other parents, or be linked again by the same change.
/// ``settle(_:of:)`` checks the suspects after the last step of the change; while fragments are
/// applied, the scope collects the suspects and checks them after the last fragment.
enum Structure {
  /// Links `child` to property `index` of `parent`. Returns an error, with nothing changed, if that
  /// would bring a model into two scopes.
  ///
  /// - Parameter isRepeatable: True for a property that may hold the model already.
  static func link(
    _ child: ModelObject, to parent: ModelRecord, index: Int, _ events: inout StructureEvents,
    isRepeatable: Bool = false
  ) -> ScopeError? {
    let record = child.ensureRecord()
    if let tree = parent.tree, let error = attach(record, to: tree, &events) { return error }
    let link = ParentLinks.Link(parent: parent, index: index)
    var isRepeated = false
    if isRepeatable {
      isRepeated = record.parents.addRepeatable(link)
    } else {
      record.parents.add(link)
    }
    if let tree = parent.tree {
      record.scopedParents += 1
      // A model that enters in a remote write counts as shared. Below a parent that only local
      // properties hold it is not shared; the scope checks that once everything is written.
      if tree.isWritingRemotely, parent.isNew { tree.loosen(record) }
    }
    if !isRepeated { events.parentAdded(record, parent, index) }
    return nil
  }

  /// Unlinks `child` from property `index` of `parent`. ``settle(_:of:)`` decides whether that
  /// detaches it, after all models have been unlinked.
  static func unlink(
    _ child: ModelObject, from parent: ModelRecord, index: Int, _ events: inout StructureEvents
  ) {
    guard let record = child.record else { return }
    let removal = record.parents.remove(.init(parent: parent, index: index))
    if removal == .none { return }
    if removal == .last { events.parentRemoved(record, parent, index) }
    guard let tree = parent.tree, record.tree === tree else { return }
    record.scopedParents -= 1
    if removal == .last, !tree.isRoot(record) {
      events.suspects.append(child)
      tree.loosen(record)
    }
  }

  /// Detaches unlinked models that the root no longer reaches. While fragments are applied, this is
  /// postponed until the last one, since a later fragment may link the model again.
  static func settle(_ events: inout StructureEvents, of tree: ModelTree?) {
    guard let tree, !events.suspects.isEmpty else { return }
    let suspects = events.suspects
    events.suspects = []
    if tree.isWritingRemotely {
      tree.suspects.append(contentsOf: suspects)
    } else {
      detachUnreached(among: suspects, from: tree, &events)
    }
  }

  /// Attaches `top` and all models below it to `tree`. Returns an error, with nothing changed, if
  /// a model below belongs to another scope, or if two have the same UUID.
  static func attach(
    _ top: ModelRecord, to tree: ModelTree, _ events: inout StructureEvents
  ) -> ScopeError? {
    if top.tree === tree { return nil }
    if !tree.admit(top) { return tree.refusal(of: top) }
    var refused: ModelRecord?
    var admitted: ContiguousArray<ModelRecord> = []
    var stack: ContiguousArray<ModelRecord> = [top]
    while refused == nil, let record = stack.popLast() {
      admitted.append(record)
      let bottom = stack.count
      record.forEachChild { child, _ in
        let below = child.ensureRecord()
        below.scopedParents += 1
        if refused != nil || below.tree === tree { return }
        if tree.admit(below) { stack.append(below) } else { refused = below }
      }
      stack.reverse(from: bottom)
    }
    if let refused {
      let error = tree.refusal(of: refused)
      for record in admitted {
        record.forEachChild { child, _ in child.record?.scopedParents -= 1 }
      }
      for record in admitted + stack { tree.expel(record) }
      return error
    }
    for record in admitted {
      tree.enter(record, below: record !== top)
      events.attached(record, tree)
    }
    return nil
  }

  /// Detaches from `tree` the models that the root no longer reaches, among models that have lost
  /// a parent and all models below them.
  static func detachUnreached(
    among suspects: some Sequence<ModelObject>, from tree: ModelTree,
    _ events: inout StructureEvents
  ) {
    var suspects = ContiguousArray(suspects.compactMap(\.record))
    var next = 0
    var reachability = Reachability(tree)
    var open: ContiguousArray<ModelRecord> = []
    while true {
      // Models that have left the scope, and whose children have not been updated yet.
      while let record = open.popLast() {
        let bottom = open.count
        record.forEachChild { child, _ in
          guard let below = child.record, below.tree === tree else { return }
          below.scopedParents -= 1
          if tree.isRoot(below) { return }
          if below.scopedParents == 0 {
            tree.leave(below)
            events.detached(below, tree)
            open.append(below)
          } else {
            suspects.append(below)
            tree.loosen(below)
          }
        }
        open.reverse(from: bottom)
      }
      guard next < suspects.count else { return }
      // The remaining parents may be a cycle that the root does not reach.
      for record in reachability.unreached(from: suspects[next]) {
        tree.leave(record)
        events.detached(record, tree)
        open.append(record)
      }
      next += 1
    }
  }
}

/// Determines whether the root of a scope reaches a model, by climbing from parent to parent: over
/// all properties, or only over synced ones.
///
/// Results stay valid for the duration of one change, because only unreached models leave the
/// scope. No model is visited twice, and n queries on a graph of n links cost O(n).
struct Reachability {
  private let tree: ModelTree
  private var reached: Set<ObjectIdentifier> = []
  /// The number of models visited, for tests.
  private(set) var visits = 0

  private let onlySynced: Bool

  init(_ tree: ModelTree, onlySynced: Bool = false) {
    self.tree = tree
    self.onlySynced = onlySynced
  }

  /// Returns the model, and those of its ancestors that were visited, if the root does not reach
  /// them; empty if it does.
  mutating func unreached(from suspect: ModelRecord) -> ContiguousArray<ModelRecord> {
    guard suspect.tree === tree, !isReached(suspect) else { return [] }
    if let link = suspect.parents.link(at: 0), !onlySynced || link.isSynced, isReached(link.parent)
    {
      reached.insert(ObjectIdentifier(suspect))
      return []
    }
    var climb = Climb(suspect)
    defer { visits += climb.nodes.count }
    while let (node, link) = climb.nextLink() {
      guard link.parent.tree === tree, !onlySynced || link.isSynced else { continue }
      if isReached(link.parent) {
        let (reached, unreached) = climb.split()
        for record in reached { self.reached.insert(ObjectIdentifier(record)) }
        return unreached
      }
      climb.add(link.parent, above: node)
    }
    return climb.nodes
  }

  private func isReached(_ record: ModelRecord) -> Bool {
    tree.isRoot(record) || reached.contains(ObjectIdentifier(record))
  }

  /// The state of a depth-first climb.
  private struct Climb {
    var nodes: ContiguousArray<ModelRecord>
    private var places: [ObjectIdentifier: Int] = [:]
    /// The nodes below each node.
    private var below: [[Int]] = [[]]
    /// The current path, with the index of the next parent to try at each node.
    private var path: [(node: Int, next: Int)] = [(0, 0)]

    init(_ start: ModelRecord) {
      nodes = [start]
      places[ObjectIdentifier(start)] = 0
    }

    mutating func nextLink() -> (node: Int, link: ParentLinks.Link)? {
      while let (node, next) = path.last {
        if let link = nodes[node].parents.link(at: next) {
          path[path.count - 1].next += 1
          return (node, link)
        }
        path.removeLast()
      }
      return nil
    }

    mutating func add(_ record: ModelRecord, above node: Int) {
      if let known = places[ObjectIdentifier(record)] {
        below[known].append(node)
        return
      }
      places[ObjectIdentifier(record)] = nodes.count
      path.append((nodes.count, 0))
      nodes.append(record)
      below.append([node])
    }

    /// Splits the nodes once the climb has arrived at the root. The nodes on and below the path are
    /// reached; all others are not, since the climb found no way on from them.
    func split() -> (reached: [ModelRecord], unreached: ContiguousArray<ModelRecord>) {
      var isReached = [Bool](repeating: false, count: nodes.count)
      var open = path.map(\.node)
      for node in open { isReached[node] = true }
      while let node = open.popLast() {
        for lower in below[node] where !isReached[lower] {
          isReached[lower] = true
          open.append(lower)
        }
      }
      var reached: [ModelRecord] = []
      var unreached: ContiguousArray<ModelRecord> = []
      for (node, record) in nodes.enumerated() {
        if isReached[node] { reached.append(record) } else { unreached.append(record) }
      }
      return (reached, unreached)
    }
  }
}

/// Visits all ancestors of a model.
enum TreeWalk {
  /// Calls `visit` once for each ancestor, a parent before its own parents. Does not climb beyond
  /// an ancestor for which it returns false. Cost: O(n) for n ancestors.
  static func ancestors(of record: ModelRecord, _ visit: (ModelRecord) -> Bool) {
    if record.parents.isEmpty { return }
    var stack: ContiguousArray<ModelRecord> = []
    var visited: Set<ObjectIdentifier> = [ObjectIdentifier(record)]
    record.parents.forEach { stack.append($0.parent) }
    while let next = stack.popLast() {
      guard visited.insert(ObjectIdentifier(next)).inserted else { continue }
      if visit(next) { next.parents.forEach { stack.append($0.parent) } }
    }
  }
}

extension ContiguousArray {
  /// Reverses the elements from `start` on, in place. Reversing a slice would copy the whole
  /// storage.
  mutating func reverse(from start: Int) {
    var low = start
    var high = count - 1
    while low < high {
      swapAt(low, high)
      low += 1
      high -= 1
    }
  }
}
