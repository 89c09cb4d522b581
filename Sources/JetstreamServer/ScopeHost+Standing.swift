import Foundation
import Jetstream

/// How a client that comes, or comes back, stands to a scope.
extension ScopeHost {
  /// What it is told first, and the place that it names, if all that came after that is known.
  func standing(of client: UUID?, _ fetch: ScopeFetch) -> (ScopeStanding, since: Int?) {
    var standing = ScopeStanding(position: ScopePosition(epoch: epoch, sequence: sequence))
    if let client {
      clients.saw(client, upTo: fetch.decided, scopeAt: sequence)
      let decisions = clients[client]
      standing.decided = decisions.decided
      standing.decisions = decisions.unknown(after: fetch.decided ?? 0)
    }
    if fetch.tell == .nothing {
      standing.resumes = true
      return (standing, nil)
    }
    guard let since = fetch.since, since.epoch == epoch else { return (standing, nil) }
    let isForgotten = client.map { clients.hasForgotten($0, since: since.sequence) } ?? false
    guard let items = stream.items(after: since.sequence, upTo: sequence) else {
      standing.isForgotten = isForgotten
      return (standing, nil)
    }
    if isForgotten { takeDecisions(of: client, from: items, to: &standing) }
    standing.resumes = true
    return (standing, since.sequence)
  }

  /// How a client's sets were decided that are in the stream, if that was forgotten otherwise. All that was
  /// accepted since is there; what was rejected may be sent again.
  private func takeDecisions(
    of client: UUID?, from items: ArraySlice<StreamItem>, to standing: inout ScopeStanding
  ) {
    for item in items {
      guard let author = item.author, author.client == client else { continue }
      standing.decided = max(standing.decided, author.number)
      standing.decisions.append(
        .init(number: author.number, fragmentReplies: [], sequence: item.sequence))
    }
  }
}

extension ServerEngine {
  /// How many models that have left a scope are kept for sessions that may name them; for tests.
  package func departedCount(of scope: Scope) -> Int? {
    hosts[ObjectIdentifier(scope)]?.departed.count
  }

  /// Of how many clients a scope remembers what it has decided; for tests.
  package func rememberedClients(of scope: Scope) -> Int? {
    hosts[ObjectIdentifier(scope)]?.clients.count
  }

  /// How far the scopes are; for tests.
  package var positions: [ScopePosition] {
    hosts.values.map { ScopePosition(epoch: $0.epoch, sequence: $0.sequence) }
  }
}
