import Foundation

/// Models that pending change sets add. Other replicas do not know a new model; but a model that was removed here
/// and put back in a later change set is added again, while other replicas, which know of neither, go on changing
/// it.
///
/// Putting a model back only expresses what was changed here: the addition carries, as its bases, the values that
/// this replica knew (``SyncFragment/bases``). Both the server and the overlay merge the addition with what other
/// replicas have written (``ModelSchema/Property/putBack(_:onto:base:)``).
extension Replica {
  /// An addition by a pending change set.
  struct Addition {
    /// The change set's number.
    let set: Int
    let properties: JSONObject
    /// The values that this replica knew of a model that it puts back; empty for a new model.
    let bases: JSONObject

    /// Returns the addition with the root's new UUID in its values.
    func renaming(_ renaming: RootRenaming, of schema: ModelSchema?) -> Addition {
      Addition(
        set: set, properties: renaming(properties, of: schema), bases: renaming(bases, of: schema))
    }
  }

  func noteAdditions(_ fragments: [SyncFragment], of number: Int) {
    for fragment in fragments where fragment.kind == .add {
      additions[fragment.uuid] = Addition(
        set: number, properties: fragment.properties, bases: fragment.bases)
      // The addition hides what earlier pending sets have written to the model.
      for (key, _) in fragment.bases {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        if overlay.covers(name) { coverIfAdded(name) }
      }
    }
  }

  /// Returns the change set with the last known values of the models that it puts back.
  func notingKnownValues(in set: ChangeSet) -> ChangeSet {
    if putBack.isEmpty { return set }
    let fragments = set.fragments.map { fragment in
      guard fragment.kind == .add, let known = putBack.removeValue(forKey: fragment.uuid) else {
        return fragment
      }
      var fragment = fragment
      // An addition has no entry that the model has lost; that it has lost it is part of what was changed.
      let schema = scope.schema(of: fragment)
      for (key, _) in known where fragment.properties[key] == nil {
        if schema?[wireName: key]?.entryKey != nil { fragment.properties[key] = .null }
      }
      fragment.bases = JSONObject(
        known.filter { fragment.properties[$0.key] != nil }.map { ($0.key, $0.value) })
      return fragment
    }
    // A model that only local properties hold is added by a later change set, and one that has left again by none.
    putBack = putBack.filter { scope.tree.record(of: $0.key)?.isNew == true }
    return set.with(fragments, undo: set.undo)
  }

  /// Puts a pending addition's value in front of a property that remote changes are about to change.
  ///
  /// - Parameter confirmed: the confirmed value, if it differs from the one that the client knew when it added the
  ///   model.
  func coverIfAdded(_ name: PropertyKey, confirmed: JSONValue? = nil) {
    guard !additions.isEmpty, let addition = additions[name.uuid],
      let value = addition.properties[name.name], !overlay.covers(name, by: addition.set)
    else { return }
    let property = (scope.model(name.uuid) ?? graveyard.find(name.uuid))?.schema[
      wireName: name.name]
    if let property, let base = addition.bases[name.name] {
      overlay.add(
        set: addition.set, key: name,
        .putBack(PropertyContent(value), base: PropertyContent(base), property),
        base: .known(PropertyContent(confirmed ?? base)))
    } else if property?.isCollection == true, case .list(let list) = PropertyContent(value) {
      // An addition of a model that the server already has removes nothing from a collection.
      let insertions = list.elements.map { PropertyOperation.insert($0, .end) }
      overlay.add(
        set: addition.set, key: name, .operations(insertions, value: nil, range: .unknown),
        base: .known(.list(CollectionContent())))
    } else {
      overlay.add(
        set: addition.set, key: name, .assign(PropertyContent(value)), base: .known(.json(.null)))
    }
  }

  /// Applies the server's decision about an addition. If the server has accepted the addition unchanged, the model
  /// has exactly the values that were sent; what the server merges with them follows. If not, a model that was put
  /// back may still exist, because other models hold it: then it has the values that were known of it.
  func decide(addition fragment: SyncFragment, of number: Int, isAccepted: Bool) {
    if additions[fragment.uuid]?.set == number {
      if !isAccepted {
        for (key, base) in fragment.bases where fragment.properties[key] != base {
          coverIfAdded(PropertyKey(uuid: fragment.uuid, name: key))
        }
      }
      additions[fragment.uuid] = nil
    }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      guard overlay.covers(name) else { continue }
      touch(name, className: fragment.className)
      overlay.decide(set: number, key: name, isAccepted: false)
      if isAccepted { overlay.confirm(name, value: value) }
    }
  }
}
