import Foundation
import Jetstream

/// How a client that comes, or comes back, stands to a scope.
extension ScopeHost {
  /// What it is told first, and the place that it names, if all that came after that is known.
  func standing(of client: UUID?, _ fetch: ScopeFetch) -> (ScopeStanding, since: Int?) {
    var standing = ScopeStanding(position: ScopePosition(epoch: epoch, sequence: sequence))
    let since = fetch.since.flatMap { $0.epoch == epoch ? $0.sequence : nil }
    let items = since.flatMap { stream.items(after: $0, upTo: sequence) }
    if let client {
      if clients.hasForgotten(client, since: since) {
        standing.isForgotten = items == nil || !takeDecisions(of: client, after: fetch.decided ?? 0)
      }
      clients.saw(client, upTo: fetch.decided, scopeAt: sequence)
      let decisions = clients[client]
      standing.decided = decisions.decided
      standing.decisions = decisions.unknown(after: fetch.decided ?? 0)
    }
    if fetch.tell == .nothing {
      standing.resumes = true
      return (standing, nil)
    }
    guard items != nil else { return (standing, nil) }
    standing.resumes = true
    return (standing, since)
  }

  /// Remembers again how a client's sets were decided, as far as the stream says it: what was accepted since
  /// is in it, and what came before that and is not was rejected, or had no effect.
  ///
  /// - Returns: false if the client says to know less than it can.
  private func takeDecisions(of client: UUID, after known: Int) -> Bool {
    var places: [Int: Int] = [:]
    for item in stream.all {
      guard let author = item.author, author.client == client, author.number > known else {
        continue
      }
      places[author.number] = item.sequence
    }
    guard let last = places.keys.max() else { return true }
    // So many are not pending anywhere.
    guard last - known <= 10_000 else { return false }
    clients.remember(
      client,
      (known + 1...last).map { number in
        .init(number: number, fragmentReplies: [], sequence: places[number])
      })
    return true
  }
}

extension ServerEngine {
  /// How many models that have left a scope are kept for sessions that may name them; for tests.
  package func departedCount(of scope: Scope) -> Int? {
    hosts[ObjectIdentifier(scope)]?.departed.count
  }

  /// About how many bytes of its last change sets a scope keeps; for tests.
  package func streamBytes(of scope: Scope) -> Int? {
    hosts[ObjectIdentifier(scope)]?.stream.bytes
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
