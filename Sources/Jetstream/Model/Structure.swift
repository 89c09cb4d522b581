/// Keeps the tree: who holds whom, and what the root reaches.
///
/// Everything here is bookkeeping; callbacks run afterwards, from ``StructureEvents``. Attaching and
/// detaching a tree of n models costs O(n) and does not recurse.
enum Structure {
  /// `parent` holds `child` in property `index` from now on. An error, and nothing has changed, if
  /// that would bring a model into two scopes.
  static func link(
    _ child: ModelObject, to parent: ModelRecord, index: Int, _ events: inout StructureEvents
  ) -> ScopeError? {
    let record = child.ensureRecord()
    if let scope = parent.scope, let error = attach(record, to: scope, &events) { return error }
    record.parents.add(.init(parent: parent, index: index))
    if let scope = parent.scope {
      record.scopedParents += 1
      // A model that enters in a remote write counts as shared. Below a parent that only local properties hold it is
      // not: the scope looks for that once all is written.
      if scope.isWritingRemotely, parent.isNew { scope.loosen(record) }
    }
    events.parentAdded(record, parent, index)
    return nil
  }

  /// `parent` does not hold `child` in property `index` any more. Whether that detaches it is found
  /// out by ``settle(_:of:)``, after everything that is unlinked at once.
  static func unlink(
    _ child: ModelObject, from parent: ModelRecord, index: Int, _ events: inout StructureEvents
  ) {
    guard let record = child.record,
      record.parents.remove(.init(parent: parent, index: index))
    else { return }
    events.parentRemoved(record, parent, index)
    guard let scope = parent.scope, record.scope === scope else { return }
    record.scopedParents -= 1
    if !scope.isRoot(record) {
      events.suspects.append(child)
      scope.loosen(record)
    }
  }

  /// Detaches what was unlinked and is not reached any more. While fragments are applied that waits
  /// for the last of them, since another one may say where the model has gone.
  static func settle(_ events: inout StructureEvents, of scope: Scope?) {
    guard let scope, !events.suspects.isEmpty else { return }
    let suspects = events.suspects
    events.suspects = []
    if scope.isWritingRemotely {
      scope.suspects.append(contentsOf: suspects)
    } else {
      detachUnreached(among: suspects, from: scope, &events)
    }
  }

  /// Brings `top` and all that it holds into `scope`. An error, and nothing has changed, if a model
  /// below belongs to another scope, or if two have the same UUID.
  static func attach(
    _ top: ModelRecord, to scope: Scope, _ events: inout StructureEvents
  ) -> ScopeError? {
    if top.scope === scope { return nil }
    if let error = scope.admit(top) { return error }
    var error: ScopeError?
    var admitted: ContiguousArray<ModelRecord> = []
    var stack: ContiguousArray<ModelRecord> = [top]
    while error == nil, let record = stack.popLast() {
      admitted.append(record)
      let bottom = stack.count
      record.forEachChild { child, _ in
        let below = child.ensureRecord()
        below.scopedParents += 1
        if error != nil || below.scope === scope { return }
        error = scope.admit(below)
        if error == nil { stack.append(below) }
      }
      stack.reverse(from: bottom)
    }
    if let error {
      for record in admitted {
        record.forEachChild { child, _ in child.record?.scopedParents -= 1 }
      }
      for record in admitted + stack { scope.expel(record) }
      return error
    }
    for record in admitted {
      scope.enter(record, below: record !== top)
      events.attached(record, scope)
    }
    return nil
  }

  /// Takes out of `scope` what the root does not reach any more, of models that have lost a parent
  /// and of all that they hold.
  static func detachUnreached(
    among suspects: some Sequence<ModelObject>, from scope: Scope,
    _ events: inout StructureEvents
  ) {
    var suspects = ContiguousArray(suspects.compactMap(\.record))
    var next = 0
    var reachability = Reachability(scope)
    var open: ContiguousArray<ModelRecord> = []
    while true {
      // Models that have left, with children that do not know it yet.
      while let record = open.popLast() {
        let bottom = open.count
        record.forEachChild { child, _ in
          guard let below = child.record, below.scope === scope else { return }
          below.scopedParents -= 1
          if scope.isRoot(below) { return }
          if below.scopedParents == 0 {
            scope.leave(below)
            events.detached(below, scope)
            open.append(below)
          } else {
            suspects.append(below)
            scope.loosen(below)
          }
        }
        open.reverse(from: bottom)
      }
      guard next < suspects.count else { return }
      // The parents that are left may be a cycle that the root does not reach.
      for record in reachability.unreached(from: suspects[next]) {
        scope.leave(record)
        events.detached(record, scope)
        open.append(record)
      }
      next += 1
    }
  }
}

/// Finds out whether the root of a scope reaches a model, by climbing from parent to parent: over
/// all properties, or only over those that are synced.
///
/// What was found out holds for the duration of one change, because only models that are not reached
/// leave: so no model is climbed over twice, and n questions about a graph of n links cost O(n).
struct Reachability {
  private let scope: Scope
  private var reached: Set<ObjectIdentifier> = []
  /// How many models were climbed over, for tests.
  private(set) var visits = 0

  private let onlySynced: Bool

  init(_ scope: Scope, onlySynced: Bool = false) {
    self.scope = scope
    self.onlySynced = onlySynced
  }

  /// The model, and others above it, if the root does not reach them; empty if it does.
  mutating func unreached(from suspect: ModelRecord) -> ContiguousArray<ModelRecord> {
    guard suspect.scope === scope, !isReached(suspect) else { return [] }
    if let link = suspect.parents.link(at: 0), !onlySynced || link.isSynced, isReached(link.parent)
    {
      reached.insert(ObjectIdentifier(suspect))
      return []
    }
    var climb = Climb(suspect)
    defer { visits += climb.nodes.count }
    while let (node, link) = climb.nextLink() {
      guard link.parent.scope === scope, !onlySynced || link.isSynced else { continue }
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
    scope.isRoot(record) || reached.contains(ObjectIdentifier(record))
  }

  /// A depth-first climb.
  private struct Climb {
    var nodes: ContiguousArray<ModelRecord>
    private var places: [ObjectIdentifier: Int] = [:]
    /// The nodes below each node.
    private var below: [[Int]] = [[]]
    /// Where the climb stands, with the number of the next parent to try.
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

    /// The climb has come to the root: what is below the path is reached; what is not, and was left
    /// behind without a way on, is not.
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

/// Walks up from a model to everything that holds it.
enum TreeWalk {
  /// Calls `visit` once for each ancestor, nearest first along each line; an ancestor for which it
  /// returns false is not climbed beyond. Cost: O(ancestors).
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
  /// Reverses what stands at `start` and behind it, in place. A slice would share the storage and
  /// have all of it copied.
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
