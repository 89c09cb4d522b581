import Foundation
import Jetstream

/// What was decided of the sets of those clients that were here last.
struct ClientTable {
  private var clients: [UUID: ClientDecisions] = [:]
  /// Clients that were here last when the scope was as far as this, or before, may be forgotten.
  private(set) var forgottenUpTo = 0
  /// How many there have to be before it is worth while to look again for some to forget.
  private var trimAt = 0

  init() {}

  init(_ history: ScopeHistory) {
    clients = history.clients.mapValues(ClientDecisions.init)
    forgottenUpTo = history.forgottenUpTo
  }

  /// What another process has to know of them.
  var history: [UUID: ScopeHistory.Client] { clients.mapValues(\.history) }

  var count: Int { clients.count }

  /// What was decided of a client's sets; nothing for one that nobody knows.
  subscript(client: UUID) -> ClientDecisions { clients[client] ?? ClientDecisions() }

  /// A set is decided.
  ///
  /// - Parameters:
  ///   - place: its place in the order, if something was done.
  ///   - sequence: how far the scope is.
  mutating func decide(_ decision: ScopeRecord.Decision, at place: Int?, scopeAt sequence: Int) {
    clients[decision.client, default: ClientDecisions()].decide(decision, at: place)
    clients[decision.client]?.seenAt = sequence
  }

  /// A client asks for the scope, and knows what became of its sets up to a number.
  mutating func saw(_ client: UUID, upTo number: Int?, scopeAt sequence: Int) {
    if let number { clients[client]?.forget(upTo: number) }
    clients[client]?.seenAt = sequence
  }

  /// What was decided of a client's sets has turned up again, in the order of their numbers.
  mutating func remember(_ client: UUID, _ decisions: [ScopeStanding.Decision]) {
    clients[client] = ClientDecisions(decisions)
  }

  /// A client knows what became of its sets up to a number.
  mutating func forgetDecisions(of client: UUID, upTo number: Int) {
    clients[client]?.forget(upTo: number)
  }

  /// Whether sets of a client that names `since` as its place may have been decided and forgotten. Who has
  /// seen more than was there when it was here last, has seen its own decisions.
  func hasForgotten(_ client: UUID, since: Int?) -> Bool {
    guard clients[client] == nil, let since else { return false }
    return since <= forgottenUpTo && forgottenUpTo > 0
  }

  /// Forgets the clients that were here least recently, but none of `present`, once there are a quarter more
  /// than `limit`. Cost: O(n log n), every so often.
  mutating func trim(to limit: Int, present: () -> Set<UUID>) {
    let limit = max(limit, 0)
    let margin = max(limit / 4, 1)
    guard clients.count - limit > margin, clients.count > trimAt else { return }
    let present = present()
    let absent = clients.filter { !present.contains($0.key) }
      .sorted { ($0.value.seenAt, $0.key.uuidString) < ($1.value.seenAt, $1.key.uuidString) }
    for (client, decisions) in absent.prefix(clients.count - limit) {
      clients[client] = nil
      forgottenUpTo = max(forgottenUpTo, decisions.seenAt)
    }
    // Those who are present may be more than the limit.
    trimAt = clients.count + margin
  }
}

/// Which sets of a client were decided, and how, as far as the client does not know it.
struct ClientDecisions {
  /// How a set that has come stands to what was decided.
  enum Verdict {
    case new
    case decided([FragmentReply])
    /// Another set had this number: the client, or the server, is not what it was.
    case contradiction
  }

  private(set) var decided = 0
  /// How far the scope was when the last of them was decided, or when the client last asked for it.
  var seenAt = 0
  /// Tells the set of that number from another one; 0 if nobody knows any more what it was.
  private(set) var lastChecksum: UInt32 = 0
  private(set) var decisions: [ScopeStanding.Decision] = []
  /// Those of the sets that ``decisions`` are of, by number.
  private(set) var checksums: [Int: UInt32] = [:]

  init() {}

  /// What is known of sets that are known by their decisions only.
  init(_ decisions: [ScopeStanding.Decision]) {
    self.decisions = decisions
    decided = decisions.last?.number ?? 0
  }

  init(_ history: ScopeHistory.Client) {
    decided = history.decided
    lastChecksum = history.checksum
    decisions = history.decisions
    checksums = history.checksums
    seenAt = history.seenAt
  }

  /// What another process has to know of it.
  var history: ScopeHistory.Client {
    var history = ScopeHistory.Client(
      decided: decided, checksum: lastChecksum, decisions: decisions)
    history.checksums = checksums
    history.seenAt = seenAt
    return history
  }

  /// What is to be said of a set before it is looked at.
  func verdict(on number: Int, checksum: UInt32) -> Verdict {
    if number > decided { return .new }
    if number == decided, lastChecksum != 0, checksum != lastChecksum { return .contradiction }
    guard let known = decisions.first(where: { $0.number == number }),
      checksums[number].map({ $0 == checksum }) ?? true
    else { return .contradiction }
    return .decided(known.fragmentReplies)
  }

  /// - Parameter sequence: the place in the order, if something was done.
  mutating func decide(_ decision: ScopeRecord.Decision, at sequence: Int?) {
    decided = decision.number
    lastChecksum = decision.checksum
    checksums[decision.number] = decision.checksum
    decisions.append(
      .init(
        number: decision.number, fragmentReplies: decision.fragmentReplies, sequence: sequence))
  }

  /// The client knows what became of its sets up to a number. The last decision is kept, to recognise its
  /// set by.
  mutating func forget(upTo number: Int) {
    let known = decisions.prefix { $0.number <= number && $0.number < decided }
    if known.isEmpty { return }
    for decision in known { checksums[decision.number] = nil }
    decisions.removeFirst(known.count)
  }

  /// Those that the client does not know, in order.
  func unknown(after number: Int) -> [ScopeStanding.Decision] {
    decisions.filter { $0.number > number }
  }
}
