import Foundation

/// Models that come back. Other replicas may have other values of such a model than this one: those that it had when it
/// left, with the remote changes since.
extension Graveyard {
  /// Handles a model that has come back. If remote changes have brought it back, it gets the values that other replicas
  /// have; if the app has, these values are the ones that the app's change departs from. A model that was away for less
  /// than an interval is not added by a change set.
  mutating func noteReturn(of model: ModelObject, to scope: Scope) {
    let values = remove(model.uuid)
    // A model that comes back because a call of `modify` has thrown keeps its values.
    guard let values, !scope.isRollingBack else { return }
    if scope.isWritingRemotely {
      revived[model.uuid] = values
    } else if let record = model.record, record.isNew || record.captureTree !== scope.tree {
      putBack[model.uuid] = values
    }
  }

  /// Keeps a model that has left, because the rejection of a change set that is pending, or about to be made, may
  /// bring it back. A model that had come back only for a moment is kept with the values that it had when it came:
  /// those are the ones that other replicas have. The same goes for a model that only local properties held until
  /// now, and that was changed meanwhile.
  mutating func noteDeparture(of model: ModelObject) {
    let known =
      putBack.removeValue(forKey: model.uuid) ?? revived.removeValue(forKey: model.uuid)
      ?? values(of: model.uuid)
    insert(model, values: known)
  }

  /// Returns a new change set with the last known values of the models that it puts back.
  mutating func notingKnownValues(in set: ChangeSet, of scope: Scope) -> ChangeSet {
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

  /// Removes and returns the models that remote changes have brought back, with the values that other replicas have;
  /// nil if there are none.
  mutating func takeRevived() -> [UUID: JSONObject]? {
    if revived.isEmpty { return nil }
    defer { revived = [:] }
    return revived
  }

  /// Forgets that models have come back which a full state contains: they have its values.
  mutating func noteState(_ state: [SyncFragment]) {
    for fragment in state { revived[fragment.uuid] = nil }
  }

  /// Returns a description of every broken invariant; for tests.
  func brokenInvariants() -> [String] {
    let back = Set(putBack.keys).union(revived.keys)
    let gone = back.filter { find($0) != nil }
    let both = revived.keys.filter { putBack[$0] != nil }
    return gone.map { "\($0.wireText) has left and come back" }
      + both.map { "both the app and remote changes have brought \($0.wireText) back" }
  }
}
