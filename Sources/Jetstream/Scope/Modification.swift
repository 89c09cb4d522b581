import Foundation

/// A call of `modify` that is under way, with those that have joined it.
final class Modification {
  /// A property of a model.
  struct Place: Hashable {
    /// Held, so that no other one is ever taken for it.
    let record: ModelRecord
    let index: Int

    init(_ record: ModelRecord, _ index: Int) {
      self.record = record
      self.index = index
    }

    static func == (a: Place, b: Place) -> Bool { a.record === b.record && a.index == b.index }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(record))
      hasher.combine(index)
    }
  }

  /// The value of a property before the first write, as it was: JSON may tell less than all of it.
  enum Original {
    /// The model that a reference held.
    case model(ModelObject?)
    /// Writes a plain value again.
    case plain((ModelObject) -> Void)
  }

  /// What the caller gets. Its set is empty, but for id, author and message.
  let handle: ChangeSetHandle
  /// Models that came and went within the call, or that others do not know: kept, since rolling back may
  /// need them.
  var departed: [ModelObject] = []
  /// The values of properties as they were when the innermost call began. Collections are not among them:
  /// their steps lead back.
  var originals: [Place: Original] = [:]
  /// What the calls around the innermost one have changed, the outermost first.
  var aside: [SetAside] = []
  /// Conflicts that are over when the outermost call is.
  var retried: [Conflict.ID] = []
  /// Whether the outermost call has thrown: what observers do while it is taken back is not part of it.
  var isOver = false
  /// Whether changes are being taken back: what leaves meanwhile may be about to return.
  var isRollingBack = false

  init(_ set: ChangeSet) { handle = ChangeSetHandle(set) }

  /// Keeps the value before the first write.
  func keep(_ original: Original, of index: Int, in record: ModelRecord) {
    originals[Place(record, index)] = original
  }

  /// The outermost of the calls around the innermost one that have changed a property.
  func asideLevel(of index: Int, in record: ModelRecord) -> Int? {
    aside.firstIndex { $0.base(of: index, in: record) != nil }
  }

  /// What a call that joins this one wants as well.
  func join(_ other: ChangeSet) {
    if other.isAtomic { handle.set.isAtomic = true }
    handle.set.message = handle.set.message ?? other.message
    handle.set.author = handle.set.author ?? other.author
  }
}

/// A property as it was when a call of `modify` began.
struct SavedValue {
  enum Value {
    case json(JSONValue)
    case list(ModelList)
  }

  let model: ModelObject
  let property: ModelSchema.Property
  let value: Value
  let original: Modification.Original?

  /// The same as what a record keeps of it.
  var base: ModelRecord.Base.Value {
    switch value {
    case .json(let json): .json(json)
    case .list(let list): .list(list)
    }
  }

  /// Gives the property this value.
  func restore() {
    switch (value, original) {
    case (_, .plain(let write)): write(model)
    case (_, .model(let child)): _ = property.access.assign(child, to: model, at: property.offset)
    case (.json(let json), nil): _ = property.access.assign(json, to: model, at: property.offset)
    case (.list(let list), nil): _ = property.access.assign(list, to: model, at: property.offset)
    }
  }

  /// Whether the property holds the models that it held then.
  var isRestored: Bool {
    switch (value, original) {
    case (_, .model(let child)):
      property.access.model(at: model.address + property.offset) === child
    case (.list(let list), _): model.list(of: property).isSame(as: list)
    case (.json, _): true
    }
  }

  /// Takes out of the property the models that it did not hold then.
  func removeWhatCame() {
    switch (value, original) {
    case (_, .model(let child)):
      if property.access.model(at: model.address + property.offset) === child { return }
      _ = property.access.assign(nil as ModelObject?, to: model, at: property.offset)
    case (.list(let list), _):
      let known = Set(list.models.map(ObjectIdentifier.init))
      let kept = model.list(of: property).models.filter { known.contains(ObjectIdentifier($0)) }
      _ = property.access.assign(ModelList(kept), to: model, at: property.offset)
    case (.json, _): break
    }
  }
}

/// What was changed when a call of `modify` joined another one.
struct SetAside {
  /// The models in the order in which they were changed.
  let records: ContiguousArray<ModelRecord>
  private(set) var bases: [ObjectIdentifier: ContiguousArray<ModelRecord.Base>]
  /// The values of their properties as they were.
  var originals: [Modification.Place: Modification.Original]

  /// Takes what was changed away from the models.
  init(
    _ changed: ContiguousArray<ModelRecord>,
    _ originals: [Modification.Place: Modification.Original]
  ) {
    var records: ContiguousArray<ModelRecord> = []
    var bases: [ObjectIdentifier: ContiguousArray<ModelRecord.Base>] = [:]
    // Who has gone and come again stands there twice.
    for record in changed where !record.bases.isEmpty {
      records.append(record)
      bases[ObjectIdentifier(record)] = record.bases
      record.dropBases()
    }
    (self.records, self.bases, self.originals) = (records, bases, originals)
  }

  func base(of index: Int, in record: ModelRecord) -> ModelRecord.Base? {
    bases[ObjectIdentifier(record)]?.first { $0.index == index }
  }

  mutating func setBase(_ value: ModelRecord.Base.Value, of index: Int, in record: ModelRecord) {
    let key = ObjectIdentifier(record)
    guard let at = bases[key]?.firstIndex(where: { $0.index == index }) else { return }
    bases[key]![at].value = value
  }
}
