import Foundation

/// One step in the life of a replica. Applying all records in their order restores the replica.
package enum ReplicaRecord: Sendable, Hashable {
  /// The replica numbers its change sets under this client identity from now on. Its root has the UUID `root` until
  /// the server gives it another one.
  case named(client: UUID, root: UUID)
  /// A change set was made here.
  case made(number: Int, ChangeSet)
  /// Remote changes were applied. The sequence is nil if the server does not report it.
  case confirmed([SyncFragment], sequence: Int?, origin: ChangeOrigin = .init())
  /// Remote change sets were applied as one change: each a ``confirmed(_:sequence:origin:)``.
  case together([ReplicaRecord])
  /// The server has decided a change set, and the replica has reached its sequence.
  case decided(Decided)
  /// The server has decided change sets whose sequences the replica has not reached.
  case known([ScopeStanding.Decision])
  /// The server does not know the decisions any more that it had made about change sets with higher numbers.
  case forgotten(after: Int)
  /// The server has sent the full state.
  case base(ReplicaBase)
  /// The app has discarded conflicts.
  case discarded([ConflictName])

  /// The server's decision about a change set.
  package struct Decided: Sendable, Hashable {
    package var number: Int
    package var replies: [FragmentReply]
    /// The changes that the server made instead of the submitted ones; nil if they are the same.
    package var effective: [SyncFragment]?
    package var sequence: Int?

    /// Returns the fragments of the change set that the server has accepted, or those that it has rejected. Without a
    /// reply to each fragment, all are rejected.
    func fragments(of set: ChangeSet, accepted: Bool) -> [SyncFragment] {
      guard replies.count == set.fragments.count else { return accepted ? [] : set.fragments }
      return zip(set.fragments, replies).filter { ($0.1.error == nil) == accepted }.map(\.0)
    }
  }
}

/// A confirmed state, with its position in the server's order if the server reports it.
package struct ReplicaBase: Sendable, Hashable {
  package var position: ScopePosition?
  package var root: UUID
  package var fragments: [SyncFragment]
}

