import Foundation
import Jetstream

/// The decisions on the change sets of the clients that used a scope most recently, by client.
struct ClientTable {
  /// The decisions of all clients, but for those of ``latest``, in place of which it has empty ones.
  private var byID: [UUID: ScopeHistory.Client] = [:]
  /// The client that was looked up last, with its decisions: a change set is received and decided, and mostly another one of
  /// its client follows.
  private var latest: (id: UUID, decisions: ScopeHistory.Client)?
  /// The highest ``ScopeHistory/Client/seenAt`` of a client that was dropped from the table: clients last seen at this
  /// sequence or before may be forgotten.
  private(set) var forgottenUpTo = 0
  /// The number of clients above which ``trim(to:bytes:present:)`` looks again for clients to drop.
  private var trimAt = 0
  /// The approximate size in bytes of the decisions that were made, or are left by clients with their traces, since the sizes
  /// of all were last added up.
  private var addedBytes = 0

  init() {}

  init(_ history: ScopeHistory) {
    byID = history.clients
    addedBytes = byID.values.reduce(0) { $0 + $1.size }
    forgottenUpTo = history.forgottenUpTo
  }

  var count: Int { byID.count }

  /// The decisions on a client's change sets; empty for an unknown client.
  subscript(client: UUID) -> ScopeHistory.Client { known(client) ?? .unknown }

  /// Returns the decisions of all clients, as a snapshot stores them.
  mutating func all() -> [UUID: ScopeHistory.Client] {
    settle()
    return byID
  }

  private func known(_ client: UUID) -> ScopeHistory.Client? {
    if let latest, latest.id == client { return latest.decisions }
    return byID[client]
  }

  /// Brings ``byID`` up to date.
  private mutating func settle() {
    guard let (id, decisions) = latest.take() else { return }
    byID[id] = decisions
  }

  /// Makes a client that is in the table the latest one. Returns false if it is not in the table.
  private mutating func lookUp(_ client: UUID) -> Bool {
    if let latest, latest.id == client { return true }
    settle()
    guard let place = byID.index(forKey: client) else { return false }
    latest = (client, byID.values[place])
    // With two owners, each change of the decisions would copy all of them.
    byID.values[place] = .unknown
    return true
  }

  /// Returns whether a change set received from a client is new, was decided before, or contradicts an earlier decision, after
  /// dropping the decisions that the client knows by now.
  ///
  /// - Parameters:
  ///   - checksum: the checksum of the change set; nil if it could not be read.
  ///   - known: the number up to which the client knows the decisions; nil if it does not say.
  ///   - most: the size from which on the decisions that it does not know leave no room for one more; nil for any size.
  mutating func receive(
    from client: UUID, _ number: Int, checksum: UInt32?, knowing known: Int?, below most: Int?
  ) -> (verdict: ScopeHistory.Client.Verdict, hasRoom: Bool) {
    func look(_ client: ScopeHistory.Client) -> (ScopeHistory.Client.Verdict, Bool) {
      (
        client.verdict(on: number, checksum: checksum),
        most.map { client.bytes < $0 } ?? true
      )
    }
    guard lookUp(client) else { return (look(.unknown).0, true) }
    if let known { latest?.decisions.forget(upTo: known) }
    return latest.map { look($0.decisions) } ?? (look(.unknown).0, true)
  }

  /// Records the decision on a client's change set.
  ///
  /// - Parameters:
  ///   - place: the sequence of the change set; nil if nothing of it was applied.
  ///   - sequence: the scope's current sequence.
  mutating func decide(_ decision: ScopeRecord.Decision, at place: Int?, scopeAt sequence: Int) {
    if !lookUp(decision.client) {
      byID[decision.client] = .unknown
      latest = (decision.client, .unknown)
    }
    addedBytes += latest?.decisions.decide(decision, at: place, scopeAt: sequence) ?? 0
  }

  /// Notes that a client fetches the scope and knows the outcomes of its change sets up to `number`.
  mutating func saw(_ client: UUID, upTo number: Int?, scopeAt sequence: Int) {
    if let number { forgetDecisions(of: client, upTo: number) }
    if lookUp(client) { latest?.decisions.seenAt = sequence }
  }

  /// Replaces what is stored of a client with decisions that were recovered, in the order of their numbers. None of those
  /// that are missing behind them, up to the number in the client's ``ScopeHistory/Client/forgotten``, has had an effect.
  mutating func remember(
    _ client: UUID, decidedUpTo last: Int, _ decisions: [ScopeStanding.Decision]
  ) {
    let end = max(last, min(self[client].forgotten.number, last + Self.mostRecovered))
    let rejected = (last..<end).map { ScopeStanding.Decision(number: $0 + 1, fragmentReplies: []) }
    let recovered = ScopeHistory.Client(decided: end, decisions: decisions + rejected)
    addedBytes += recovered.size
    settle()
    byID[client] = recovered
  }

  /// The most decisions that are recovered behind those that are in the stream: no client has more pending change sets.
  private static let mostRecovered = 10_000

  /// Notes that a client, of which decisions were forgotten, is known to have had its change sets up to `number` decided.
  /// The client is told so with the state at `sequence`, which may contain what is forgotten.
  mutating func noteForgotten(_ client: UUID, upTo number: Int?, scopeAt sequence: Int) {
    settle()
    guard byID[client] != nil || number != nil else { return }
    let last = max(self[client].forgotten.number, number ?? 0)
    byID[client] = .emptied(upTo: last, isTold: true, seenAt: sequence)
  }

  /// Notes that a client has left the scope, or has no session any more: its decisions count among those of all others.
  mutating func left(_ client: UUID) { addedBytes += known(client)?.size ?? 0 }

