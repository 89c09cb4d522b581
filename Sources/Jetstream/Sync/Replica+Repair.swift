import Foundation

/// Noticing that a replica is not what it should be, and putting it right.
extension Replica {
  /// How a comparison has ended.
  enum Comparison {
    case equal
    /// The parts come to this, and the server should be told.
    case different([UInt64])
    /// What the server has sent twice has not helped: the scope has to be fetched again.
    case beyondRepair
    /// That has not helped either: this is no accident, and more of the same is no use.
    case hopeless
  }

  /// Compares the scope with what the server has said of it; nil if that is not possible now: while something
  /// is pending here or waits to be taken in, when the server speaks of another place of the order, or when it
  /// means something else by the classes.
  func compare(with check: Ping.Check) -> Comparison? {
    guard vainRepairs <= 3, hasState, isTaking, stateStanding == nil,
      held.isEmpty, pending.isEmpty, position?.sequence == check.sequence,
      !scope.hasCollectedChanges, scope.modification == nil
    else { return nil }
    let digest = digest ?? ScopeDigest(scope)
    self.digest = digest
    guard let total = digest.total(), total.schema == check.schema else { return nil }
    if total.digest == check.digest {
      vainRepairs = 0
      return .equal
    }
    if vainRepairs < 2 { return .different(digest.parts) }
    vainRepairs += 1
    return vainRepairs == 3 ? .beyondRepair : .hopeless
  }

  /// Takes in models as the server has them at a place of the order.
  func repair(with fragments: [SyncFragment], at sequence: Int) {
    // A scope that has gone another way since will be compared again.
    guard hasState, isTaking, sequence == position?.sequence else { return }
    beginBatch()
    vainRepairs += 1
    // A server that cannot help in this way says so with nothing.
    if fragments.isEmpty { return }
    batch.repaired = digest?.differing(from: fragments) ?? fragments.map(\.uuid)
    keep(.confirmed(fragments, sequence: nil))
    noteOverwritten(by: fragments, ChangeOrigin())
    for fragment in fragments { note(fragment) }
    noteRemote(RemoteChanges(fragments, sequence: sequence))
  }
}

extension ClientEngine {
  /// Compares the replicas with what the server has said in this frame, and asks for what differs.
  func compareReplicas() {
    let due = checks
    checks = []
    var differences: [Ping.Difference] = []
    for check in due {
      guard let replica = replica(check.scopeIndex) else { continue }
      let comparison = replica.compare(with: check)
      if case .different = comparison { report(.differs(replica.scope, check.sequence)) }
      switch comparison {
      case .equal, nil: break
      case .different(let parts):
        differences.append(Ping.Difference(scopeIndex: check.scopeIndex, parts: parts))
      case .beyondRepair:
        send(fetch: replica, tell: .everything, isWhole: true)
      case .hopeless:
        report(
          .skipped(
            "scope \(replica.scope.name) is not what the server has at \(check.sequence), and to fetch it "
              + "again has not helped"))
      }
    }
    guard !differences.isEmpty, state == .online else { return }
    var ping = ping(acknowledging: knowledge)
    ping.differences = differences
    transmit([.ping(ping)])
  }
}
