import Foundation

/// The state of the scope without the change sets that the server has not decided.
extension Replica {
  /// The confirmed state, and what pending change sets need besides.
  struct Confirmed {
    /// The state, the root first.
    var state: [SyncFragment] = []
    /// Models that pending change sets name although the confirmed state does not have them any more.
    var departed: [SyncFragment] = []
  }

  /// The confirmed state: what the models show, with the confirmed value of each property that a pending change
  /// set touches, as far as those values lead. Cost: O(models).
  ///
  /// The scope has to be settled. Nil while a model is put back, in a pending change set or before there is one: what
  /// the confirmed state has of the model is not known any more.
  func confirmed() -> Confirmed? {
    if pending.isEmpty { return Confirmed(state: scope.sharedState()) }
    guard let root = scope.root, putBack.isEmpty,
      additions.values.allSatisfy({ $0.bases.isEmpty })
    else { return nil }
    let covered = Dictionary(grouping: overlay.keys, by: \.uuid)
    var result = Confirmed()
    var visited: Set<UUID> = []
    var open = [root.uuid]
    while let uuid = open.popLast() {
      guard visited.insert(uuid).inserted,
        let fragment = confirmedFragment(of: uuid, covered[uuid] ?? [])
      else { continue }
      if additions[uuid] != nil { return nil }
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
      guard additions[uuid] == nil, visited.insert(uuid).inserted,
        let fragment = confirmedFragment(of: uuid, covered[uuid] ?? [])
      else { continue }
      result.departed.append(fragment)
      scope.forEachModel(namedBy: fragment) { open.append($0) }
    }
    return result
  }

  /// Returns a model as an addition with its confirmed values; nil if neither the scope nor the graveyard has it. What
  /// the scope shows of a model that only local properties hold is not shared.
  private func confirmedFragment(of uuid: UUID, _ covered: [PropertyKey]) -> SyncFragment? {
    let shown =
      scope.sharedModel(uuid)?.ensureRecord().addFragment(withHeldBack: false)
      ?? graveyard.fragment(uuid) ?? scope.unknownModel(uuid)
    guard var fragment = shown else { return nil }
    let schema = scope.schema(of: fragment)
    for name in covered where fragment.properties[name.name] != nil {
      guard let value = overlay.confirmed(name)?.json else { continue }
      // What no class knows is not there before it has a value.
      let isMissing = value == .null && schema?[wireName: name.name] == nil
      fragment.properties[name.name] = isMissing ? nil : value
    }
    return fragment
  }
}
