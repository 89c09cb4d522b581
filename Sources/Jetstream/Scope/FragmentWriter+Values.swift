import Foundation

/// Writing single values, behind local changes where there are any.
extension FragmentWriter {
  /// Writes one value. A local change that is in no change set yet stays visible in front of it; that of a counter is
  /// added to it.
  mutating func write(
    _ value: JSONValue, to property: ModelSchema.Property, of model: ModelObject, at position: Int
  ) {
    let record = model.ensureRecord()
    let isChanged = !isLocal && isHidden(property, of: record)
    switch property.kind {
    case .dictionary: break  // It has no value; ``put(_:of:)`` writes its entries.
    case .collection:
      guard let list = list(value, property, model, at: position) else { return }
      rebase(property, of: model, on: list)
    case .reference:
      guard let child = reference(value, property, model, at: position) else { return }
      if isChanged {
        record.setKnown(
          record.isInTransaction ? .model(child) : .json(child?._jsonValue ?? .null),
          of: property.index)
      } else {
        remotely { property.access.assign(child, to: model, at: property.offset) }
      }
    case .plain, .model:
      if write(value, to: property, of: model, behind: isChanged) { return }
      fail(position, invalid(property, model))
      _ = write(.null, to: property, of: model, behind: isChanged)
    }
  }

  /// Returns true if local changes of a property hide what other replicas write. Those that have led back to where they
  /// began are forgotten.
  private func isHidden(_ property: ModelSchema.Property, of record: ModelRecord) -> Bool {
    guard record.isChanged(property.index) else { return false }
    // The content of a collection or dictionary is compared where it is written.
    if property.kind == .collection || property.kind == .dictionary { return true }
    record.dropReturned(property)
    return record.isChanged(property.index)
  }

  /// Writes a value, or makes it the last shared value behind a local change. Returns false, and changes nothing,
  /// if it does not fit the property.
  private func write(
    _ value: JSONValue, to property: ModelSchema.Property, of model: ModelObject,
    behind isChanged: Bool
  ) -> Bool {
    guard isChanged else {
      return remotely { property.access.assign(value, to: model, at: property.offset) }
    }
    guard property.access.accepts(value) else { return false }
    if property.options.isCounter, let range = property.counterRange {
      // Such as 10.0, which is written as 10.
      let number = property.data.normalized(value) ?? value
      return rebase(property, of: model, on: number, within: range)
    }
    let record = model.ensureRecord()
    guard property.options.mergeRule != nil else {
      record.setKnown(.json(value), of: property.index)
      return true
    }
    let current = model.json(of: property)
    let merged = record.merge(property, from: current, onto: value)
    return merged == current
      || remotely { property.access.assign(merged, to: model, at: property.offset) }
  }

  /// Makes `known` the number that other replicas know of a counter with local changes. The numbers that were added to it
  /// since the last change set are added to that one. Returns false if the property cannot hold the sum.
  func rebase(
    _ property: ModelSchema.Property, of model: ModelObject, on known: JSONValue,
    within range: CounterRange
  ) -> Bool {
    let current = model.json(of: property)
    let sum = model.ensureRecord().rebase(property.index, from: current, on: known, within: range)
    if sum == current { return true }
    return remotely { property.access.assign(sum, to: model, at: property.offset) }
  }

  /// Makes `list` the content of a collection as other replicas know it. Local changes that are in no change set
  /// yet are rebased onto it, one call of `modify` after the other.
  func rebase(_ property: ModelSchema.Property, of model: ModelObject, on list: ModelList) {
    let record = model.ensureRecord()
    var visible = list
    if !isLocal, record.isChanged(property.index) {
      let current = model.list(of: property)
      let before = record.knownLists(of: property.index, now: current)
      var known: [ModelList] = []
      for (before, after) in zip(before, before.dropFirst() + [current]) {
        known.append(visible)
        visible = visible.merging(from: before, to: after)
      }
      record.setKnownLists(known, of: property.index)
    }
    remotely { property.access.assign(visible, to: model, at: property.offset) }
  }

  /// An entry of a dictionary that is to be written.
  struct EntryWrite {
    /// The index of the dictionary.
    let index: Int
    let key: String
    let child: ModelObject?
  }

  /// Writes entries of dictionaries, those of one that are next to each other at once. The local values of entries that are
  /// in no change set yet stay visible in front of them, those of one call of `modify` after the other.
  func put(_ entries: [EntryWrite], of model: ModelObject) {
    var rest = entries[...]
    while let index = rest.first?.index {
      let writes = rest.prefix { $0.index == index }
      rest = rest.dropFirst(writes.count)
      let record = model.ensureRecord()
      let property = record.schema.properties[index]
      // The saved contents, and behind them the visible one.
      var levels = isLocal ? [] : record.knownTables(of: index)
      levels.append(model.table(of: property))
      for write in writes {
        var (level, isHidden) = (0, false)
        while level < levels.count, !isHidden {
          isHidden =
            level + 1 < levels.count && levels[level][write.key] !== levels[level + 1][write.key]
          levels[level][write.key] = write.child
          level += 1
        }
      }
      let visible = levels.removeLast()
      if !levels.isEmpty { record.setKnownTables(levels, of: index) }
      remotely { property.access.assign(visible, to: model, at: property.offset) }
    }
  }

  /// Takes the entries out of a dictionary that a full state does not have.
  func reset(
    _ dictionary: ModelSchema.Property, of model: ModelObject, to values: JSONObject
  ) {
    var keys: Set<String> = []
    let tables = model.record?.knownTables(of: dictionary.index) ?? []
    for table in tables + [model.table(of: dictionary)] {
      table.forEach { key, _ in keys.insert(key) }
    }
    let gone = keys.sorted().filter {
      values[EntryName.text(of: $0, in: dictionary.wireName)] == nil
    }
    put(gone.map { EntryWrite(index: dictionary.index, key: $0, child: nil) }, of: model)
  }

  /// Returns the model that a reference is to hold, or no model; nil, after reporting an error, if it cannot hold the value.
  mutating func reference(
    _ value: JSONValue, _ property: ModelSchema.Property, _ model: ModelObject, at position: Int
  ) -> ModelObject?? {
    if value == .null { return .some(nil) }
    guard case .string(let text) = value, let uuid = UUID(wireText: text) else {
      fail(position, invalid(property, model))
      return nil
    }
    return child(uuid, property, model, at: position).map { .some($0) }
  }

  /// Returns the model that a property is to hold. Nil, after reporting an error, if it cannot hold it.
  mutating func child(
    _ uuid: UUID, _ property: ModelSchema.Property, _ model: ModelObject, at position: Int
  ) -> ModelObject? {
    guard let child = find(uuid) else {
      fail(position, unknown(uuid.wireText, property, model))
      return nil
    }
    guard property.access.valueType.canHoldModel(child) else {
      fail(position, invalid(property, model))
      return nil
    }
    if created[uuid] != nil { referenced.insert(uuid) }
    if !isLocal, let record = model.record {
      scope.willHold(child, at: property.index, of: record)
    }
    return child
  }

  private mutating func list(
    _ value: JSONValue, _ property: ModelSchema.Property, _ model: ModelObject, at position: Int
  ) -> ModelList? {
    guard case .array(let elements) = value else {
      fail(position, invalid(property, model))
      return nil
    }
    var result = ModelList()
    for element in elements {
      switch reference(element, property, model, at: position) {
      case .some(.some(let child)): result.append(child)
      case .some(.none): fail(position, invalid(property, model))
      case .none: continue
      }
    }
    return result
  }
}
