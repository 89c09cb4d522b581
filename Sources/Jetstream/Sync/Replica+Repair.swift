import Foundation

/// Detecting and repairing a replica that differs from the server's state.
extension Replica {
  /// The result of a comparison with the server's digest.
  enum Comparison {
    case equal
    /// The digests of the parts, to be sent to the server.
    case different([UInt64])
    /// Two repairs by the server have not helped: the scope has to be fetched again.
    case beyondRepair
    /// Fetching the scope again has not helped either. This is not an accident, and another attempt would not help.
    case hopeless
  }

  /// Compares the scope with the server's digest. Returns nil if that is not possible now: while change sets are
  /// pending or messages are held, when the digest is for another sequence, or when the server has other classes.
  func compare(with check: Ping.Check) -> Comparison? {
    guard session.vainRepairs <= 3, session.hasState, session.isTaking,
      session.stateStanding == nil,
      session.held.isEmpty, pending.isEmpty, progress.position?.sequence == check.sequence,
      !scope.hasCollectedChanges, scope.modification == nil
    else { return nil }
    let digest = observation.digest(of: scope)
    guard let total = digest.total(), total.schema == check.schema else { return nil }
    if total.digest == check.digest {
      session.vainRepairs = 0
      return .equal
    }
    if session.vainRepairs < 2 { return .different(digest.parts) }
    session.vainRepairs += 1
    return session.vainRepairs == 3 ? .beyondRepair : .hopeless
  }

  /// Applies models as the server has them at a sequence.
  func repair(with fragments: [SyncFragment], at sequence: Int) {
    // If the scope has another sequence by now, it will be compared again.
    guard session.hasState, session.isTaking, sequence == progress.position?.sequence else {
      return
    }
    beginBatch()
    session.vainRepairs += 1
    // A server that cannot repair the scope in this way sends nothing.
    if fragments.isEmpty { return }
    batch.repaired = observation.digest?.differing(from: fragments) ?? fragments.map(\.uuid)
    keep(.confirmed(fragments, sequence: nil))
    noteOverwritten(by: fragments, ChangeOrigin())
    for fragment in fragments { note(fragment) }
    noteRemote(RemoteChanges(fragments, sequence: sequence))
  }
}

extension ClientEngine {
  /// Compares the replicas with the digests in this frame, and asks the server to repair those that differ.
  func compareReplicas() {
    var differences: [Int: [Ping.Difference]] = [:]
    for check in session.takeChecks() {
      guard let replica = replica(check.scopeIndex) else { continue }
      let comparison = replica.compare(with: check)
      if case .different = comparison { report(.differs(replica.scope, check.sequence)) }
      switch comparison {
      case .equal, nil: break
      case .different(let parts):
        differences[replica.session.channel, default: []].append(
          Ping.Difference(scopeIndex: check.scopeIndex, parts: parts))
      case .beyondRepair:
        send(fetch: replica, tell: .everything, isWhole: true)
      case .hopeless:
        diagnose(
          .error, .scope, scope: replica.scope,
          "differs from the server's at sequence \(check.sequence), and fetching it again has not helped"
        )
      }
    }
    guard status == .online else { return }
    for (channel, found) in differences { transmit([ping(in: channel, found)], in: channel) }
  }
}
