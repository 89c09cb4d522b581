/// The work after a write to a property that holds models. It runs after the access to the property
/// has ended, so that observers can read and write the property.
extension ModelObject {
  @usableFromInline
  final func didReplaceReference<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    if record == nil, isPrototype { return }
    let record = ensureRecord()
    let index = record.schema.index(atOffset: offset)
    let oldChild = Value.heldModel(old)
    var events = StructureEvents()
    if let child = Value.heldModel(new),
      let error = Structure.link(child, to: record, index: index, &events)
    {
      record.schema.properties[index].access.restore(old, in: self, at: offset)
      return record.fire(index) { $0.add([error]) }
    }
    if let oldChild { Structure.unlink(oldChild, from: record, index: index, &events) }
    Structure.settle(&events, of: record.tree)
    if record.needsBase(index) {
      record.keepBase(index, record.isInTransaction ? .model(oldChild) : .json(old._jsonValue))
    }
    record.noteChange(index)
    record.fire(index) {
      $0.add { PropertyChange(key: record.schema.properties[index].name, old: old, new: new) }
      $0.add(events)
    }
  }

  /// Notes that a dictionary was replaced, possibly by one with the same entries.
  @usableFromInline
  final func didReplaceDictionary<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    guard let before = Value.heldTable(old), var after = Value.heldTable(new) else { return }
    let changes = after.changes(since: before)
    if changes.isEmpty || (record == nil && isPrototype) { return }
    let record = ensureRecord()
    let index = record.schema.index(atOffset: offset)
    let property = record.schema.properties[index]
    var events = StructureEvents()
    var refused: [ScopeError] = []
    var gone: ContiguousArray<ModelObject> = []
    // New models first: one that only changes its key is not detached meanwhile.
    for change in changes {
      if let child = change.new,
        let error = Structure.link(child, to: record, index: index, &events, isRepeatable: true)
      {
        refused.append(error)
        after[change.key] = change.old
      } else if let child = change.old {
        gone.append(child)
      }
    }
    for child in gone { Structure.unlink(child, from: record, index: index, &events) }
    Structure.settle(&events, of: record.tree)
    if !refused.isEmpty { property.access.restore(after, in: self, at: offset) }
    let isChanged = refused.count < changes.count
    if isChanged {
      if record.needsBase(index) { record.keepBase(index, .table(before)) }
      record.noteChange(index)
    }
    record.fire(index) {
      $0.add(refused)
      if !isChanged { return }
      $0.add { PropertyChange(key: property.name, old: old, new: Value.holding(after) ?? new) }
      $0.add(events)
    }
  }

  /// Notes that a collection is being changed in place from now on.
  @usableFromInline
  final func willModifyCollection(at offset: Int, lease: ListLease) {
    if record == nil, isPrototype { return }
    let record = ensureRecord()
    record.leases.add(lease, of: record.schema.index(atOffset: offset))
  }

  @usableFromInline
  final func didModifyCollection<Value: PropertyValue>(
    at offset: Int, lease: ListLease, value: Value
  ) {
    record?.leases.remove(lease)
    guard let list = Value.heldList(value) else { return }
    let operations = lease.close(on: list)
    if operations.isEmpty { return }
    didChangeCollection(at: offset, by: operations, base: nil)
  }

  @usableFromInline
  final func didReplaceCollection<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    guard let oldList = Value.heldList(old), let newList = Value.heldList(new) else { return }
    let operations = ListDifference.operations(from: oldList, to: newList)
    if operations.isEmpty { return }
    didChangeCollection(at: offset, by: operations, base: oldList)
  }

  private final func didChangeCollection(
    at offset: Int, by operations: [ListOperation], base: ModelList?
  ) {
    if record == nil, isPrototype { return }
    let record = ensureRecord()
    let index = record.schema.index(atOffset: offset)
    let property = record.schema.properties[index]
    var operations = operations
    var events = StructureEvents()
    let (inserted, removed) = operations.net
    if operations.count > 1, inserted.isEmpty, removed.isEmpty {
      let now = list(of: property)
      if operations.undone(on: now).isSame(as: now) {
        // The steps lead back to the old content, as with a model that comes and goes in one frame,
        // or whose insertion and removal are undone together. Only observers of single steps are
        // notified.
        if record.tree?.isWritingRemotely != true {
          record.fire(index) { $0.add(operations) }
        }
        return
      }
    }
    // Insertions first: a model that only changes its place in the tree is not detached meanwhile.
    var refused: [(model: ModelObject, error: ScopeError)] = []
    for child in inserted {
      if let error = Structure.link(child, to: record, index: index, &events) {
        refused.append((child, error))
      }
    }
    if !refused.isEmpty {
      operations = takeOut(refused.map(\.model), of: property, from: operations)
    }
    for child in removed { Structure.unlink(child, from: record, index: index, &events) }
    Structure.settle(&events, of: record.tree)
    if !operations.isEmpty {
      if let base, record.needsBase(index) {
        record.keepBase(index, .list(base))
      } else {
        record.keepSteps(operations, of: index, now: list(of: property))
      }
      record.observers?.extras?.note(operations, of: index, now: list(of: property))
      record.noteChange(index)
    }
    record.fire(index) {
      if !refused.isEmpty { $0.add(refused.map(\.error)) }
      if operations.isEmpty { return }
      $0.add { propertyChange(of: property, by: operations) }
      $0.add(operations)
      $0.add(events)
    }
  }

  /// Returns the change to report to property observers; nil if the content is the old one.
  private final func propertyChange(
    of property: ModelSchema.Property, by operations: [ListOperation]
  ) -> PropertyChange? {
    let new = list(of: property)
    let old = operations.undone(on: new)
    // Several steps may lead back to the old content.
    if operations.count > 1, old.isSame(as: new) { return nil }
    return PropertyChange(
      key: property.name, old: property.access.wrap(old), new: property.access.wrap(new))
  }

  /// Removes refused models from the stored list, and returns the remaining steps.
  private final func takeOut(
    _ refused: [ModelObject], of property: ModelSchema.Property, from operations: [ListOperation]
  ) -> [ListOperation] {
    let reached = list(of: property)
    let refused = Set(refused)
    let kept = ModelList(reached.models.filter { !refused.contains($0) })
    property.access.restore(kept, in: self, at: property.offset)
    return ListDifference.operations(from: operations.undone(on: reached), to: kept)
  }
}
