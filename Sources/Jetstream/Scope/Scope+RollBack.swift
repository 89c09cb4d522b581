import Foundation

/// Taking back what a call of `modify` has changed.
extension Scope {
  /// The values that properties had when what is collected began, of this replica's own changes.
  func savedValues() -> [SavedValue] {
    var models: [UUID: ModelObject]?
    func find(_ uuid: UUID) -> ModelObject? {
      if let model = model(uuid) { return model }
      if models == nil {
        models = [:]
        for model in left { models?[model.uuid] = model }
        for model in modification?.departed ?? [] { models?[model.uuid] = model }
      }
      return models?[uuid]
    }
    var result: [SavedValue] = []
    for record in changed where record.captureScope === self {
      guard let model = record.model else { continue }
      for base in record.bases {
        let property = record.schema.properties[base.index]
        let value: SavedValue.Value
        switch (base.value, property.kind) {
        case (.json(let json), .reference):
          var child: ModelObject?
          if case .string(let text) = json { child = UUID(wireText: text).flatMap(find) }
          value = .model(child)
        case (.json(let json), _): value = .json(json)
        case (.list(let list), _): value = .list(list)
        case (.steps(let steps), _): value = .list(steps.undone(on: model.list(of: property)))
        }
        result.append(SavedValue(model: model, property: property, value: value))
      }
    }
    return result
  }

  /// The closure of an outermost call has thrown.
  func rollBack(_ modification: Modification) {
    let values = savedValues()
    for record in changed { record.dropBases() }
    changed = []
    rollBack(modification, to: values, .rolledBack)
  }

  /// Everything that was changed is known as `values`, and nothing of it is collected any more.
  func rollBack(_ modification: Modification, to values: [SavedValue], _ error: ChangeSetError) {
    // Until the end, so that nothing is collected of a state in between.
    restore(values)
    end(modification)
    entered.removeAll { !($0.isNew && $0.scope === self) }
    let gone = takeLeft()
    for model in gone {
      guard let record = model.record, hasLeft(record) else { continue }
      record.isKeptAsLeft = true
      left.append(model)
    }
    withExtendedLifetime(gone) {}
    modification.handle.finish(.reverted, error)
  }

  /// Performs the closure of a call that joins another one. If it throws, what it has changed is taken
  /// back, and what was changed before is as before.
  func join<Failure>(_ body: () throws(Failure) -> Void) throws(Failure) {
    let before = changed.filter { !$0.bases.isEmpty }.map {
      SetAside(record: $0, bases: $0.bases)
    }
    for entry in before { entry.record.dropBases() }
    changed = []
    do { try body() } catch {
      let values = savedValues()
      for record in changed { record.dropBases() }
      changed = []
      restore(values)
      reinstate(before)
      throw error
    }
    reinstate(before)
  }

  /// What was collected before a call has joined comes before what was collected in it.
  private func reinstate(_ before: [SetAside]) {
    let known = Set(before.map { ObjectIdentifier($0.record) })
    let later = changed.filter { !known.contains(ObjectIdentifier($0)) }
    changed = []
    for entry in before where entry.record.captureScope === self {
      entry.record.reinstate(entry.bases)
      changed.append(entry.record)
    }
    changed += later
  }

  /// Gives properties the values that they had, without collecting it. What observers have written since
  /// stays visible.
  private func restore(_ values: [SavedValue]) {
    applying += 1
    for saved in values {
      let record = saved.model.ensureRecord()
      let index = saved.property.index
      if let place = record.bases.firstIndex(where: { $0.index == index }) {
        record.bases[place].value = saved.base
        continue
      }
      isWritingRemotely = true
      _ = saved.restore()
      isWritingRemotely = false
    }
    finishApplying()
  }
}

extension ModelRecord {
  /// Puts bases back that were set aside, in front of those that have come since.
  fileprivate func reinstate(_ before: ContiguousArray<Base>) {
    let later = bases
    bases = before
    captured = PropertySet()
    for base in before { captured.insert(base.index) }
    for base in later {
      guard let place = bases.firstIndex(where: { $0.index == base.index }) else {
        captured.insert(base.index)
        bases.append(base)
        continue
      }
      guard case .steps(let first) = bases[place].value else { continue }
      switch base.value {
      case .steps(let then): bases[place].value = .steps(first + then)
      case .list(let list): bases[place].value = .list(first.undone(on: list))
      case .json: break
      }
    }
  }
}

/// What it takes to roll back although a change set was made already.
struct WayBack {
  let values: [SavedValue]
  private let entered: ContiguousArray<ModelRecord>
  private let unshared: ContiguousArray<ModelRecord>
  private let throttle: SyncThrottle
  private let left: ContiguousArray<ModelObject>

  init(of scope: Scope) {
    values = scope.savedValues()
    entered = scope.entered.filter(\.isNew)
    unshared = scope.unshared
    throttle = scope.throttle
    left = scope.left
  }

  /// Nobody has been told of the set: what is new is still new.
  func prepare(_ scope: Scope) {
    let known = Set((entered + unshared).map(ObjectIdentifier.init))
    for record in scope.unshared where !known.contains(ObjectIdentifier(record)) {
      record.isNew = false
    }
    for record in entered + unshared where record.captureScope === scope { record.isNew = true }
    scope.entered = entered
    scope.unshared = unshared
    scope.throttle = throttle
  }
}
