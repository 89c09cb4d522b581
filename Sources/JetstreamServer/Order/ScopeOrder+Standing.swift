import Foundation
import Jetstream

/// Fetches of a scope by clients that are new or come back.
extension ScopeOrder {
  /// Returns the standing that a client is sent first. `since` is the sequence after which it is sent the change sets;
  /// nil if it gets nothing at all, or the full state, since the stream does not reach back that far or has more to take
  /// in.
  ///
  /// - Parameter isStateLess: returns true if the full state is less than the change sets that the client has missed; see
  ///   ``isStateLess(than:for:)``.
  func standing(
    of client: UUID?, _ fetch: ScopeFetch, isStateLess: (ArraySlice<StreamItem>) -> Bool
  ) -> (ScopeStanding, since: Int?) {
    var standing = ScopeStanding(position: ScopePosition(epoch: epoch, sequence: sequence))
    let since = fetch.since.flatMap { $0.epoch == epoch ? $0.sequence : nil }
    let items = since.flatMap { stream.items(after: $0, upTo: sequence) }
    if let client {
      if clients.hasForgotten(client, since: since) {
        // A state that the client has got since may contain what is forgotten: the stream behind it does not tell.
        standing.isForgotten =
          items == nil || clients[client].forgotten.isTold
          || !takeDecisions(of: client, after: fetch.decided ?? 0)
        if standing.isForgotten { noteForgotten(client) }
      }
      clients.saw(client, upTo: fetch.decided, scopeAt: sequence)
      let decisions = clients[client]
      (standing.decided, standing.forgottenUpTo) = (decisions.decided, decisions.forgotten.number)
      standing.decisions = decisions.unknown(after: fetch.decided ?? 0)
    }
    if fetch.tell == .nothing {
      standing.resumes = true
      return (standing, nil)
    }
    guard let items, !isStateLess(items) else { return (standing, nil) }
    standing.resumes = true
    return (standing, since)
  }

  /// Notes up to which number the change sets of a client are known to be decided, whose decisions were forgotten: at least
  /// up to the last one in the stream. Of those that the client sends again, no call is begun again.
  private func noteForgotten(_ client: UUID) {
    let numbers = stream.all.lazy.compactMap(\.author).filter { $0.client == client }
    clients.noteForgotten(client, upTo: numbers.map(\.number).max(), scopeAt: sequence)
  }

  /// Recovers the decisions on a client's change sets from the stream. Those in the stream were accepted, at least in part;
  /// those before the last of them that are not in the stream were rejected or had no effect.
  ///
  /// - Returns: false if the client knows so few decisions that its claim cannot be true.
  private func takeDecisions(of client: UUID, after known: Int) -> Bool {
    var items: [Int: StreamItem] = [:]
    for item in stream.all {
      if let author = item.author, author.client == client { items[author.number] = item }
    }
    guard let last = items.keys.max() else { return true }
    // No client has this many pending change sets.
    guard last - known <= 10_000 else { return false }
    clients.remember(
      client, decidedUpTo: last,
      (min(known, last)..<last).map { before in
        let item = items[before + 1]
        return .init(
          number: before + 1, fragmentReplies: item?.replies ?? [], sequence: item?.sequence)
      })
    return true
  }
}
