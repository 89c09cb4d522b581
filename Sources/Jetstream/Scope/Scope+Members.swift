import Foundation

/// Collecting models that enter and leave.
extension Scope: TreeKeeper {
  /// Collects the entry of a model: it is new, unless it comes from another replica or has only been away since the
  /// last change set.
  func entered(_ record: ModelRecord, below: Bool) {
    if record.captureTree === tree {
      // It has only been away; what holds it now may be local.
      if !record.isNew { tree.loosen(record) }
    } else {
      record.captureTree?.scope?.giveAway(record)
      record.dropBases()
      record.captureTree = tree
      // The scope that it has left keeps it, but from here on this one may have to as well.
      record.isKeptAsLeft = false
      record.isNew = !isWritingRemotely || (below && schedule.isApplying && isLocalAddition(record))
      if record.isNew {
        interval.entered.append(record)
        startCollecting()
      }
    }
    if record.observers != nil || unknown != nil { unknownEnters(record) }
  }

  /// Returns true if only local properties, properties of the model itself or properties with local changes hold
  /// the model: so other replicas do not know it, although a change of theirs brings it into the scope.
  private func isLocalAddition(_ record: ModelRecord) -> Bool {
    record.parents.all.allSatisfy {
      $0.parent === record || $0.parent.captureTree !== tree || $0.parent.isNew || !$0.isSynced
        || $0.parent.isChanged($0.index)
    }
  }

  /// Collects the departure of a model, which is kept until other replicas know of it.
  func left(_ record: ModelRecord) {
    if let unknown { unknownLeaves(record, from: unknown) }
    if record.isNew, let modification, let model = record.model {
      modification.departed.append(model)
    } else if modification != nil, record.isKeptAsLeft {
      // It has left before, and the change that brought it back is being undone.
      startCollecting()
    } else if record.isNew || (isWritingRemotely && modification == nil) {
      // Other replicas may still have it in a model that has left, or where a local change hides it.
      if !record.isNew, hasCollectedChanges || !interval.departed.states.isEmpty {
        remember(record)
      }
      forget(record)
    } else if let model = record.model {
      // Within a call of `modify` also if another replica has taken it out: a rollback may restore the property in
      // which that replica still has it, and then the same object returns.
      interval.departed.keep(model)
      startCollecting()
    }
  }

  /// True if the model has left since the last change set and has not returned.
  func hasLeft(_ record: ModelRecord) -> Bool {
    record.tree == nil && record.captureTree === tree && !record.isNew
  }

  /// Returns the model with this UUID that has left since the last change set.
  func modelThatLeft(_ uuid: UUID) -> ModelObject? {
    guard let model = interval.departed.model(uuid), let record = model.record, hasLeft(record)
    else {
      return nil
    }
    return model
  }

  /// Stops collecting the changes of a model.
  func forget(_ record: ModelRecord) {
    record.isNew = false
    record.captureTree = nil
    record.dropBases()
  }

  func loosened(_ record: ModelRecord) {
    interval.loosened.append(record)
    // The next tick checks it even if the app changes nothing else.
    if !schedule.isApplying, modification == nil { startCollecting() }
  }
}

extension ModelTree {
  /// The scope that keeps the tree; nil while it is being released.
  var scope: Scope? { keeper.map(\.scope) }
}

extension TreeKeeper {
  /// The keeper as the scope that it is. Safe, since no other type keeps trees; debug builds check that.
  var scope: Scope { unsafeDowncast(self, to: Scope.self) }
}

extension ModelObject {
  /// The scope whose root reaches this model; nil if there is none.
  public final var scope: Scope? { record?.tree?.scope }
}
