import Foundation

/// The changes of one call of `modify`: the models that it has changed, with the bases of their properties.
///
/// Those of the innermost call are on the models themselves (``ModelRecord/bases``), where each write needs them.
struct Layer {
  /// The models in the order in which they were changed.
  private(set) var records: ContiguousArray<ModelRecord> = []
  private var bases: [ObjectIdentifier: ModelRecord.Bases] = [:]

  /// Takes the collected changes away from the models.
  init(takenFrom changed: ContiguousArray<ModelRecord>) {
    // A model that has left and returned is in the list twice.
    for record in changed where !record.bases.isEmpty {
      records.append(record)
      bases[ObjectIdentifier(record)] = record.bases
      record.dropBases()
    }
  }

  /// The bases of a model. Nil if the call has not changed it.
  subscript(record: ModelRecord) -> ModelRecord.Bases? {
    get { bases[ObjectIdentifier(record)] }
    set { bases[ObjectIdentifier(record)] = newValue }
  }
}

/// The value of a property at the moment when a call of `modify` began.
struct SavedValue {
  let model: ModelObject
  let property: ModelSchema.Property
  /// The value; steps of a collection have become its content.
  let value: ModelRecord.Base.Value

  init(_ base: ModelRecord.Base, of property: ModelSchema.Property, in model: ModelObject) {
    (self.model, self.property) = (model, property)
    if case .steps(let steps) = base.value {
      value = .list(steps.undone(on: model.list(of: property)))
    } else {
      value = base.value
    }
  }

  /// Gives the property the saved value.
  func restore() {
    switch value {
    case .plain(_, let restore): restore(model)
    case .json(let json): _ = property.access.assign(json, to: model, at: property.offset)
    case .model(let child): assign(child)
    case .list(let list): assign(list)
    case .table(let table): assign(table)
    case .steps: break
    }
  }

  /// Gives a collection or a dictionary the saved content with what was changed in it since, given its base `written`. A
  /// property of another kind keeps its value.
  func restore(beneath written: ModelRecord.Base) {
    switch value {
    case .list(let list):
      let now = model.list(of: property)
      if let before = written.list(now: now) { assign(list.merging(from: before, to: now)) }
    case .table(var table):
      guard let before = written.table else { return }
      for change in model.table(of: property).changes(since: before) {
        table[change.key] = change.new
      }
      assign(table)
    case .json, .plain, .model, .steps: break
    }
  }

  /// True if the property holds the same models as then.
  var isRestored: Bool {
    switch value {
    case .model(let child): heldModel === child
    case .list(let list): model.list(of: property).isSame(as: list)
    case .table(let table): model.table(of: property).isSame(as: table)
    case .json, .plain, .steps: true
    }
  }

  /// Takes the models out of the property that it did not hold then.
  func removeWhatCame() {
    switch value {
    case .model(let child):
      if heldModel !== child { assign(nil) }
    case .list(let list):
      let known = Set(list.models.map(ObjectIdentifier.init))
      let kept = model.list(of: property).models.filter { known.contains(ObjectIdentifier($0)) }
      assign(ModelList(kept))
    case .table(let table):
      var kept = model.table(of: property)
      for change in kept.changes(since: table) { kept[change.key] = nil }
      assign(kept)
    case .json, .plain, .steps: break
    }
  }

  private var heldModel: ModelObject? {
    property.access.model(at: model.address + property.offset)
  }

  private func assign(_ child: ModelObject?) {
    _ = property.access.assign(child, to: model, at: property.offset)
  }

  private func assign(_ list: ModelList) {
    _ = property.access.assign(list, to: model, at: property.offset)
  }

  private func assign(_ table: ModelTable) {
    _ = property.access.assign(table, to: model, at: property.offset)
  }
}
