import Foundation

/// Local changes of what the classes of the scope do not know.
///
/// No change set would tell other replicas of them, so that they would have other values than this one. Such content is
/// left as it is, and the report has an error for what would be changed. A model that other replicas do not have, or that
/// comes back, is another matter: its addition has all that it has.
extension FragmentWriter {
  /// Keeps a model of an unknown class. One that local changes add is kept only for known properties that come to hold it.
  mutating func keep(_ addition: SyncFragment, at position: Int) {
    let store = scope.ensureUnknown()
    if isLocal {
      if store.fragments[addition.uuid] != nil { return }
      addedAsKept.insert(addition.uuid)
    }
    var kept = addition
    kept.properties.dropNullEntries(of: nil)
    store.keep(kept)
    report.kept.append(
      (position, .unknownClass(className: addition.className, model: addition.uuid)))
  }

  /// Notes that an unknown property gets a value. Returns true if it is to be left as it is, since the change is a local
  /// one of a model that other replicas have.
  mutating func leaves(
    _ key: String, of model: ModelObject, as value: JSONValue, at position: Int
  ) -> Bool {
    let reason = ScopeError.unknownProperty(
      className: model.wireClassName, model: model.uuid, property: key)
    guard isLocal, let record = model.record, !record.isNew,
      record.tree === scope.tree || scope.hasLeft(record)
    else {
      report.kept.append((position, reason))
      return false
    }
    if value.isWritten(as: model.unknownValue(key) ?? .null) {
      report.kept.append((position, reason))
    } else {
      fail(position, reason)
    }
    return true
  }

  /// Leaves a kept model as it is, and reports a local change that would change it.
  mutating func leave(_ fragment: SyncFragment, at position: Int) {
    guard let kept = scope.unknown?.fragments[fragment.uuid] else { return }
    let schema = scope.schema(of: fragment)
    if kept.updated(by: fragment, as: schema, resetsMissing: false) == kept { return }
    fail(
      position,
      scope.schema(named: fragment.className) == nil
        ? .unknownClass(className: fragment.className, model: fragment.uuid)
        : .unknownModel(className: fragment.className, model: fragment.uuid))
  }

  /// Gives the kept models that became objects the last shared values of what their classes do not know: an addition among the
  /// changes may have older ones.
  func writeShared() {
    for kept in takenOut {
      guard let record = find(kept.uuid)?.record else { continue }
      var values = kept.properties
      values.removeAll { key, _ in record.schema[wireName: key] != nil }
      record.keepUnknown(onlyIn: values)
      record.keepUnknown(values)
    }
  }

  /// Handles the end of local changes: keeps the models again that became objects and found no place in the tree, and drops
  /// the added ones that became no objects.
  func leaveKept() {
    for uuid in addedAsKept { scope.unknown?.take(uuid) }
    for kept in takenOut where scope.tree.record(of: kept.uuid) == nil {
      if let record = find(kept.uuid)?.record, record.captureTree === scope.tree {
        scope.forget(record)
      }
      scope.unknown?.keep(kept)
    }
  }

  /// Has a kept model, which is an object from here on, count as one that other replicas have: a local change set that puts it
  /// somewhere names it, and does not add it with all its values, which others may be changing.
  private func shareTakenOut(_ uuid: UUID) {
    guard let record = find(uuid)?.record, record.tree == nil, record.captureTree == nil else {
      return
    }
    record.captureTree = scope.tree
    record.isNew = false
  }
}

/// Making objects of models that were kept without one.
extension FragmentWriter {
  /// Makes objects of the kept models that known properties in `fragments` refer to. Each is of its own class or,
  /// if that is unknown, a stand-in of the property's class. They get their values before anything refers to them.
  mutating func materialise(for fragments: [SyncFragment]) {
    guard let store = scope.unknown else { return }
    let live = isLocal ? store.live() : []
    var positions: [UUID: [Int]] = [:]
    for (position, fragment) in fragments.enumerated() {
      positions[fragment.uuid, default: []].append(position)
    }
    var open: [(fragment: SyncFragment, position: Int)] = []
    for (position, fragment) in fragments.enumerated()
    where store.fragments[fragment.uuid] == nil {
      materialise(in: fragment, at: position, store, &open)
    }
    var next = 0
    while next < open.count {
      let (fragment, position) = open[next]
      materialise(in: fragment, at: position, store, &open)
      for position in positions[fragment.uuid] ?? [] {
        materialise(in: fragments[position], at: position, store, &open)
      }
      next += 1
    }
    for (fragment, position) in open {
      // A model that the fragments add gets its values later, like every addition.
      let isAdded = positions[fragment.uuid]?.contains { fragments[$0].kind == .add } ?? false
      if isAdded { continue }
      write(fragment, at: position)
      if live.contains(fragment.uuid) { shareTakenOut(fragment.uuid) }
    }
  }

