import Foundation

/// Applying operations on collections and counters.
extension FragmentWriter {
  /// Applies the operations of one property in order. An operation that cannot be applied is reported and left out.
  mutating func perform(
    _ entry: PropertyOperations.Entry, on model: ModelObject, at position: Int
  ) {
    guard let property = model.schema[wireName: entry.key] else {
      return perform(entry, onUnknownOf: model, at: position)
    }
    guard property.isSynced else { return }
    if property.isCollection {
      edit(property, of: model, entry.operations, at: position)
    } else {
      add(entry.operations, to: property, of: model, at: position)
    }
  }

  /// Notes the unknown properties of a fragment whose model has no object.
  mutating func noteUnknown(in fragment: SyncFragment) {
    let schema = scope.schema(of: fragment)
    for (key, value) in fragment.properties where schema?[wireName: key] == nil {
      unknownValues.append(value)
    }
    for entry in fragment.operations where schema?[wireName: entry.key] == nil {
      note(entry.operations)
    }
  }

  /// Notes operations on an unknown property, with the models that they name.
  mutating func note(_ operations: [PropertyOperation]) {
    for operation in operations {
      unknownValues.append(operation.model.map { .string($0.wireText) } ?? .null)
    }
  }

  // MARK: Collections

  private mutating func edit(
    _ property: ModelSchema.Property, of model: ModelObject, _ operations: [PropertyOperation],
    at position: Int
  ) {
    var steps: [ListEdit] = []
    steps.reserveCapacity(operations.count)
    for operation in operations {
      switch operation {
      case .insert(let uuid, let place):
        guard let child = child(uuid, property, model, at: position) else { continue }
        steps.append(.put(child, resolve(place, of: uuid), isNew: true))
      case .move(let uuid, let place):
        guard let child = find(uuid) ?? modelElsewhere(uuid, property, model) else { continue }
        steps.append(.put(child, resolve(place, of: uuid), isNew: false))
      case .remove(let uuid):
        guard let child = find(uuid) ?? modelElsewhere(uuid, property, model) else { continue }
        steps.append(.takeOut(child))
      case .add:
        fail(position, invalid(property, model))
      }
    }
    if steps.isEmpty { return }
    let record = model.ensureRecord()
    if !isLocal, record.isChanged(property.index) {
      let known = record.knownLists(of: property.index, now: model.list(of: property))
      guard var list = known.first else { return }
      for step in steps { step.perform(on: &list, scope) }
      rebase(property, of: model, on: list)
    } else {
      remotely {
        property.access.edit(model, at: property.offset) { [scope] list in
          for step in steps { step.perform(on: &list, scope) }
        }
        return true
      }
    }
  }

  /// Returns a model that other replicas have in a collection, and that has left this scope for another one.
  private func modelElsewhere(
    _ uuid: UUID, _ property: ModelSchema.Property, _ model: ModelObject
  ) -> ModelObject? {
    guard !isLocal, scope.interval.departed.states[uuid] != nil, let record = model.record,
      record.isChanged(property.index)
    else { return nil }
    let known = record.knownLists(of: property.index, now: model.list(of: property))
    return known.first?.models.first { $0.uuid == uuid }
  }

  /// Returns a place for a model, which is no predecessor of itself.
  private func resolve(_ place: PropertyOperation.Place, of uuid: UUID) -> ListEdit.Place {
    switch place {
    case .start: .start
    case .end: .end
    case .after(let others): .after(others.filter { $0 != uuid }.compactMap(find))
    }
  }

  /// A collection operation with its models resolved.
  private enum ListEdit {
    enum Place {
      case start
      case end
      case after([ModelObject])
    }

    case put(ModelObject, Place, isNew: Bool)
    case takeOut(ModelObject)

    func perform(on list: inout ModelList, _ scope: Scope) {
      switch self {
      case .takeOut(let model):
        if let at = Self.index(of: model, in: list, scope) { list.remove(at: at) }
      case .put(let model, let place, let isNew):
        guard let from = Self.index(of: model, in: list, scope) else {
          if isNew { list.insert(model, at: Self.position(place, in: list, scope)) }
          return
        }
        var to = Self.position(place, in: list, scope)
        // The model itself does not count for its new position.
        if from < to { to -= 1 }
        list.move(from: from, to: to)
      }
    }

    private static func position(_ place: Place, in list: ModelList, _ scope: Scope) -> Int {
      switch place {
      case .start: return 0
      case .end: return list.count
      case .after(let others):
        for other in others {
          if let at = index(of: other, in: list, scope) { return at + 1 }
        }
        return list.count
      }
    }

    /// Returns the index of the model, or of the instance with its UUID that has left and whose place it has taken.
    private static func index(of model: ModelObject, in list: ModelList, _ scope: Scope) -> Int? {
      if let at = list.index(of: model) { return at }
      if !scope.interval.departed.models.isEmpty, let left = scope.modelThatLeft(model.uuid) {
        return list.index(of: left)
      }
      guard scope.interval.departed.states[model.uuid] != nil else { return nil }
      return list.models.firstIndex { $0.uuid == model.uuid }
    }
  }

  // MARK: Counters

  private mutating func add(
    _ operations: [PropertyOperation], to property: ModelSchema.Property, of model: ModelObject,
    at position: Int
  ) {
    let additions = operations.filter { $0.model == nil }
    if additions.count < operations.count { fail(position, invalid(property, model)) }
    guard let range = property.counterRange else {
      return fail(position, invalid(property, model))
    }
    let record = model.ensureRecord()
    if !isLocal, record.isChanged(property.index),
      let known = record.knownJSON(of: property.index)
    {
      let sum = PropertyOperation.apply(additions, to: known, within: range)
      if rebase(property, of: model, on: sum, within: range) { return }
      return fail(position, invalid(property, model))
    }
    for delta in Self.deltas(of: additions, to: property, of: model, within: range) {
      var isNumber = false
      remotely {
        isNumber = property.access.add(delta, to: model, at: property.offset)
        return isNumber
      }
      if !isNumber { return fail(position, invalid(property, model)) }
    }
  }

  /// Returns the additions to a counter in as few steps as possible: observers do not see additions that cancel
  /// each other.
  private static func deltas(
    of operations: [PropertyOperation], to property: ModelSchema.Property, of model: ModelObject,
    within range: CounterRange
  ) -> [Int64] {
    if operations.count > 1,
      let sum = range.difference(of: model.json(of: property), after: operations)
    {
      return sum == 0 ? [] : [sum]
    }
    return operations.compactMap { if case .add(let delta) = $0 { delta } else { nil } }
  }

  // MARK: What no class knows

  private mutating func perform(
    _ entry: PropertyOperations.Entry, onUnknownOf model: ModelObject, at position: Int
  ) {
    let value = PropertyOperation.apply(
      entry.operations, to: model.unknownValue(entry.key), within: .unknown)
    if leaves(entry.key, of: model, as: value, at: position) { return }
    note(entry.operations)
    model.ensureRecord().keepUnknown([entry.key: value])
  }
}
