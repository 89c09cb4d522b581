import Foundation
import Jetstream
import JetstreamServer

/// The longest time for which a server does nothing else because one client has sent one large change set that is
/// permitted: all other sessions wait for that long.
///
/// One thread, without sockets; the frame is decoded before.
func largeSetRows() -> [Row] {
  LargeSetWorld.Kind.allCases.map { kind in
    Row(name: "the longest step of \(kind.rawValue)", unit: "ms", rounds: 3) {
      Probes(ours: { LargeSetWorld(kind).measure() })
    }
  }
}

/// The models of the scope.
private final class Ledger: ModelObject {
  @Property var accounts: ModelArray<Account> = []
  @Property var names: ModelDictionary<String, Account> = [:]
  @Property var first: Account?
  @Property var counts: [String: Int] = [:]
}

private final class Account: ModelObject {
  @Property var balance = 0
  @Property var note = ""
  @Property var next: Account?
  @Property var parts: ModelArray<Account> = []
}

/// A server with a scope of a schema, and one session.
private final class LargeSetWorld {
  enum Kind: String, CaseIterable {
    case additions = "100,000 additions"
    case ruledAdditions = "100,000 additions, with a rule"
    case modelAdditions = "100,000 additions to model objects"
    case changes = "100,000 changes"
    case removals = "100,000 removals"
    case chain = "a chain of 100,000 models"
    case moves = "10,000 moves within a chain"
    case entries = "an addition to 100,000 entries"
    case values = "a dictionary of 900,000 keys"
    case edits = "32 changes of one collection"
    case modelEdits = "32 changes of one collection of model objects"
    case ruledEdits = "32 changes of one collection, with a rule"
    case replacements = "32 replacements of one collection"
    case turns = "a frame that takes 100,000 models out and in 8 times"
  }

  private static let count = 100_000
  private let kind: Kind
  private let content: any Hostable
  private let root: UUID
  private var server: ServerEngine!
  private var turns = 0
  private var nextIndex = 2

