import Foundation

extension ModelRecord {
  /// Returns the model as an addition with every synced property.
  func addFragment(
    _ kind: SyncFragment.Kind = .add, withHeldBack: Bool = true
  ) -> SyncFragment {
    SyncFragment(
      kind, uuid: uuid, className: wireClassName,
      properties: syncedProperties(withHeldBack: withHeldBack))
  }

  /// Returns the last shared state of a model that has left, as an addition.
  func known() -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: wireClassName, properties: confirmedProperties())
  }

  /// Returns the last shared value of a property with a minimal sync interval; nil if the current value is shared.
  func heldBackBase(of property: ModelSchema.Property) -> JSONValue? {
    property.options.minSyncInterval == nil ? nil : knownJSON(of: property.index)
  }

  func syncedProperties(withHeldBack: Bool = true) -> JSONObject {
    var properties = JSONObject()
    guard let model else { return properties }
    for property in schema.properties where property.isSynced {
      if property.kind == .dictionary {
        model.table(of: property).forEach { key, child in
          properties.append(
            newKey: EntryName.text(of: key, in: property.wireName), child._jsonValue)
        }
        continue
      }
      let shared = withHeldBack ? nil : heldBackBase(of: property)
      properties.append(newKey: property.wireName, shared ?? model.json(of: property))
    }
    for (key, value) in unknownProperties { properties.append(newKey: key, value) }
    return properties
  }

  /// The names of the entries of all dictionaries.
  var entryNames: [String] {
    guard let model else { return [] }
    var result: [String] = []
    for property in schema.childProperties where property.kind == .dictionary && property.isSynced {
      model.table(of: property).forEach { key, _ in
        result.append(EntryName.text(of: key, in: property.wireName))
      }
    }
    return result
  }

  /// Returns the differences between the current properties and their bases, in both directions. Drops the bases,
  /// except those of properties that are held back.
  ///
  /// - Parameters:
  ///   - withOutcomes: true if the values around operations are needed as well.
  ///   - isHeldBack: returns true for the index of a property that stays collected.
  func takeDifferences(
    withOutcomes: Bool, holdingBack isHeldBack: (Int) -> Bool
  ) -> PropertyDifferences {
    var result = PropertyDifferences()
    let taken = bases
    dropBases()
    guard let model else { return result }
    let isThrottled = !schema.throttledProperties.isEmpty
    for base in taken.all {
      if isThrottled, isHeldBack(base.index) {
        bases.append(base)
        continue
      }
      let property = schema.properties[base.index]
      guard property.isSynced else { continue }
      if let old = base.table {
        result.add(model.table(of: property).changes(since: old), of: property)
      } else if let old = base.json {
        if model.holds(old, in: property) { continue }
        let new = model.json(of: property)
        // A value that is not equal to what is read from its JSON, such as one that is not encoded as a whole.
        if new == old, new.isWritten(as: old) { continue }
        if property.options.isCounter, let delta = JSONValue.difference(from: old, to: new) {
          result.add(property.wireName, [.add(delta)], [.add(-delta)])
          if withOutcomes {
            result.outcomes.append((property.wireName, .number(before: old, now: new)))
          }
        } else {
          result.now.values.append(newKey: property.wireName, new)
          result.before.append(old)
          if property.options.mergeRule != nil {
            result.now.bases.append(newKey: property.wireName, old)
          }
        }
      } else {
        let new = model.list(of: property)
        guard let steps = base.steps(now: new) else { continue }
        let edit = CollectionEdit(steps, now: new)
        if edit.forward.isEmpty { continue }
        result.add(property.wireName, edit.forward, edit.backward)
        if withOutcomes {
          result.outcomes.append((property.wireName, .list(now: new, steps: steps)))
        }
      }
    }
    return result
  }
}

/// The changes of a model's properties since the last change set.
struct PropertyDifferences {
  /// Values and operations that take a model's properties to a state.
  struct Content {
    var values = JSONObject()
    var operations = PropertyOperations()
    /// The values before, for properties that are merged by a rule.
    var bases = JSONObject()

    var isEmpty: Bool { values.isEmpty && operations.isEmpty }

    func fragment(of record: ModelRecord) -> SyncFragment {
      SyncFragment(
        .change, uuid: record.uuid, className: record.wireClassName, properties: values,
        operations: operations, bases: bases)
    }
  }

  /// The changes from the old values to the new ones.
  var now = Content()
  /// The old values, in the order of the new ones.
  var before: [JSONValue] = []
  /// The operations that take back those of ``now``.
  var backward = PropertyOperations()
  /// The values around the operations, by property.
  var outcomes: [(key: String, SealedChanges.Outcome)] = []

  /// Adds the changed entries of a dictionary. Those with another instance of the same model are none to others.
  mutating func add(_ changes: [ModelTable.Change], of dictionary: ModelSchema.Property) {
    for change in changes where change.old?.uuid != change.new?.uuid {
      now.values.append(
        newKey: EntryName.text(of: change.key, in: dictionary.wireName),
        change.new?._jsonValue ?? .null)
      before.append(change.old?._jsonValue ?? .null)
    }
  }

  mutating func add(
    _ key: String, _ forward: [PropertyOperation], _ backward: [PropertyOperation]
  ) {
    now.operations.append(newKey: key, forward)
    self.backward.append(newKey: key, backward)
  }
}