/// The sum of a replica's records up to one of them.
package struct ReplicaHistory: Sendable, Hashable {
  /// The client identity under which the change sets are numbered.
  package var client: UUID
  /// The UUID of the root, as long as there is no base.
  package var root: UUID
  /// The number of the next change set.
  package var nextNumber = 1
  /// The confirmed state before ``records``; nil if the server had not sent one yet.
  package var base: ReplicaBase?
  /// The conflicts in the ledger.
  package var conflicts: [Conflict] = []
  /// The most recent accepted writes of this replica.
  package var writes: [OwnWrites.Entry] = []
  /// The change sets that were pending when the base was the confirmed state, in the order of their numbers.
  package var pending: [Undecided] = []
  /// The models that pending change sets name although the base no longer has them, as additions.
  package var departed: [SyncFragment] = []
  /// The authors of the confirmed values of properties that pending change sets touch.
  package var authors: [PropertyKey: String] = [:]
  /// The records after the base, in order.
  package var records: [ReplicaRecord] = []

  /// True if the server has sent a state.
  var hasState: Bool {
    base != nil || records.contains { if case .base = $0 { true } else { false } }
  }

  /// A change set that is not confirmed.
  package struct Undecided: Sendable, Hashable {
    package var number: Int
    package var set: ChangeSet
    /// The position up to which the server's order was applied when the change set was made.
    package var basis: ScopePosition?
    /// The values of counters right after the change set; only for a server of version 1.
    package var counters: [PropertyKey: JSONValue] = [:]
    /// The server's decision, if the replica had not reached the change set's sequence.
    package var decision: ScopeStanding.Decision?
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
  /// The kinds of records in a log; the kind of ``made(number:_:)`` is that of change sets.
  enum Kind {
    static let confirmed = LogKind("confirmed")
    static let decided = LogKind("decided")
    static let known = LogKind("known")
    static let forgotten = LogKind("forgotten")
    static let base = LogKind("base")
    static let discarded = LogKind("discarded")

    /// The kinds of records that a snapshot replaces.
    static let all: Set<LogKind> = [
      .set, .replica, confirmed, decided, known, forgotten, base, discarded,
    ]
  }

  /// The record as a log keeps it.
  package var content: RecordContent {
    switch self {
    case .named(let client, let root):
      let json: JSONValue = [
        "client": .string(client.wireText), "root": .string(root.wireText),
      ]
      return RecordContent(LogKind.replica, Array(json.text.utf8))
    case .made(let number, let set):
      guard case .object(var object) = set.json else {
        preconditionFailure("A change set is a JSON object.")
      }
      object["number"] = .integer(Int64(number))
      return RecordContent(.set, Array(JSONValue.object(object).text.utf8))
    case .confirmed(let fragments, let sequence, let origin):
      let json = Self.json(fragments, sequence, origin)
      return RecordContent(Kind.confirmed, Array(json.text.utf8))
    case .together(let records):
      let sets: [JSONValue] = records.compactMap {
        guard case .confirmed(let fragments, let sequence, let origin) = $0 else { return nil }
        return Self.json(fragments, sequence, origin)
      }
      let json: JSONValue = ["sets": .array(sets)]
      return RecordContent(Kind.confirmed, Array(json.text.utf8))
    case .decided(let decided):
      let decision = ScopeStanding.Decision(
        number: decided.number, fragmentReplies: decided.replies, sequence: decided.sequence)
      guard case .object(var object) = decision.json else {
        preconditionFailure("A decision is a JSON object.")
      }
      if let effective = decided.effective {
        object["effective"] = .array(effective.map(\.json))
      }
      return RecordContent(Kind.decided, Array(JSONValue.object(object).text.utf8))
    case .known(let decisions):
      let json: JSONValue = ["decisions": .array(decisions.map(\.json))]
      return RecordContent(Kind.known, Array(json.text.utf8))
    case .forgotten(let number):
      let json: JSONValue = ["after": .integer(Int64(number))]
      return RecordContent(Kind.forgotten, Array(json.text.utf8))
    case .base(let base):
      var object: JSONObject = ["root": .string(base.root.wireText)]
      if let position = base.position { object["position"] = .object(position.json) }
      object["fragments"] = .array(base.fragments.map(\.json))
      return RecordContent(Kind.base, Array(JSONValue.object(object).text.utf8))
    case .discarded(let names):
      let json: JSONValue = ["conflicts": .array(names.map(\.json))]
      return RecordContent(Kind.discarded, Array(json.text.utf8))
    }
  }

  /// Reads a record as ``content`` writes it; nil if the kind is not a replica record's.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  package init?(_ kind: LogKind, json: JSONValue) throws(FragmentError) {
    guard Kind.all.contains(kind) else { return nil }
    guard case .object(let object) = json else { throw .notAnObject }
    switch kind {
    case .set:
      guard let number = object["number"]?.wholeNumber else { throw .missing(field: "number") }
      self = .made(number: number, try ChangeSet(json: json))
    case LogKind.replica:
      self = .named(client: try object.uuid("client"), root: try object.uuid("root"))
    case Kind.confirmed:
      guard let sets = object["sets"] else {
        self = try Self.confirmed(in: object)
        return
      }
      guard case .array(let elements) = sets else {
        throw .invalid(field: "sets", problem: "should be an array")
      }
      var records: [ReplicaRecord] = []
      for element in elements {
        guard case .object(let set) = element else {
          throw .invalid(field: "sets", problem: "should be an array of objects")
        }
        records.append(try Self.confirmed(in: set))
      }
      self = .together(records)
    case Kind.decided:
      let decision = try ScopeStanding.Decision(json: json)
      self = .decided(
        Decided(
          number: decision.number, replies: decision.fragmentReplies,
          effective: object["effective"] == nil ? nil : try object.fragments("effective"),
          sequence: decision.sequence))
    case Kind.known:
      guard case .array(let elements)? = object["decisions"] else {
        throw .invalid(field: "decisions", problem: "should be an array")
      }
      var decisions: [ScopeStanding.Decision] = []
      for element in elements { decisions.append(try ScopeStanding.Decision(json: element)) }
      self = .known(decisions)
    case Kind.forgotten:
      guard let number = object["after"]?.wholeNumber else { throw .missing(field: "after") }
      self = .forgotten(after: number)
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

extension ReplicaRecord {
  /// Returns a remote change set as JSON.
  private static func json(
    _ fragments: [SyncFragment], _ sequence: Int?, _ origin: ChangeOrigin
  ) -> JSONValue {
    var object: JSONObject = [:]
    if let sequence { object["sequence"] = .integer(Int64(sequence)) }
    origin.write(to: &object)
    object["fragments"] = .array(fragments.map(\.json))
    return .object(object)
  }

  /// Returns the remote change set that JSON tells.
  private static func confirmed(in object: JSONObject) throws(FragmentError) -> ReplicaRecord {
    .confirmed(
      try object.fragments("fragments"), sequence: object["sequence"]?.wholeNumber,
      origin: try ChangeOrigin(in: object))
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