  init(_ kind: Kind) {
    self.kind = kind
    if kind == .modelAdditions || kind == .modelEdits {
      let ledger = Ledger()
      let scope = Scope(name: "Ledger", root: ledger, ticker: .manual())
      scope.flush()
      (content, root) = (scope, ledger.uuid)
    } else {
      let rows = RowsContent(name: "Ledger", ScopeSchema(of: Ledger.self))
      (content, root) = (rows, rows.root!.uuid)
    }
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: .max, bytes: .max)
    configuration.limits.fragmentsPerChangeSet = nil
    configuration.limits.bytesPerChangeSet = nil
    if kind == .ruledAdditions || kind == .ruledEdits {
      var rules = ScopeRules(otherwise: .allow)
      rules.create(Account.self, "") { _, account in account.balance >= 0 }
      configuration.rules = { [rules] _ in rules }
    }
    server = ServerEngine(
      configuration: configuration,
      hooks: .init(
        fetch: { [content] _, _, _ in .success(content) }, makeToken: { "session" },
        random: { 0.5 })
    ) { [unowned self] action in
      switch action {
      case .encode(let scope, let fragments):
        server.encoded(FragmentsText(fragments), of: scope, now: .zero)
      case .judge: turns += 1
      default: break
      }
    }
    server.host(content)
    server.beginSession(fetching: "Ledger")
  }

  /// Returns the longest step of a change set, in milliseconds.
  func measure() -> Double {
    let uuids = (0..<Self.count).map { _ in UUID() }
    switch kind {
    case .changes, .removals, .edits, .modelEdits, .ruledEdits, .replacements:
      _ = longestStep(of: additions(uuids))
    case .turns: _ = longestStep(of: chain(uuids[...], with: []))
    case .moves: _ = longestStep(of: chain(uuids.prefix(10_000), with: uuids.suffix(10_000)))
    default: break
    }
    return longestStep(of: sets(uuids))
  }

  private func longestStep(of fragments: [SyncFragment]) -> Double {
    longestStep(of: [fragments])
  }

  private func longestStep(of sets: [[SyncFragment]]) -> Double {
    let sequence = server.positions.first?.sequence ?? 0
    let clock = ContinuousClock()
    var longest = clock.measure { server.submit(sets, index: nextIndex) }
    nextIndex += sets.count
    while turns > 0 {
      turns -= 1
      longest = max(longest, clock.measure { server.judge(now: .zero) })
    }
    precondition(
      server.positions.first?.sequence == sequence + sets.count, "They were not all accepted.")
    return longest / .milliseconds(1)
  }

  /// Returns the change sets of one frame.
  private func sets(_ uuids: [UUID]) -> [[SyncFragment]] {
    switch kind {
    case .additions, .ruledAdditions, .modelAdditions: return [additions(uuids)]
    case .changes:
      return [
        uuids.map {
          SyncFragment(.change, uuid: $0, className: "Account", properties: ["balance": 2])
        }
      ]
    case .removals: return [[ledger(["accounts": uuids.map { .remove($0) }])]]
    case .chain: return [chain(uuids[...], with: [])]
    case .moves:
      // Each part goes to the account before.
      let (accounts, parts) = (uuids.prefix(10_000), uuids.suffix(10_000))
      let moves = zip(accounts, zip(parts, parts.dropFirst() + parts.prefix(1)))
      return [
        moves.map { account, parts in
          SyncFragment(
            .change, uuid: account, className: "Account", properties: [:],
            operations: ["parts": [.remove(parts.0), .insert(parts.1, .end)]])
        }
      ]
    case .entries:
      let names = uuids.enumerated().map { at, uuid in
        ("names/\(at)", JSONValue.string(uuid.wireText))
      }
      return [uuids.map { addition($0) } + [ledger([:], JSONObject(names))]]
    case .values:
      let counts = (0..<900_000).map { ("\($0)", JSONValue.integer(Int64($0))) }
      return [[ledger([:], ["counts": .object(JSONObject(counts))])]]
    case .edits, .modelEdits, .ruledEdits:
      // The first ones go to the end, one after the other. More of them would be rejected.
      return [uuids.prefix(32).map { ledger(["accounts": [.move($0, .end)]]) }]
    case .replacements:
      return [uuids.prefix(32).map { ledger([:], ["accounts": [.string($0.wireText)]]) }]
    case .turns:
      let first = JSONValue.string(uuids[0].wireText)
      return (0..<16).map { [ledger([:], ["first": $0 % 2 == 0 ? .null : first])] }
    }
  }

  /// Adds models each of which holds the next one, and a part where there are parts.
  private func chain(_ uuids: ArraySlice<UUID>, with parts: ArraySlice<UUID>) -> [SyncFragment] {
    let links = zip(uuids, uuids.dropFirst().map { Optional($0) } + [nil])
    let accounts = zip(links, parts.map { Optional($0) } + uuids.map { _ in nil }).map {
      var properties = JSONObject()
      if let next = $0.1 { properties["next"] = .string(next.wireText) }
      if let part = $1 { properties["parts"] = .array([.string(part.wireText)]) }
      return addition($0.0, properties)
    }
    return [ledger([:], ["first": .string(uuids.first!.wireText)])] + accounts
      + parts.map { addition($0) }
  }

  private func additions(_ uuids: [UUID]) -> [SyncFragment] {
    uuids.map { addition($0) } + [ledger(["accounts": uuids.map { .insert($0, .end) }])]
  }

  private func addition(_ uuid: UUID, _ more: JSONObject = [:]) -> SyncFragment {
    var properties: JSONObject = ["balance": 1, "note": "a note of some length"]
    for (key, value) in more { properties[key] = value }
    return SyncFragment(.add, uuid: uuid, className: "Account", properties: properties)
  }

  private func ledger(
    _ operations: PropertyOperations, _ properties: JSONObject = [:]
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: root, className: "Ledger", properties: properties, operations: operations)
  }
}
