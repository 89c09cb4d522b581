import Foundation

/// One thing that has happened to a replica. All of them, done again in their order, make it what it was.
package enum ReplicaRecord: Sendable, Hashable {
  /// The replica numbers its sets under this name from now on. Its root is called `root` until the server
  /// gives it another name.
  case named(client: UUID, root: UUID)
  /// A change set was made here.
  case made(number: Int, ChangeSet)
  /// Others have changed something; the place in the order is nil for a server that does not tell.
  case confirmed([SyncFragment], sequence: Int?, origin: ChangeOrigin = .init())
  /// The server has decided a set, and this is its place.
  case decided(Decided)
  /// The server has sent the whole state.
  case base(ReplicaBase)
  /// The app has let go of conflicts.
  case discarded([ConflictName])

  /// What became of a set.
  package struct Decided: Sendable, Hashable {
    package var number: Int
    package var replies: [FragmentReply]
    /// What the server has done instead of what was submitted; nil if that is the same.
    package var effective: [SyncFragment]?
    package var sequence: Int?
  }
}

/// A confirmed state, with its place in the server's order if the server tells.
package struct ReplicaBase: Sendable, Hashable {
  package var position: ScopePosition?
  package var root: UUID
  package var fragments: [SyncFragment]
}

/// What all the records of a replica up to one of them amount to.
package struct ReplicaHistory: Sendable, Hashable {
  /// Under which name the sets are numbered.
  package var client: UUID
  /// What the root is called as long as there is no base.
  package var root: UUID
  /// The number that the next set gets.
  package var nextNumber = 1
  /// Nil if the server has never sent a state.
  package var base: ReplicaBase?
  /// What was changed here and does not count.
  package var conflicts: [Conflict] = []
  /// What counts of the sets that were made here, the last ones.
  package var writes: [OwnWrites.Entry] = []
  /// The change sets that were pending when the base was the confirmed state, in the order of their numbers.
  package var pending: [Undecided] = []
  /// Models that these name although the base does not have them any more, as additions.
  package var departed: [SyncFragment] = []
  /// Who has changed the confirmed value of properties that pending change sets touch.
  package var authors: [PropertyKey: String] = [:]
  /// What came after that, in order.
  package var records: [ReplicaRecord] = []

  /// A change set that the server has not decided.
  package struct Undecided: Sendable, Hashable {
    package var number: Int
    package var set: ChangeSet
    /// The part of the server's order that was taken in when the change set was made.
    package var basis: ScopePosition?
    /// The values of counters right after the change set; only towards a server of version 1.
    package var counters: [PropertyKey: JSONValue] = [:]
  }

  package init(
    client: UUID, root: UUID, nextNumber: Int = 1, base: ReplicaBase? = nil,
    conflicts: [Conflict] = [], writes: [OwnWrites.Entry] = [], records: [ReplicaRecord] = []
  ) {
    self.client = client
    self.root = root
    self.nextNumber = nextNumber
    self.base = base
    self.conflicts = conflicts
    self.writes = writes
    self.records = records
  }
}

extension ReplicaRecord {
  /// What a log calls each kind of record; those of a ``made(number:_:)`` are change sets.
  enum Kind {
    static let named = LogKind("replica")
    static let confirmed = LogKind("confirmed")
    static let decided = LogKind("decided")
    static let base = LogKind("base")
    static let discarded = LogKind("discarded")

    /// What a snapshot stands for.
    static let all: Set<LogKind> = [.set, named, confirmed, decided, base, discarded]
  }

