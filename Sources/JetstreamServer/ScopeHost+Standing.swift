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
    if isForgotten {
      takeDecisions(of: client, after: fetch.decided ?? 0, from: items, to: &standing)
    }
    standing.resumes = true
    return (standing, since.sequence)
  }

  /// How a client's sets were decided, when that is forgotten, as far as the stream says it: what was accepted
  /// since is in it, and what came before that and is not was rejected.
  private func takeDecisions(
    of client: UUID?, after known: Int, from items: ArraySlice<StreamItem>,
    to standing: inout ScopeStanding
  ) {
    var places: [Int: Int] = [:]
    for item in items {
      guard let author = item.author, author.client == client, author.number > known else {
        continue
      }
      places[author.number] = item.sequence
    }
    guard let last = places.keys.max() else { return }
    // So many are not pending anywhere: the client says to know less than it does.
    guard last - known <= 10_000 else { return standing.isForgotten = true }
    standing.decided = last
    standing.decisions = (known + 1...last).map { number in
      .init(number: number, fragmentReplies: [], sequence: places[number])
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
