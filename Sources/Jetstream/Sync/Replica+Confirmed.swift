import Foundation

/// The confirmed state, and the models that pending change sets need besides.
struct ConfirmedState {
  /// The state, with the root first.
  var state: [SyncFragment] = []
  /// The models that pending change sets name although the confirmed state no longer has them.
  var departed: [SyncFragment] = []
}

/// The confirmed state: the state of the scope without the pending change sets.
extension Replica {
  /// Returns the confirmed state: the models that can be reached by confirmed values, with the confirmed value of
  /// each property that a pending change set touches. Cost: O(models).
  ///
  /// The scope has to be settled. Returns nil while a pending change set, or a local change that is in none yet,
  /// puts a model back, because the model's confirmed values are not known any more.
  func confirmed() -> ConfirmedState? {
    if pending.isEmpty { return ConfirmedState(state: scope.sharedState()) }
    guard let root = scope.root, graveyard.putBack.isEmpty, !overlay.putsBack
    else { return nil }
    let covered = Dictionary(grouping: overlay.keys, by: \.uuid)
    var result = ConfirmedState()
    var visited: Set<UUID> = []
    var open = [root.uuid]
    while let uuid = open.popLast() {
      guard visited.insert(uuid).inserted,
        let fragment = confirmedFragment(of: uuid, covered[uuid] ?? [])
      else { continue }
      if overlay.adds(uuid) { return nil }
      result.state.append(fragment)
      scope.forEachModel(namedBy: fragment) { open.append($0) }
    }
    result.state[0].kind = .change
    for entry in pending {
      for fragment in entry.set.fragments {
        open.append(fragment.uuid)
        scope.forEachModel(namedBy: fragment) { open.append($0) }
      }
    }
    while let uuid = open.popLast() {
      guard !overlay.adds(uuid), visited.insert(uuid).inserted,
        let fragment = confirmedFragment(of: uuid, covered[uuid] ?? [])
      else { continue }
      result.departed.append(fragment)
      scope.forEachModel(namedBy: fragment) { open.append($0) }
    }
    return result
  }

  /// Returns a model as an addition with its confirmed values; nil if neither the scope nor the graveyard has it.
  /// The scope's values of a model that only local properties hold are not used, because they are not shared.
  private func confirmedFragment(of uuid: UUID, _ covered: [PropertyKey]) -> SyncFragment? {
    let shown =
      scope.sharedModel(uuid)?.ensureRecord().addFragment(withHeldBack: false)
      ?? graveyard.fragment(uuid) ?? scope.unknownModel(uuid)
    guard var fragment = shown else { return nil }
    let schema = scope.schema(of: fragment)
    for name in covered {
      let property = schema?[wireName: name.name]
      let isEntry = property?.entryKey != nil
      guard isEntry || fragment.properties[name.name] != nil,
        let value = overlay.confirmed(name)?.json
      else { continue }
      // An entry, or a property that the class does not declare, is missing while it has no value.
      let isMissing = value == .null && (isEntry || property == nil)
      fragment.properties[name.name] = isMissing ? nil : value
    }
    return fragment
  }
}
