import Foundation

/// Models that pending change sets add. Other replicas do not know a new model; but a model that was removed here
/// and put back in a later change set is added again, while other replicas, which know of neither, go on changing
/// it.
///
/// Putting a model back only expresses what was changed here: the addition carries, as its bases, the values that
/// this replica knew (``SyncFragment/bases``). Both the server and the overlay merge the addition with what other
/// replicas have written (``ModelSchema/Property/putBack(_:onto:base:)``).
extension PendingOverlay {
  /// An addition by a pending change set.
  struct Addition {
    /// The change set's number.
    let set: Int
    let properties: JSONObject
    /// The values that this replica knew of a model that it puts back; empty for a new model.
    let bases: JSONObject
  }

  /// True if a pending change set puts a model back.
  var putsBack: Bool { additions.values.contains { !$0.bases.isEmpty } }

  /// Returns true if a pending change set adds the model.
  func adds(_ uuid: UUID) -> Bool { additions[uuid] != nil }

  /// Returns true if a pending change set writes the property.
  ///
  /// - Parameter guesses: the numbers of change sets that do not count.
  func isPending(_ name: PropertyKey, besides guesses: Set<Int>) -> Bool {
    if guesses.isEmpty {
      return covers(name) && !isSettled(name) || additions[name.uuid]?.properties[name.name] != nil
    }
    if let addition = additions[name.uuid], addition.properties[name.name] != nil,
      !guesses.contains(addition.set)
    {
      return true
    }
    return isWritten(name, besides: guesses)
  }

  /// Notes the additions of the change set with number `set`.
  mutating func noteAdditions(
    _ fragments: [SyncFragment], of set: Int,
    property: (PropertyKey) -> ModelSchema.Property?
  ) {
    for fragment in fragments where fragment.kind == .add {
      additions[fragment.uuid] = Addition(
        set: set, properties: fragment.properties, bases: fragment.bases)
      // The addition hides what earlier pending sets have written to the model.
      for (key, _) in fragment.bases {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        if covers(name) { coverIfAdded(name, property: property) }
      }
    }
  }

  /// Puts a pending addition's value in front of a property that remote changes are about to change.
  ///
  /// - Parameters:
  ///   - confirmed: the confirmed value, if it differs from the one that the client knew when it added the model.
  ///   - property: returns the declaration of a property, if its model is known.
  mutating func coverIfAdded(
    _ name: PropertyKey, confirmed: JSONValue? = nil,
    property: (PropertyKey) -> ModelSchema.Property?
  ) {
    guard !additions.isEmpty, let addition = additions[name.uuid],
      let value = addition.properties[name.name], !covers(name, by: addition.set)
    else { return }
    let property = property(name)
    if let property, let base = addition.bases[name.name] {
      add(
        set: addition.set, key: name,
        .putBack(PropertyContent(value), base: PropertyContent(base), property),
        base: .known(PropertyContent(confirmed ?? base)))
    } else if property?.isCollection == true, case .list(let list) = PropertyContent(value) {
      // An addition of a model that the server already has removes nothing from a collection.
      let insertions = list.elements.map { PropertyOperation.insert($0, .end) }
      add(
        set: addition.set, key: name, .operations(insertions, value: nil, range: .unknown),
        base: .known(.list(CollectionContent())))
    } else {
      add(
        set: addition.set, key: name, .assign(PropertyContent(value)), base: .known(.json(.null)))
    }
  }

  /// Removes the addition of a model by the change set with number `set`, which is decided. If it was not accepted, a
  /// model that was put back may still exist, because other models hold it: then it has the values that were known of
  /// it.
  mutating func decide(
    addition fragment: SyncFragment, of set: Int, isAccepted: Bool,
    property: (PropertyKey) -> ModelSchema.Property?
  ) {
    guard additions[fragment.uuid]?.set == set else { return }
    if !isAccepted {
      for (key, base) in fragment.bases where !fragment.properties[key].isWritten(as: base) {
        coverIfAdded(PropertyKey(uuid: fragment.uuid, name: key), property: property)
      }
    }
    additions[fragment.uuid] = nil
  }

  /// Replaces the root's UUID in the values of added models.
  mutating func renameAdditions(_ renaming: RootRenaming, schema: (UUID) -> ModelSchema?) {
    for (uuid, addition) in additions {
      let schema = schema(uuid)
      additions[uuid] = Addition(
        set: addition.set, properties: renaming(addition.properties, of: schema),
        bases: renaming(addition.bases, of: schema))
    }
  }
}