  /// The record as a line of a log.
  package var line: (kind: LogKind, payload: [UInt8]) {
    switch self {
    case .named(let client, let root):
      let json: JSONValue = [
        "client": .string(client.wireText), "root": .string(root.wireText),
      ]
      return (Kind.named, Array(json.text.utf8))
    case .made(let number, let set):
      guard case .object(var object) = set.json else {
        preconditionFailure("A change set is a JSON object.")
      }
      object["number"] = .integer(Int64(number))
      return (.set, Array(JSONValue.object(object).text.utf8))
    case .confirmed(let fragments, let sequence, let origin):
      var object: JSONObject = [:]
      if let sequence { object["sequence"] = .integer(Int64(sequence)) }
      origin.write(to: &object)
      object["fragments"] = .array(fragments.map(\.json))
      return (Kind.confirmed, Array(JSONValue.object(object).text.utf8))
    case .decided(let decided):
      let decision = ScopeStanding.Decision(
        number: decided.number, fragmentReplies: decided.replies, sequence: decided.sequence)
      guard case .object(var object) = decision.json else {
        preconditionFailure("A decision is a JSON object.")
      }
      if let effective = decided.effective {
        object["effective"] = .array(effective.map(\.json))
      }
      return (Kind.decided, Array(JSONValue.object(object).text.utf8))
    case .base(let base):
      var object: JSONObject = ["root": .string(base.root.wireText)]
      if let position = base.position { object["position"] = .object(position.json) }
      object["fragments"] = .array(base.fragments.map(\.json))
      return (Kind.base, Array(JSONValue.object(object).text.utf8))
    case .discarded(let names):
      let json: JSONValue = ["conflicts": .array(names.map(\.json))]
      return (Kind.discarded, Array(json.text.utf8))
    }
  }

  /// Reads a record as ``line`` gives it; nil for one of another kind.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  package init?(_ kind: LogKind, json: JSONValue) throws(FragmentError) {
    guard Kind.all.contains(kind) else { return nil }
    guard case .object(let object) = json else { throw .notAnObject }
    switch kind {
    case .set:
      guard let number = object["number"]?.wholeNumber else { throw .missing(field: "number") }
      self = .made(number: number, try ChangeSet(json: json))
    case Kind.named:
      self = .named(client: try object.uuid("client"), root: try object.uuid("root"))
    case Kind.confirmed:
      self = .confirmed(
        try object.fragments("fragments"), sequence: object["sequence"]?.wholeNumber,
        origin: try ChangeOrigin(in: object))
    case Kind.decided:
      let decision = try ScopeStanding.Decision(json: json)
      self = .decided(
        Decided(
          number: decision.number, replies: decision.fragmentReplies,
          effective: object["effective"] == nil ? nil : try object.fragments("effective"),
          sequence: decision.sequence))
    case Kind.discarded:
      guard case .array(let elements)? = object["conflicts"] else {
        throw .invalid(field: "conflicts", problem: "should be an array")
      }
      var names: [ConflictName] = []
      for element in elements { names.append(try ConflictName(json: element)) }
      self = .discarded(names)
    default:
      self = .base(
        ReplicaBase(
          position: try object["position"].map { json throws(FragmentError) in
            try ScopePosition(json: json)
          }, root: try object.uuid("root"), fragments: try object.fragments("fragments")))
    }
  }
}

extension ScopePosition {
  /// - Throws: ``FragmentError`` naming `epoch` or `sequence`.
  init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard case .string(let epoch)? = object["epoch"] else { throw .missing(field: "epoch") }
    guard let sequence = object["sequence"]?.wholeNumber else { throw .missing(field: "sequence") }
    self.init(epoch: epoch, sequence: sequence)
  }
}

extension JSONObject {
  func uuid(_ field: String) throws(FragmentError) -> UUID {
    guard case .string(let text)? = self[field], let uuid = UUID(wireText: text) else {
      throw .invalid(field: field, problem: "should be a UUID")
    }
    return uuid
  }

  func fragments(_ field: String) throws(FragmentError) -> [SyncFragment] {
    guard case .array(let elements)? = self[field] else {
      throw .invalid(field: field, problem: "should be an array")
    }
    var fragments: [SyncFragment] = []
    for element in elements { fragments.append(try SyncFragment(json: element)) }
    return fragments
  }
}
