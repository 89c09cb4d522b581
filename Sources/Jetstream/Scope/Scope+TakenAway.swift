import Foundation

/// Models that other replicas have removed, and that only local changes still hold.
extension Scope {
  /// Finds the models that uncollected local changes have put somewhere and that other replicas no longer have: the
  /// next change set adds them as new models. Cost: O(n) in the changes, and a climb to the root for each model.
  func findTakenAway() {
    guard interval.othersWrote else { return }
    interval.othersWrote = false
    var known = KnownTree(self)
    var open = known.put
    while let record = open.popLast() {
      guard record.tree === tree, !record.isNew, !known.contains(record.uuid) else { continue }
      record.dropBases()
      record.isNew = true
      interval.entered.append(record)
      record.forEachChild { child, index in
        if record.schema.properties[index].isSynced, let below = child.record { open.append(below) }
      }
    }
  }
}

/// The tree as other replicas know it, for climbing from a model to the root.
private struct KnownTree {
  private let scope: Scope
  /// The models that properties of this replica have come to hold since the last change set.
  private(set) var put: ContiguousArray<ModelRecord> = []
  /// The same models by the property that holds them.
  private var putInto: [ParentLinks.Link: Set<ObjectIdentifier>] = [:]
  /// The models that hold a model at other replicas, but not here.
  private var holders: [UUID: [UUID]] = [:]
  /// The models known to be reachable from the root.
  private var reached: Set<UUID> = []

  init(_ scope: Scope) {
    self.scope = scope
    for record in scope.interval.changed where record.captureTree === scope.tree && !record.isNew {
      for change in record.modelChanges {
        for child in change.takenOut { holders[child, default: []].append(record.uuid) }
        if change.put.isEmpty { continue }
        putInto[.init(parent: record, index: change.index)] = Set(
          change.put.map(ObjectIdentifier.init))
        if record.tree === scope.tree { put += change.put }
      }
    }
    for (uuid, known) in scope.interval.departed.states {
      scope.forEachModel(namedBy: known) { holders[$0, default: []].append(uuid) }
    }
    if let root = scope.tree.rootRecord { reached.insert(root.uuid) }
  }

  /// Returns true if the model is reachable from the root.
  mutating func contains(_ uuid: UUID) -> Bool {
    var below: [UUID: UUID] = [:]
    var visited: Set<UUID> = [uuid]
    var open = [uuid]
    while let next = open.popLast() {
      if reached.contains(next) {
        var way: UUID? = next
        while let node = way {
          reached.insert(node)
          way = below[node]
        }
        return true
      }
      forEachHolder(of: next) { holder in
        guard visited.insert(holder).inserted else { return }
        below[holder] = next
        open.append(holder)
      }
    }
    return false
  }

  private func forEachHolder(of uuid: UUID, _ body: (UUID) -> Void) {
    holders[uuid]?.forEach(body)
    guard let record = scope.tree.record(of: uuid) ?? scope.modelThatLeft(uuid)?.record else {
      return
    }
    for link in record.parents.all where link.isSynced {
      let parent = link.parent
      guard parent.tree === scope.tree || scope.hasLeft(parent), !parent.isNew,
        putInto[link]?.contains(ObjectIdentifier(record)) != true
      else { continue }
      body(parent.uuid)
    }
  }
}

extension ModelRecord {
  /// The change of one property that holds models, since the last change set.
  fileprivate struct ModelChange {
    let index: Int
    /// The models that the property has come to hold.
    var put: [ModelRecord] = []
    /// The models that the property no longer holds.
    var takenOut: [UUID] = []
  }

  /// The changes of synced properties that hold models, since the last change set.
  fileprivate var modelChanges: [ModelChange] {
    guard let model else { return [] }
    return bases.all.compactMap { base in
      let property = schema.properties[base.index]
      guard property.isSynced, property.kind != .plain else { return nil }
      var change = ModelChange(index: base.index)
      if let old = base.table {
        let now = model.table(of: property)
        var (before, after): (Set<ModelObject>, Set<ModelObject>) = ([], [])
        old.forEach { before.insert($1) }
        now.forEach { after.insert($1) }
        for entry in now.changes(since: old) {
          if let child = entry.new, !before.contains(child) {
            change.put.append(child.ensureRecord())
          }
          if let child = entry.old, !after.contains(child) { change.takenOut.append(child.uuid) }
        }
        return change
      }
      if let old = base.json {
        old.forEachUUID { change.takenOut.append($0) }
        if let child = property.access.model(at: model.address + property.offset) {
          change.put = [child.ensureRecord()]
        }
        return change
      }
      let now = model.list(of: property)
      guard let steps = base.steps(now: now) else { return nil }
      let stretches = StepComposition(steps, newCount: now.count).stretches()
      change.takenOut = stretches.removed.map { $0.model.uuid }
      for stretch in stretches.new where stretch.isNew {
        for offset in 0..<stretch.count {
          change.put.append(now[stretch.newOffset + offset].ensureRecord())
        }
      }
      return change
    }
  }
}
