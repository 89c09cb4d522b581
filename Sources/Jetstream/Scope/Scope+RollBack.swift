import Foundation

/// Rolling back the changes of a call of `modify` that has thrown, or whose change set does not meet its
/// constraints.
extension Scope {
  /// True while the scope rolls back a call of `modify`.
  package var isRollingBack: Bool { modification?.isRollingBack == true }

  /// Returns the values that locally changed properties had when the current collection of changes began.
  func savedValues() -> [SavedValue] {
    var result: [SavedValue] = []
    for record in interval.changed where record.captureTree === tree {
      guard let model = record.model else { continue }
      for base in record.bases.all {
        result.append(SavedValue(base, of: record.schema.properties[base.index], in: model))
      }
    }
    return result
  }

  /// Takes the collected changes back from the models, and returns the values that their properties had before.
  private func takeSavedValues() -> [SavedValue] {
    let values = savedValues()
    for record in interval.changed { record.dropBases() }
    interval.changed = []
    return values
  }

  /// Rolls back an outermost call whose closure has thrown.
  func rollBack(_ modification: Modification) {
    rollBack(modification, to: takeSavedValues(), .rolledBack)
  }

  /// Gives the saved values back to the properties; none of these changes is collected any more.
  func rollBack(_ modification: Modification, to values: [SavedValue], _ error: ChangeSetError) {
    // Until the end, so that nothing is collected of a state in between.
    modification.isOver = true
    restore(values)
    end(modification)
    interval.changed.removeAll { $0.bases.isEmpty }
    interval.entered.removeAll { !($0.isNew && $0.tree === tree) }
    let gone = interval.departed.takeModels()
    for model in gone {
      if let record = model.record, hasLeft(record) { interval.departed.keep(model) }
    }
    withExtendedLifetime(gone) {}
    // A tick within the call has found nothing to do and does not come again.
    schedule.endInterval()
    if hasCollectedChanges || schedule.deferred != nil || incoming.opensLater
      || !interval.unshared.isEmpty
    {
      startCollecting()
    }
    modification.handle.finish(.rejected, error)
  }

  /// Performs the closure of a nested call. If it throws, its changes are rolled back, and the changes of the outer
  /// calls stay as they were.
  func join<Failure>(_ body: () throws(Failure) -> Void) throws(Failure) {
    // A closure that cannot throw needs no savepoint of its own.
    if Failure.self == Never.self { return try body() }
    guard let modification else { return try body() }
    modification.layers.append(Layer(takenFrom: interval.changed))
    interval.changed = []
    let retried = modification.retried
    defer { reinstate(modification.layers.removeLast()) }
    do { try body() } catch {
      modification.retried = retried
      restore(takeSavedValues())
      throw error
    }
  }

  /// Puts the changes of the outer calls back in front of those that a nested call has collected.
  private func reinstate(_ layer: Layer) {
    let later = interval.changed.filter { layer[$0] == nil }
    interval.changed = []
    for record in layer.records where record.captureTree === tree {
      if let bases = layer[record] { record.bases = bases.followed(by: record.bases) }
      interval.changed.append(record)
    }
    interval.changed += later
  }

  /// Gives properties their saved values, without collecting these changes. Values that observers have written
  /// since stay visible.
  private func restore(_ values: [SavedValue]) {
    let isWithin = isRollingBack
    modification?.isRollingBack = true
    schedule.beginApplying()
    if isPlaceTaken {
      for saved in values where saved.property.kind != .plain {
        if !saved.isWrittenSince { remotely(saved.removeWhatCame) }
      }
      settleSuspects()
    }
    let (isPartial, refusals) = (hasLostModels, modification?.refusals)
    // Models outside of the scope get their values back before they return, so that they bring no models along that
    // do not belong into the scope.
    let outside = values.filter { $0.model.scope !== self }
    let inside = values.filter { $0.model.scope === self }
    for saved in outside + inside {
      let index = saved.property.index
      guard let record = saved.model.record, let written = record.bases[index] else {
        remotely(saved.restore)
        continue
      }
      record.bases.set(saved.value, of: index)
      remotely { saved.restore(beneath: written) }
    }
    if isPartial || modification?.refusals != refusals {
      // Other replicas have to learn of models that cannot return, because they are in another scope, or because an
      // observer has put a model with the same UUID in their place.
      for saved in values where !saved.isWrittenSince && !saved.isRestored {
        // An enclosing call may be rolled back as well, and then the model may find its place again.
        saved.model.record?.keepBase(saved.property.index, saved.value)
      }
    }
    // Models that only local properties hold are found when a change set is made: this may not be the end.
    if schedule.endApplying() { settleSuspects() }
    modification?.isRollingBack = isWithin
  }

  /// True if another model with the same UUID has taken the place of a model that is about to return.
  private var isPlaceTaken: Bool {
    func isTaken(from model: ModelObject) -> Bool {
      guard let record = model.record, record.tree == nil, record.captureTree === tree else {
        return false
      }
      return self.model(record.uuid) != nil
    }
    return interval.departed.models.contains(where: isTaken)
      || modification?.departed.contains(where: isTaken) == true
  }

  /// True if a model that would return has gone into another scope, where it stays.
  private var hasLostModels: Bool {
    func isLost(_ model: ModelObject) -> Bool {
      model.scope.map { $0 !== self } ?? false
    }
    return interval.departed.models.contains(where: isLost)
      || modification?.departed.contains(where: isLost) == true
  }

  private func remotely(_ body: () -> Void) { tree.writeRemotely(body) }
}

extension SavedValue {
  /// True if an observer has written the property since the closure threw.
  fileprivate var isWrittenSince: Bool { model.ensureRecord().bases.contains(property.index) }
}

/// The state of a scope before a change set is made of its collected changes, so that a change set that does not meet its
/// constraints can still be rolled back.
struct WayBack {
  let values: [SavedValue]
  private var interval: Interval

  init(of scope: Scope) {
    values = scope.savedValues()
    interval = scope.interval
    interval.entered.removeAll { !$0.isNew }
  }

  /// Restores the collected changes after a change set was made that no listener has seen: new models are new
  /// again.
  func prepare(_ scope: Scope) {
    // A new model that has left is not in the change set, and still has its bases.
    for saved in values { saved.model.record?.dropBases() }
    let new = interval.entered + interval.unshared
    let known = Set(new.map(ObjectIdentifier.init))
    for record in scope.interval.unshared where !known.contains(ObjectIdentifier(record)) {
      record.isNew = false
    }
    for record in new where record.captureTree === scope.tree { record.isNew = true }
    for model in interval.departed.models {
      guard let record = model.record else { continue }
      if record.tree == nil, record.captureTree == nil { record.captureTree = scope.tree }
      record.isKeptAsLeft = true
    }
    var before = interval
    before.changed = scope.interval.changed
    before.loosened = scope.interval.loosened + before.loosened
    scope.interval = before
  }
}