  /// Drops the decisions that a client knows, those on its change sets up to `number`, but for the traces of the last ones.
  mutating func forgetDecisions(of client: UUID, upTo number: Int) {
    if lookUp(client) { latest?.decisions.forget(upTo: number) }
  }

  /// Returns whether decisions on a client's change sets may have been dropped, for a client that resumes at the
  /// sequence `since`. A client that has seen a later sequence than ``forgottenUpTo`` has also seen the decisions on
  /// its own change sets.
  func hasForgotten(_ client: UUID, since: Int?) -> Bool {
    if let known = known(client) { return known.forgotten.isAll }
    return since.map { $0 <= forgottenUpTo && forgottenUpTo > 0 } ?? false
  }

  /// Forgets decisions of clients that are not `present`, if there are too many.
  ///
  /// - Parameters:
  ///   - limit: the number of clients. Once the table exceeds it by a quarter, those that were seen least recently are
  ///     dropped. A client that may not know what was decided behind its last change set in the stream loses its decisions
  ///     alone, for as long as that is there: the stream does not tell that calls were begun that have failed.
  ///   - most: the approximate size of the decisions of all clients that are not present; nil for no limit. Once they exceed
  ///     it by a quarter, the clients with the most lose theirs. A user may be one client after the other, and leave each
  ///     behind with all that it may not know: those of other users stay.
  ///   - present: returns the clients that are present.
  ///   - last: returns the highest number of a change set in the stream for each client that has made one of these.
  ///
  /// Cost: O(n log n), at most once for every `limit / 4` clients that are added, and every `most / 4` bytes.
  mutating func trim(
    to limit: Int, bytes most: Int?, present: () -> Set<UUID>, last: () -> [UUID: Int] = { [:] }
  ) {
    settle()
    let limit = max(limit, 0)
    let margin = Self.margin(of: limit)
    if hasTooMany(for: limit) {
      let absent = absent(present())
        .sorted { ($0.value.seenAt, $0.key.uuidString) < ($1.value.seenAt, $1.key.uuidString) }
      let last = last()
      for (client, decisions) in absent.prefix(byID.count - limit) {
        byID[client] = last[client].flatMap { decisions.emptied(behind: $0) }
        if byID[client] != nil { continue }
        // 0 stands for none.
        forgottenUpTo = max(forgottenUpTo, decisions.seenAt, 1)
      }
      // The clients that are present may be more than the limit.
      trimAt = byID.count + margin
    }
    if let most, addedBytes > most / 4 { empty(absent(present()), to: most) }
  }

  /// True if ``trim(to:bytes:present:last:)`` would look at the clients. Cost: O(1).
  func isTrimDue(to limit: Int, bytes most: Int?) -> Bool {
    hasTooMany(for: max(limit, 0)) || most.map { addedBytes > $0 / 4 } ?? false
  }

  /// The number of clients above a limit from which on some are forgotten.
  private static func margin(of limit: Int) -> Int { max(limit / 4, 1) }

  private func hasTooMany(for limit: Int) -> Bool {
    byID.count - limit > Self.margin(of: limit) && byID.count > trimAt
  }

  private func absent(_ present: Set<UUID>) -> [UUID: ScopeHistory.Client] {
    byID.filter { !present.contains($0.key) }
  }

  /// Forgets the traces of those of `absent` that have the most, and their decisions if that is not enough, until the others
  /// have at most `most` bytes. A client that has lost traces alone has missed nothing.
  private mutating func empty(_ absent: [UUID: ScopeHistory.Client], to most: Int) {
    addedBytes = 0
    var bytes = absent.values.reduce(0) { $0 + $1.size }
    if bytes <= most { return }
    let largest = absent.sorted {
      ($0.value.size, $0.key.uuidString) > ($1.value.size, $1.key.uuidString)
    }
    for (client, known) in largest where bytes > most {
      bytes -= known.size - known.bytes
      byID[client]?.dropTraces()
      if bytes <= most || known.decisions.isEmpty { continue }
      bytes -= known.bytes
      byID[client] = known.emptied
    }
  }
}

extension ScopeHistory.Client {
  /// The relation of a received change set to the decisions that were made before.
  enum Verdict {
    case new
    /// A change set with the number was decided, and it is forgotten how, and what it was.
    case forgotten
    case decided(ScopeStanding.Decision)
    /// The number stands for another change set, or for one whose decision the client has known for long: the client or
    /// the server was restored from an older copy.
    case contradiction
  }

  /// The decisions on the change sets of a client that the table does not have.
  static var unknown: Self { Self(decided: 0) }

  /// Returns whether a received change set is new, was decided before, or contradicts an earlier decision.
  func verdict(on number: Int, checksum: UInt32?) -> Verdict {
    if number > decided { return number > forgotten.number ? .new : .forgotten }
    guard let known = decision(on: number) else { return .contradiction }
    if let checksum, let other = known.checksum, checksum != other { return .contradiction }
    return .decided(known)
  }

  /// Records the decision on the client's next change set.
  ///
  /// - Parameter sequence: the sequence of the change set; nil if nothing of it was applied.
  /// - Returns: the approximate size of the decision in bytes.
  fileprivate mutating func decide(
    _ decision: ScopeRecord.Decision, at sequence: Int?, scopeAt seenAt: Int
  ) -> Int {
    let before = bytes
    self.seenAt = seenAt
    append(
      .init(
        number: decision.number, fragmentReplies: decision.fragmentReplies, sequence: sequence,
        outcome: decision.outcome, checksum: decision.checksum == 0 ? nil : decision.checksum))
    return bytes - before
  }
}
