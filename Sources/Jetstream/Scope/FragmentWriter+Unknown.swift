import Foundation

/// Making objects of what was kept without one.
extension FragmentWriter {
  /// Known properties in `fragments` refer to kept models: they become objects, of their class or, if
  /// that is unknown, of the property's. They have their values before anything refers to them.
  mutating func materialise(for fragments: [SyncFragment]) {
    guard let store = scope.unknown else { return }
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
      // What is added comes with its values later, like every addition.
      let isAdded = positions[fragment.uuid]?.contains { fragments[$0].kind == .add } ?? false
      if !isAdded { write(fragment, at: position) }
    }
  }

  private mutating func materialise(
    in fragment: SyncFragment, at position: Int, _ store: UnknownStore,
    _ open: inout [(fragment: SyncFragment, position: Int)]
  ) {
    guard !store.fragments.isEmpty, let schema = find(fragment.uuid)?.schema else { return }
    for property in schema.childProperties where property.isSynced {
      switch fragment.properties[property.wireName] {
      case .string(let text):
        materialise(text, for: property, at: position, store, &open)
      case .array(let elements):
        for case .string(let text) in elements {
          materialise(text, for: property, at: position, store, &open)
        }
      default: break
      }
      for operation in fragment.operations[property.wireName] {
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
      let expected = property.access.valueType._modelClass
    else { return }
    let known = scope.schema(named: kept.className)
    if let left = scope.modelThatLeft(uuid) {
      // What is kept of it is what the others know; what was changed here since comes back with it.
      held[uuid] = left
      return
    }
    if let existing = find(uuid) {
      // It has left the tree as an object, which somebody still has.
      guard property.access.valueType._canHold(existing) else { return }
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
    store.fragments[uuid] = nil
    materialised.append(uuid)
    open.append((kept, position))
  }

  /// What became an object and has found no place in the tree is kept without one again.
  mutating func keepMaterialised() -> Set<UUID> {
    guard !materialised.isEmpty, let store = scope.unknown else { return [] }
    for uuid in materialised {
      guard let model = created[uuid] ?? held[uuid], let record = model.record,
        record.scope == nil
      else { continue }
      store.keep(record)
      guard created[uuid] != nil, record.captureScope === scope else { continue }
      scope.forget(record)
      report.orphans.append(model)
    }
    return Set(materialised)
  }

  /// Something unknown was written, perhaps only to what is not in the tree. If it refers to models that
  /// have left the tree, as objects that somebody still has, they count again, with what they hold.
  mutating func keepDeparted() {
    if unknownValues.isEmpty { return }
    let store = scope.ensureUnknown()
    var open: [UUID] = []
    for value in unknownValues { value.forEachUUID { open.append($0) } }
    while let uuid = open.popLast() {
      guard scope.record(of: uuid) == nil, store.fragments[uuid] == nil, created[uuid] == nil,
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
