import Foundation

/// Models that only local properties hold.
///
/// For other replicas such a model does not exist. It counts as new: when a synced property holds it again, the
/// next change set adds it, unless another replica has put it there. A model that is not new is shared.
extension Scope {
  /// Returns the model with this UUID if it is in the scope and other replicas know it as of the last change set.
  /// Cost: O(1).
  package func sharedModel(_ uuid: UUID) -> ModelObject? {
    guard let record = tree.record(of: uuid), !record.isNew else { return nil }
    return record.model
  }

  /// Finds the shared models that only local properties hold by now. For other replicas they are gone, so they are
  /// new when a synced property holds them again.
  func findUnshared() {
    if interval.loosened.isEmpty { return }
    var reachability = Reachability(tree, onlySynced: true)
    var open = interval.loosened
    var looked: Set<ObjectIdentifier> = []
    interval.loosened = []
    while let record = open.popLast() {
      guard record.tree === tree, !tree.isRoot(record),
        reachability.unreached(from: record).contains(where: { $0 === record }),
        looked.insert(ObjectIdentifier(record)).inserted
      else { continue }
      if !record.isNew {
        withdraw(record)
        interval.unshared.append(record)
      }
      // A new model may hold models that are not new.
      record.forEachChild { child, _ in if let below = child.record { open.append(below) } }
    }
  }

  private func withdraw(_ record: ModelRecord) {
    tree.tell(of: record) { $0.modelWithdrawn($1) }
    remember(record)
    record.dropBases()
    record.isNew = true
  }

  /// Finds the models that only local properties held and that another replica has put into a synced property. They
  /// and the models below them are shared. Cost: O(n) in the models that only local properties hold.
  func findShared() {
    if interval.unshared.isEmpty { return }
    share(interval.unshared.filter { $0.tree === tree && $0.isNew && isHeldByOthers($0) })
  }

  /// Called before a model is put into a property by another replica. If only local properties hold the model, it
  /// becomes shared first: observers are called once it is in the property, and the values that they write then
  /// must be collected.
  func willHold(_ model: ModelObject, at index: Int, of parent: ModelRecord) {
    guard !interval.unshared.isEmpty, modification == nil, let record = model.record, record.isNew,
      record.tree === tree, interval.unshared.contains(where: { $0 === record }),
      isKnownToOthers(index, of: parent), parent !== record
    else { return }
    share([record])
    // A later fragment of the same message may take it out again.
    tree.loosen(record)
  }

  private func share(_ records: ContiguousArray<ModelRecord>) {
    if records.isEmpty { return }
    var open = records
    tree.writeRemotely {
      while let record = open.popLast() {
        guard record.isNew else { continue }
        record.dropBases()
        record.isNew = false
        tree.tell(of: record) { $0.modelShared($1) }
        record.forEachChild { child, index in
          guard record.schema.properties[index].isSynced, let below = child.record,
            below.tree === tree, below.isNew
          else { return }
          open.append(below)
        }
      }
    }
    interval.unshared.removeAll { !$0.isNew }
  }

  /// Returns true if a synced property holds the model at other replicas too: its parent is shared, and the
  /// property has no local changes since the last change set.
  private func isHeldByOthers(_ record: ModelRecord) -> Bool {
    record.parents.all.contains {
      $0.isSynced && $0.parent !== record && isKnownToOthers($0.index, of: $0.parent)
    }
  }

  /// Returns true if other replicas know the current value of a property.
  private func isKnownToOthers(_ index: Int, of record: ModelRecord) -> Bool {
    record.tree === tree && record.captureTree === tree && !record.isNew
      && !record.isChanged(index)
  }

  /// Takes models that only local properties hold out of the collected changes. They count as new while this lasts.
  /// For the other replicas that knew them, they have left.
  func holdBackUnshared() {
    guard tree.hasLocalReferences else { return }
    findUnshared()
    var reachability = Reachability(tree, onlySynced: true)
    var heldBack: Set<ObjectIdentifier> = []
    let known = interval.unshared
    let candidates = known + interval.entered
    interval.unshared = []
    interval.entered = []
    func isHeldBack(_ record: ModelRecord) -> Bool {
      // The unreached models may include models above this one although this one is reached another way.
      guard reachability.unreached(from: record).contains(where: { $0 === record }) else {
        return false
      }
      if heldBack.insert(ObjectIdentifier(record)).inserted { interval.unshared.append(record) }
      return true
    }
    for (at, record) in candidates.enumerated() where record.isNew && record.tree === tree {
      if isHeldBack(record) { continue }
      interval.entered.append(record)
      if at < known.count { tree.tell(of: record) { $0.modelShared($1) } }
    }
    for record in interval.changed where !record.bases.isEmpty && record.tree === tree {
      guard isHeldBack(record) else { continue }
      if record.isNew { record.dropBases() } else { withdraw(record) }
    }
  }
}

extension ModelObject {
  /// True if other replicas do not know the model as of the last change set, also while its scope tells that it leaves.
  package var isNewToOthers: Bool { record?.isNew == true }
}

extension ModelRecord {
  /// True if only local properties lead to the model, so that other replicas do not have it once the next change set is made.
  /// Cost: O(n) in the models above it, if the scope has local properties that hold models.
  var isUnshared: Bool {
    guard let tree, tree.hasLocalReferences else { return false }
    var reachability = Reachability(tree, onlySynced: true)
    return reachability.unreached(from: self).contains { $0 === self }
  }
}