  private mutating func materialise(
    in fragment: SyncFragment, at position: Int, _ store: UnknownStore,
    _ open: inout [(fragment: SyncFragment, position: Int)]
  ) {
    guard !store.fragments.isEmpty, let schema = find(fragment.uuid)?.schema else { return }
    func child(_ key: String) -> ModelSchema.Property? {
      schema[wireName: key].flatMap { $0.kind != .plain && $0.isSynced ? $0 : nil }
    }
    for (key, value) in fragment.properties {
      guard let property = child(key) else { continue }
      switch value {
      case .string(let text):
        materialise(text, for: property, at: position, store, &open)
      case .array(let elements):
        for case .string(let text) in elements {
          materialise(text, for: property, at: position, store, &open)
        }
      default: break
      }
    }
    for entry in fragment.operations {
      guard let property = child(entry.key) else { continue }
      for operation in entry.operations {
        if let uuid = operation.model {
          materialise(uuid.wireText, for: property, at: position, store, &open)
        }
      }
    }
  }

  private mutating func materialise(
    _ text: String, for property: ModelSchema.Property, at position: Int, _ store: UnknownStore,
    _ open: inout [(fragment: SyncFragment, position: Int)]
  ) {
    guard let uuid = UUID(wireText: text), let kept = store.fragments[uuid],
      let expected = property.access.valueType.heldClass
    else { return }
    let known = scope.schema(named: kept.className)
    if let left = scope.modelThatLeft(uuid) {
      // The store has its last shared state; the object also has the local changes since then.
      held[uuid] = left
      return
    }
    if let existing = find(uuid) {
      // The object has left the tree, but the app still holds it.
      guard property.access.valueType.canHoldModel(existing) else { return }
      held[uuid] = existing
    } else if let known {
      guard property.canHold(known.modelClass) else { return }
      make(known, uuid)
    } else {
      let schema = ModelSchema.of(expected)
      let model = make(schema, uuid)
      model.ensureRecord().unknown = UnknownValues(className: kept.className)
      store.standIns[kept.className] = schema
    }
    store.take(uuid)
    materialised.append(uuid)
    if isLocal, !addedAsKept.contains(uuid) { takenOut.append(kept) }
    open.append((kept, position))
  }

  /// Puts models that became objects, and that found no place in the tree, back into the store. Returns the UUIDs
  /// of all models that became objects.
  mutating func keepMaterialised() -> Set<UUID> {
    guard !materialised.isEmpty, let store = scope.unknown else { return [] }
    for uuid in materialised {
      guard let model = created[uuid] ?? held[uuid], let record = model.record,
        record.tree == nil
      else { continue }
      store.keep(record)
      guard created[uuid] != nil, record.captureTree === scope.tree else { continue }
      scope.forget(record)
      report.orphans.append(model)
    }
    return Set(materialised)
  }

  /// Keeps the models that newly written unknown values refer to and that have left the tree as objects which the
  /// app still holds. They count as content again, together with the models below them.
  mutating func keepDeparted() {
    if unknownValues.isEmpty { return }
    let store = scope.ensureUnknown()
    var open: [UUID] = []
    for value in unknownValues { value.forEachUUID { open.append($0) } }
    while let uuid = open.popLast() {
      guard scope.tree.record(of: uuid) == nil, store.fragments[uuid] == nil, created[uuid] == nil,
        let record = find(uuid)?.record
      else { continue }
      store.keep(record)
      record.forEachChild { child, index in
        if record.schema.properties[index].isSynced { open.append(child.uuid) }
      }
      for (_, value) in record.unknownProperties { value.forEachUUID { open.append($0) } }
    }
  }
}
