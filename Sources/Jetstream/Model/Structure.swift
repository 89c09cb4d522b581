/// Keeps the tree: who holds whom, and what the root reaches.
///
/// Everything here is bookkeeping; callbacks run afterwards, from ``StructureEvents``. Attaching and
/// detaching a tree of n models costs O(n) and does not recurse.
enum Structure {
  /// `parent` holds `child` in property `index` from now on. False, and nothing has changed, if that
  /// would bring a model into two scopes.
  @discardableResult
  static func link(
    _ child: ModelObject, to parent: ModelRecord, index: Int, _ events: inout StructureEvents
  ) -> Bool {
    let record = child.ensureRecord()
    if let scope = parent.scope, !attach(record, to: scope, &events) { return false }
    record.parents.add(.init(parent: parent, index: index))
    if parent.scope != nil { record.scopedParents += 1 }
    events.parentAdded(record, parent, index)
    return true
  }

  /// `parent` does not hold `child` in property `index` any more.
  static func unlink(
    _ child: ModelObject, from parent: ModelRecord, index: Int, _ events: inout StructureEvents
  ) {
    guard let record = child.record,
      record.parents.remove(.init(parent: parent, index: index))
    else { return }
    events.parentRemoved(record, parent, index)
    guard let scope = parent.scope, record.scope === scope else { return }
    record.scopedParents -= 1
    if scope.isRoot(record) { return }
    if record.scopedParents == 0 || !reachesRoot(record, of: scope) {
      detach(record, from: scope, &events)
    }
  }

  /// Brings `top` and all that it holds into `scope`. False, and nothing has changed, if a model
  /// below belongs to another scope, or if two have the same UUID.
  static func attach(
    _ top: ModelRecord, to scope: Scope, _ events: inout StructureEvents
  ) -> Bool {
    if top.scope === scope { return true }
    guard canEnter(top, scope) else { return false }
    var attached: ContiguousArray<ModelRecord> = []
    var stack: ContiguousArray<ModelRecord> = [top]
    scope.enter(top)
    var refused = false
    while let record = stack.popLast(), !refused {
      attached.append(record)
      let bottom = stack.count
      record.forEachChild { child, _ in
        let below = child.ensureRecord()
        below.scopedParents += 1
        if below.scope === scope { return }
        if canEnter(below, scope) {
          scope.enter(below)
          stack.append(below)
        } else {
          refused = true
        }
      }
      stack[bottom...].reverse()
    }
    if refused {
      for record in attached {
        record.forEachChild { child, _ in child.record?.scopedParents -= 1 }
      }
      for record in attached + stack { scope.leave(record, isRefused: true) }
      return false
    }
    for record in attached { events.attached(record, scope) }
    return true
  }

  private static func canEnter(_ record: ModelRecord, _ scope: Scope) -> Bool {
    if let other = record.scope {
      scope.refuse(.modelInTwoScopes(record.schema.wireName, record.uuid, other.name, scope.name))
      return false
    }
    if let other = scope.record(of: record.uuid), other !== record {
      scope.refuse(.duplicateUUID(record.schema.wireName, record.uuid))
      return false
    }
    guard scope.knows(record.schema) else {
      preconditionFailure(
        "Two classes are called \(record.schema.wireName) on the wire in scope \(scope.name): "
          + "\(record.schema.modelClass) and another one; override wireName in one of them.")
    }
    return true
  }

  /// Takes `top` out of `scope` with all that the root does not reach without it.
  static func detach(_ top: ModelRecord, from scope: Scope, _ events: inout StructureEvents) {
    var stack: ContiguousArray<ModelRecord> = [top]
    var suspects: ContiguousArray<ModelRecord> = []
    func leave(_ record: ModelRecord) {
      scope.leave(record, isRefused: false)
      record.scopedParents = 0
      events.detached(record, scope)
    }
    leave(top)
    while true {
      while let record = stack.popLast() {
        let bottom = stack.count
        record.forEachChild { child, _ in
          guard let below = child.record, below.scope === scope else { return }
          below.scopedParents -= 1
          if scope.isRoot(below) { return }
          if below.scopedParents == 0 {
            leave(below)
            stack.append(below)
          } else {
            suspects.append(below)
          }
        }
        stack[bottom...].reverse()
      }
      // What is left of the parents may be a cycle that the root does not reach any more.
      guard let suspect = suspects.popLast() else { return }
      if suspect.scope === scope, !reachesRoot(suspect, of: scope) {
        leave(suspect)
        stack.append(suspect)
      }
    }
  }

  private static func reachesRoot(_ record: ModelRecord, of scope: Scope) -> Bool {
    var found = false
    TreeWalk.ancestors(of: record) { ancestor in
      guard ancestor.scope === scope else { return false }
      found = found || scope.isRoot(ancestor)
      return !found
    }
    return found
  }
}

/// Walks up from a model to everything that holds it.
enum TreeWalk {
  /// Calls `visit` once for each ancestor, nearest first; an ancestor for which it returns false is
  /// not climbed beyond. Cost: O(ancestors).
  static func ancestors(of record: ModelRecord, _ visit: (ModelRecord) -> Bool) {
    var stack: ContiguousArray<ModelRecord> = []
    var visited: Set<ObjectIdentifier> = []
    var needsSet = false
    record.parents.forEach { stack.append($0.parent) }
    while let next = stack.popLast() {
      // A chain of single parents needs no set until it is long enough to be a cycle.
      if stack.count > 0 || next.parents.count > 1 || visited.count > 0 { needsSet = true }
      if needsSet, !visited.insert(ObjectIdentifier(next)).inserted { continue }
      if next === record { continue }
      if visit(next) { next.parents.forEach { stack.append($0.parent) } }
    }
  }
}

/// What the bookkeeping found out, to be told to observers once it is done.
struct StructureEvents {
  private enum Event {
    case parentAdded(ModelObject, ParentChange)
    case parentRemoved(ModelObject, ParentChange)
    case attached(ModelObject, Scope)
    case detached(ModelObject, Scope)
  }

  private var events: ContiguousArray<Event> = []

  mutating func parentAdded(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    guard record.observers?.parentAdded != nil, let model = record.model,
      let change = ParentChange(parent, index)
    else { return }
    events.append(.parentAdded(model, change))
  }

  mutating func parentRemoved(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    guard record.observers?.parentRemoved != nil, let model = record.model,
      let change = ParentChange(parent, index)
    else { return }
    events.append(.parentRemoved(model, change))
  }

  mutating func attached(_ record: ModelRecord, _ scope: Scope) {
    guard record.observers?.attach != nil, let model = record.model else { return }
    events.append(.attached(model, scope))
  }

  mutating func detached(_ record: ModelRecord, _ scope: Scope) {
    guard record.observers?.detach != nil, let model = record.model else { return }
    events.append(.detached(model, scope))
  }

  var isEmpty: Bool { events.isEmpty }

  func fire() {
    for event in events {
      switch event {
      case .parentAdded(let model, let change): model.record?.observers?.parentAdded?.fire(change)
      case .parentRemoved(let model, let change):
        model.record?.observers?.parentRemoved?.fire(change)
      case .attached(let model, let scope): model.record?.observers?.attach?.fire(scope)
      case .detached(let model, let scope): model.record?.observers?.detach?.fire(scope)
      }
    }
  }
}
