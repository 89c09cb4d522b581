import Foundation

/// A running call of `modify`, with the nested calls that have joined it.
final class Modification {
  /// The handle that the caller gets. Its change set is empty until it is sealed, but has its id, author and
  /// message.
  let handle: ChangeSetHandle
  /// Models that entered and left within the call, or that other replicas do not know: kept, since a rollback may
  /// need them.
  var departed: [ModelObject] = []
  /// The values of properties when the innermost call began.
  let originals = OriginalValues()
  /// The changes of the calls around the innermost one, the outermost first.
  var aside: [SetAside] = []
  /// The conflicts that leave the ledger when the outermost call ends.
  var retried: [Conflict.ID] = []
  /// True once the outermost call has thrown: changes that observers make during the rollback are not part of it.
  var isOver = false
  /// The number of times that the scope has refused something during the call.
  var refusals = 0
  /// True during a rollback: models that leave meanwhile may be about to return.
  var isRollingBack = false

  init(_ set: ChangeSet) { handle = ChangeSetHandle(set) }

  /// Returns the index in ``aside`` of the outermost call that has changed a property. Nil if only the innermost
  /// call has.
  func asideLevel(of index: Int, in record: ModelRecord) -> Int? {
    aside.firstIndex { $0.base(of: index, in: record) != nil }
  }

  /// Adds the options and labels of a nested call.
  func join(_ other: ChangeSet) {
    if other.isAtomic { handle.changeSet.isAtomic = true }
    handle.changeSet.message = handle.changeSet.message ?? other.message
    handle.changeSet.author = handle.changeSet.author ?? other.author
  }
}

/// The value of a property at the moment when a call of `modify` began.
struct SavedValue {
  enum Value {
    case json(JSONValue)
    case list(ModelList)
    case table(ModelTable)
  }

  let model: ModelObject
  let property: ModelSchema.Property
  let value: Value
  let original: OriginalValues.Original?

  /// The saved value in the form in which records keep it.
  var base: ModelRecord.Base.Value {
    switch value {
    case .json(let json): .json(json)
    case .list(let list): .list(list)
    case .table(let table): .table(table)
    }
  }

  /// Gives the property the saved value.
  func restore() {
    switch (value, original) {
    case (_, .plain(let write)): write(model)
    case (_, .model(let child)): _ = property.access.assign(child, to: model, at: property.offset)
    case (.json(let json), nil): _ = property.access.assign(json, to: model, at: property.offset)
    case (.list(let list), nil): _ = property.access.assign(list, to: model, at: property.offset)
    case (.table(let table), nil): _ = property.access.assign(table, to: model, at: property.offset)
    }
  }

  /// True if the property holds the same models as then.
  var isRestored: Bool {
    switch (value, original) {
    case (_, .model(let child)):
      property.access.model(at: model.address + property.offset) === child
    case (.list(let list), _): model.list(of: property).isSame(as: list)
    case (.table(let table), _): model.table(of: property).isSame(as: table)
    case (.json, _): true
    }
  }

  /// Takes the models out of the property that it did not hold then.
  func removeWhatCame() {
    switch (value, original) {
    case (_, .model(let child)):
      if property.access.model(at: model.address + property.offset) === child { return }
      _ = property.access.assign(nil as ModelObject?, to: model, at: property.offset)
    case (.list(let list), _):
      let known = Set(list.models.map(ObjectIdentifier.init))
      let kept = model.list(of: property).models.filter { known.contains(ObjectIdentifier($0)) }
      _ = property.access.assign(ModelList(kept), to: model, at: property.offset)
    case (.table(let table), _):
      var kept = model.table(of: property)
      for change in kept.changes(since: table) { kept[change.key] = nil }
      _ = property.access.assign(kept, to: model, at: property.offset)
    case (.json, _): break
    }
  }
}

/// The changes that were collected before a nested call of `modify` began.
struct SetAside {
  /// The models in the order in which they were changed.
  let records: ContiguousArray<ModelRecord>
  private(set) var bases: [ObjectIdentifier: ModelRecord.Bases]
  /// The original values of the changed properties.
  var originals: [OriginalValues.Place: OriginalValues.Original]

  /// Takes the collected changes away from the models.
  init(
    _ changed: ContiguousArray<ModelRecord>,
    _ originals: [OriginalValues.Place: OriginalValues.Original]
  ) {
    var records: ContiguousArray<ModelRecord> = []
    var bases: [ObjectIdentifier: ModelRecord.Bases] = [:]
    // A model that has left and returned is in the list twice.
    for record in changed where !record.bases.isEmpty {
      records.append(record)
      bases[ObjectIdentifier(record)] = record.bases
      record.dropBases()
    }
    (self.records, self.bases, self.originals) = (records, bases, originals)
  }

  func base(of index: Int, in record: ModelRecord) -> ModelRecord.Base? {
    bases[ObjectIdentifier(record)]?[index]
  }

  mutating func setBase(_ value: ModelRecord.Base.Value, of index: Int, in record: ModelRecord) {
    bases[ObjectIdentifier(record)]?.set(value, of: index)
  }
}
