import Foundation

/// The last shared values of properties with local changes that are in no change set yet. A value is shared if it
/// was in the last change set or came from another replica.
///
/// Each running call of `modify` is a layer of changes with bases of its own; see ``Layer``. The outermost base of a
/// property is its last shared value; each further base is the value that the next inner call found.
extension ModelRecord {
  /// The call of `modify` that runs in the scope that collects the changes; nil if there is none.
  var modification: Modification? { isInTransaction ? captureTree?.scope?.modification : nil }

  /// True if the property was changed locally since the last change set.
  func isChanged(_ index: Int) -> Bool {
    bases.contains(index)
      || modification?.layers.contains { $0[self]?.contains(index) == true } == true
  }

  /// True if any property was changed locally since the last change set.
  var hasBases: Bool {
    !bases.isEmpty || modification?.layers.contains { $0[self] != nil } == true
  }

  /// Returns the bases of a property, that of the outermost call of `modify` first.
  private func levels(of index: Int) -> [Base] {
    (modification?.layers.compactMap { $0[self]?[index] } ?? []) + (bases[index].map { [$0] } ?? [])
  }

  /// Replaces the values of the first bases of a property, in the order of ``levels(of:)``.
  private func setLevels(_ values: [Base.Value], of index: Int) {
    var rest = values[...]
    if let modification {
      for at in modification.layers.indices
      where modification.layers[at][self]?.contains(index) == true {
        guard let value = rest.popFirst() else { return }
        modification.layers[at][self]!.set(value, of: index)
      }
    }
    if let value = rest.popFirst() { bases.set(value, of: index) }
  }

  /// Returns the last shared value of a changed property. Nil for a collection, and for a property without local
  /// changes.
  func knownJSON(of index: Int) -> JSONValue? { levels(of: index).first?.json }

  /// Replaces the last shared value of a changed property by one that another replica wrote. The local value stays
  /// visible.
  func setKnown(_ value: Base.Value, of index: Int) { setLevels([value], of: index) }

  /// Drops the outermost bases of a changed property from which the next base, or the current value, does not differ: a
  /// value that is back where it began hides nothing that other replicas write.
  ///
  /// - Precondition: the property is a plain one or a reference.
  func dropReturned(_ property: ModelSchema.Property) {
    guard let model else { return }
    let current: Base.Value =
      isInTransaction && property.kind == .reference
      ? .model(model.child(of: property)) : .json(model.json(of: property))
    let bases = levels(of: property.index) + [Base(index: property.index, value: current)]
    var count = zip(bases, bases.dropFirst()).prefix { $0.isSame(as: $1, in: property) }.count
    if let modification {
      for at in modification.layers.indices where count > 0 {
        if modification.layers[at][self]?.remove(property.index) == true { count -= 1 }
      }
    }
    if count > 0 { _ = self.bases.remove(property.index) }
  }

  /// Makes `known` the last shared number of a changed counter whose visible number is `current`. The additions up to each
  /// call of `modify`, and behind the last one, count for it one after the other, within the range. Returns the sum.
  func rebase(
    _ index: Int, from current: JSONValue, on known: JSONValue, within range: CounterRange
  ) -> JSONValue {
    let saved = levels(of: index).compactMap(\.json)
    var sum = known
    var values: [Base.Value] = []
    for (before, after) in zip(saved, saved.dropFirst() + [current]) {
      values.append(.json(sum))
      // Numbers that are too far apart for an addition are sent as what was assigned.
      let delta = JSONValue.difference(from: before, to: after)
      sum = delta.map { PropertyOperation.apply([.add($0)], to: sum, within: range) } ?? after
    }
    setLevels(values, of: index)
    return sum
  }

  /// Makes `known` the last shared value of a changed property with a merge rule, whose visible value is `current`. The
  /// changes up to each call of `modify`, and behind the last one, are merged with it one after the other. Returns the result.
  func merge(
    _ property: ModelSchema.Property, from current: JSONValue, onto known: JSONValue
  ) -> JSONValue {
    let saved = levels(of: property.index).compactMap(\.json)
    var result = known
    var values: [Base.Value] = []
    for (before, after) in zip(saved, saved.dropFirst() + [current]) {
      values.append(.json(result))
      let merged = property.data.merged(after, onto: result, base: before)
      // A rule of the app may make what the property cannot hold.
      result = property.access.accepts(merged) ? merged : after
    }
    setLevels(values, of: property.index)
    return result
  }

  /// Returns the saved contents of a changed collection whose current content is `now`: the last shared one first,
  /// then the one that each further call of `modify` found. Empty if the collection has no local changes.
  func knownLists(of index: Int, now: ModelList) -> [ModelList] {
    var result: [ModelList] = []
    // The steps of a level lead to the content that the next inner call found.
    for level in levels(of: index).reversed() {
      if let list = level.list(now: result.last ?? now) { result.append(list) }
    }
    return result.reversed()
  }

  /// Replaces the contents that ``knownLists(of:now:)`` returns.
  func setKnownLists(_ lists: [ModelList], of index: Int) {
    setLevels(lists.map { .list($0) }, of: index)
  }

  /// Calls `body` with the models that other replicas have in the changed properties.
  func forEachKnownChild(_ body: (UUID) -> Void) {
    guard let model else { return }
    for property in schema.childProperties where property.isSynced && isChanged(property.index) {
      switch property.kind {
      case .collection:
        let lists = knownLists(of: property.index, now: model.list(of: property))
        lists.first?.forEach { body($0.uuid) }
      case .dictionary: knownTables(of: property.index).first?.forEach { body($1.uuid) }
      case .plain, .model, .reference: knownJSON(of: property.index)?.forEachUUID(body)
      }
    }
  }

  /// Returns the saved contents of a changed dictionary in the same order; empty if it has no local changes.
  func knownTables(of index: Int) -> [ModelTable] { levels(of: index).compactMap(\.table) }

  /// Replaces the contents that ``knownTables(of:)`` returns.
  func setKnownTables(_ tables: [ModelTable], of index: Int) {
    setLevels(tables.map { .table($0) }, of: index)
  }
}

extension ModelRecord.Base {
  /// Returns true if a plain property or a reference has the same value in both. Within a call of `modify`, another
  /// instance of the same model is another value: a rollback has to bring the first one back.
  fileprivate func isSame(as other: Self, in property: ModelSchema.Property) -> Bool {
    if case .model(let a) = value, case .model(let b) = other.value { return a === b }
    guard let a = json, let b = other.json else { return false }
    return property.areSame(a, b)
  }
}
