import Foundation

/// A call of `modify` that is under way, with those that have joined it.
final class Modification {
  /// What the caller gets. Its set is empty, but for id, author and message.
  let handle: ChangeSetHandle
  /// Models that came and went within the call, or that others do not know: kept, since rolling back may
  /// need them.
  var departed: [ModelObject] = []

  init(_ set: ChangeSet) { handle = ChangeSetHandle(set) }

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
    case model(ModelObject?)
    case list(ModelList)
  }

  let model: ModelObject
  let property: ModelSchema.Property
  let value: Value

  /// The same as what a record keeps of it.
  var base: ModelRecord.Base.Value {
    switch value {
    case .json(let json): .json(json)
    case .model(let model): .json(model?.jsonValue ?? .null)
    case .list(let list): .list(list)
    }
  }

  /// Gives the property this value.
  func restore() -> Bool {
    switch value {
    case .json(let json): property.access.assign(json, to: model, at: property.offset)
    case .model(let child): property.access.assign(child, to: model, at: property.offset)
    case .list(let list): property.access.assign(list, to: model, at: property.offset)
    }
  }
}

/// What a model had changed when a call of `modify` joined another one.
struct SetAside {
  let record: ModelRecord
  let bases: ContiguousArray<ModelRecord.Base>
}
