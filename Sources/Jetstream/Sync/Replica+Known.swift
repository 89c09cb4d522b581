import Foundation

/// The models that a replica knows: those of the scope, and those that may return to it.
extension Replica {
  /// Returns a model of the scope, or one that has left it.
  func knownModel(_ uuid: UUID) -> ModelObject? { scope.model(uuid) ?? graveyard.find(uuid) }

  /// Returns the declaration of a property, if its model is known.
  func knownProperty(_ name: PropertyKey) -> ModelSchema.Property? {
    knownModel(name.uuid)?.schema[wireName: name.name]
  }

  /// Returns true if the model is known, or the scope has it without knowing its class.
  func isKnown(_ uuid: UUID) -> Bool { knownModel(uuid) != nil || scope.unknownModel(uuid) != nil }

  /// Puts a pending addition's value in front of a property that remote changes are about to change.
  func coverIfAdded(_ name: PropertyKey, confirmed: JSONValue? = nil) {
    overlay.coverIfAdded(name, confirmed: confirmed) { knownProperty($0) }
  }

  /// Applies the server's decision about an addition. If the server has accepted the addition unchanged, the model
  /// has exactly the values that were sent; what the server merges with them follows.
  func decide(addition fragment: SyncFragment, of number: Int, isAccepted: Bool) {
    overlay.decide(addition: fragment, of: number, isAccepted: isAccepted) { knownProperty($0) }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      guard overlay.covers(name) else { continue }
      touch(name, className: fragment.className)
      overlay.decide(set: number, key: name, isAccepted: false)
      if isAccepted { overlay.confirm(name, value: value) }
    }
    // Others may have given the model an entry before they removed it, and the server has forgotten both. They know
    // only a model that is put back.
    guard isAccepted, !fragment.bases.isEmpty, scope.tree.hasDictionaries else { return }
    let lost = missingEntries(in: fragment)
    if lost.isEmpty { return }
    note(
      SyncFragment(
        .change, uuid: fragment.uuid, className: fragment.className,
        properties: JSONObject(lost.map { ($0, .null) })))
  }
}

extension Replica: MembershipObserver {
  package func modelEntered(_ model: ModelObject) { graveyard.noteReturn(of: model, to: scope) }

  package func modelLeft(_ model: ModelObject) { graveyard.noteDeparture(of: model) }

  /// Treats a model that only a local property still holds like one that has left.
  package func modelWithdrawn(_ model: ModelObject) { modelLeft(model) }

  package func modelShared(_ model: ModelObject) { modelEntered(model) }

  /// Calls `body` with the models that come back if a pending change set is rejected, and with what they name.
  package func forEachReturning(_ body: (UUID) -> Void) {
    graveyard.forEachName(body)
    if pending.isEmpty { return }
    for uuid in overlay.references { body(uuid) }
    for entry in pending { entry.set.forEachName(body) }
  }
}
