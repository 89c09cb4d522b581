import Foundation
import Jetstream

/// How a client that comes, or comes back, stands to a scope.
extension ScopeHost {
  /// What it is told first, and the place that it names, if all that came after that is known.
  func standing(of client: UUID?, _ fetch: ScopeFetch) -> (ScopeStanding, since: Int?) {
    var standing = ScopeStanding(position: ScopePosition(epoch: epoch, sequence: sequence))
    if let client {
      if let known = fetch.decided { clients[client]?.forget(upTo: known) }
      let decisions = clients[client] ?? ClientDecisions()
      standing.decided = decisions.decided
      standing.decisions = decisions.unknown(after: fetch.decided ?? 0)
    }
    if fetch.tell == .nothing {
      standing.resumes = true
      return (standing, nil)
    }
    guard let since = fetch.since, since.epoch == epoch,
      stream.items(after: since.sequence, upTo: sequence) != nil
    else { return (standing, nil) }
    standing.resumes = true
    return (standing, since.sequence)
  }
}

extension ServerEngine {
  /// How many models that have left a scope are kept for sessions that may name them; for tests.
  package func departedCount(of scope: Scope) -> Int? {
    hosts[ObjectIdentifier(scope)]?.departed.count
  }

  /// How far the scopes are; for tests.
  package var positions: [ScopePosition] {
    hosts.values.map { ScopePosition(epoch: $0.epoch, sequence: $0.sequence) }
  }
}
