/// What follows a write to a property that holds models. The write's access has ended when these run,
/// so that an observer can read and write the property.
extension ModelObject {
  @usableFromInline
  final func didReplaceReference<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    let record = ensureRecord()
    let index = record.schema.index(atOffset: offset)
    let oldChild = Value._model(of: old)
    var events = StructureEvents()
    if let child = Value._model(of: new),
      !Structure.link(child, to: record, index: index, &events)
    {
      record.schema.properties[index].access.restore(old, in: self, at: offset)
      return
    }
    if let oldChild { Structure.unlink(oldChild, from: record, index: index, &events) }
    if record.needsBase(index) { record.keepBase(index, .json(old.jsonValue)) }
    record.noteChange(index)
    record.fire {
      if let signal = record.observers?.propertyChange, signal.hasListeners {
        signal.fire(PropertyChange(key: record.schema.properties[index].name, old: old, new: new))
      }
      events.fire()
    }
  }

  /// Whether the list at `offset` has to be kept before it is changed.
  @usableFromInline
  final func needsBase(at offset: Int) -> Bool {
    guard let record else { return false }
    return record.needsBase(record.schema.index(atOffset: offset))
  }

  @usableFromInline
  final func didModifyCollection<Value: PropertyValue>(
    at offset: Int, lease: ListLease, value: Value
  ) {
    guard let list = Value._list(of: value) else { return }
    let operations = lease.close(on: list)
    if operations.isEmpty { return }
    didChangeCollection(at: offset, by: operations, base: lease.before)
  }

  @usableFromInline
  final func didReplaceCollection<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    guard let oldList = Value._list(of: old), let newList = Value._list(of: new) else { return }
    let operations = ListDifference.operations(from: oldList, to: newList)
    if operations.isEmpty { return }
    didChangeCollection(at: offset, by: operations, base: oldList)
  }

  private final func didChangeCollection(
    at offset: Int, by operations: [ListOperation], base: ModelList?
  ) {
    let record = ensureRecord()
    let index = record.schema.index(atOffset: offset)
    var operations = operations
    var events = StructureEvents()
    // Insertions first: a model that only changes its place in the tree is not detached meanwhile.
    var refused: Set<ObjectIdentifier> = []
    for case .insert(let child, _) in operations
    where !Structure.link(child, to: record, index: index, &events) {
      refused.insert(ObjectIdentifier(child))
    }
    if !refused.isEmpty {
      operations = takeOut(refused, at: offset, index: index, from: operations)
      if operations.isEmpty { return }
    }
    for case .remove(let child, _) in operations {
      Structure.unlink(child, from: record, index: index, &events)
    }
    if record.needsBase(index), let base { record.keepBase(index, .list(base)) }
    record.noteChange(index)
    let property = record.schema.properties[index]
    record.fire {
      if let signal = record.observers?.propertyChange, signal.hasListeners {
        signal.fire(
          PropertyChange(key: property.name, old: base?.models.map { $0 }, new: list(of: property)))
      }
      if let signal = record.observers?.collectionChange, signal.hasListeners {
        for operation in operations { signal.fire(CollectionChange(property.name, operation)) }
      }
      events.fire()
    }
  }

  /// Takes refused models out of the stored list again; gives the steps that remain.
  private final func takeOut(
    _ refused: Set<ObjectIdentifier>, at offset: Int, index: Int,
    from operations: [ListOperation]
  ) -> [ListOperation] {
    let property = ensureRecord().schema.properties[index]
    let reached = list(of: property)
    var before = reached.models
    for operation in operations.reversed() {
      switch operation {
      case .insert(_, let position): before.remove(at: position)
      case .remove(let model, let position): before.insert(model, at: position)
      case .move(let model, let from, let to):
        before.remove(at: to)
        before.insert(model, at: from)
      }
    }
    let kept = ModelList(reached.models.filter { !refused.contains(ObjectIdentifier($0)) })
    property.access.restore(kept, in: self, at: offset)
    return ListDifference.operations(from: ModelList(before), to: kept)
  }
}
