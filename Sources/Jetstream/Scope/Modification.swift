import Foundation

/// A call of `modify` that is under way, with those that have joined it.
final class Modification {
  /// A property of a model.
  struct Place: Hashable {
    private let record: ObjectIdentifier
    private let index: Int

    init(_ record: ModelRecord, _ index: Int) {
      self.record = ObjectIdentifier(record)
      self.index = index
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
  /// What the calls around the innermost one have changed, the outermost first, by model.
  var aside: [[ObjectIdentifier: ContiguousArray<ModelRecord.Base>]] = []
  /// Whether the outermost call has thrown: what observers do while it is taken back is not part of it.
  var isOver = false
  /// Whether changes are being taken back: what leaves meanwhile may be about to return.
  var isRollingBack = false

  init(_ set: ChangeSet) { handle = ChangeSetHandle(set) }

  /// Keeps the value before the first write.
  func keep(_ original: Original, of index: Int, in record: ModelRecord) {
    originals[Place(record, index)] = original
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

/// What a model had changed when a call of `modify` joined another one.
struct SetAside {
  let record: ModelRecord
  let bases: ContiguousArray<ModelRecord.Base>
}
