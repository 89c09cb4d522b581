import Foundation
import Jetstream

/// One step of a scope's history as a server stores it: the change set accepted at one sequence, and the decision on
/// the submission that asked for it.
package struct ScopeRecord: Sendable, Hashable {
  /// The decision on a client's change set.
  package struct Decision: Sendable, Hashable {
    /// The identity of the client that has sent the change set.
    package var client: UUID
    /// The number that the client has given the change set.
    package var number: Int
    /// The checksum of the change set, which tells it from another one with the same number; 0 if it could not be
    /// read.
    package var checksum: UInt32
    /// The reply to each fragment, in their order; none if each fragment of a change set that has a sequence was accepted as
    /// it is.
    package var fragmentReplies: [FragmentReply]
    /// The outcome of the procedure that was called; nil if none was.
    package var outcome: CallOutcome?

    /// Makes a decision.
    package init(
      client: UUID, number: Int, checksum: UInt32, fragmentReplies: [FragmentReply],
      outcome: CallOutcome? = nil
    ) {
      self.client = client
      self.number = number
      self.checksum = checksum
      self.fragmentReplies = fragmentReplies
      self.outcome = outcome
    }
  }

  /// The identity of the change set in this history; nil if nothing was accepted, and in the logs of older servers.
  package var id: UUID?
  /// The sequence of the change set; nil if nothing was accepted.
  package var sequence: Int?
  /// The fragments that were applied.
  package var fragments: [SyncFragment]
  /// The fragments that undo them; empty in the logs of servers that did not know them.
  package var undo: [SyncFragment] = []
  /// The decision; nil for the server's own changes, and for clients that do not number their change sets.
  package var decision: Decision?
  /// The author, date and message of the change set.
  package var origin: ChangeOrigin
  /// True if a client has made the change set.
  package var isRemote = false
  /// The part that the server's own change set has in an `UndoHistory`.
  package var purpose = ChangeSet.Purpose.edit
  /// The JSON text of ``fragments``, if it was made already.
  var text: FragmentsText?

  /// Makes a record.
  package init(
    sequence: Int?, fragments: [SyncFragment], decision: Decision? = nil,
    origin: ChangeOrigin = ChangeOrigin()
  ) {
    self.sequence = sequence
    self.fragments = fragments
    self.decision = decision
    self.origin = origin
  }
}

/// The result of all records of a scope up to one of them, and the records after it.
package struct ScopeHistory: Sendable, Equatable {
  /// The epoch of the history.
  package var epoch: String
  /// The sequence of ``state``.
  package var sequence: Int
  /// The scope's full state at ``sequence`` in parts, the root first.
  package var parts: [[SyncFragment]]
  /// The decisions on the clients' change sets, by client.
  package var clients: [UUID: Client]
  /// The sequence up to which clients may be forgotten: a client that was last seen at this sequence or before may be
  /// missing from ``clients``.
  package var forgottenUpTo = 0
  /// The properties of the root that were written up to ``sequence``, by their names on the wire; nil if that is not
  /// known.
  package var written: Set<String>?
  /// The records after ``sequence``, in order.
  package var records: [ScopeRecord]

  /// Makes a history.
  package init(
    epoch: String, sequence: Int = 0, state: [SyncFragment], clients: [UUID: Client] = [:],
    records: [ScopeRecord] = []
  ) {
    self.epoch = epoch
    self.sequence = sequence
    parts = [state]
    self.clients = clients
    self.records = records
  }

  /// The fragments of all ``parts``. Cost: O(n), unless there is only one.
  package var state: [SyncFragment] { parts.count == 1 ? parts[0] : parts.flatMap(\.self) }
}

extension ScopeRecord {
  /// Reads a record in the form of ``json``. Unknown keys are ignored.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    self.init(sequence: nil, fragments: [])
    if let sequence = object["sequence"] {
      guard case .integer(let number) = sequence, number > 0 else {
        throw .invalid(field: "sequence", problem: "should be a whole number from 1 up")
      }
      self.sequence = Int(number)
    }
    guard case .array(let elements) = object["fragments"] ?? [] else {
      throw .invalid(field: "fragments", problem: "should be an array")
    }
    for element in elements { fragments.append(try SyncFragment(json: element)) }
    undo = object["undo"] == nil ? [] : try object.fragments("undo")
    id = object["id"] == nil ? nil : try object.uuid("id")
    isRemote = object["remote"] == true
    purpose = try ChangeSet.Purpose(in: object)
    if let json = object["decision"] { decision = try Decision(json: json) }
    origin = try ChangeOrigin(in: object)
  }

  /// The record as JSON. Absent values have no key.
  package var json: JSONValue {
    var object = JSONObject()
    write(to: &object)
    return .object(object)
  }

  /// Writes the fields of ``json``.
  package func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    if let id { sink.put("id", id) }
    if let sequence { sink.put("sequence", sequence) }
    if isRemote { sink.put("remote", true) }
    switch purpose {
    case .edit: break
    case .undo(let id): sink.put("undoes", id)
    case .redo(let id): sink.put("redoes", id)
    }
    if let decision { sink.put("decision", fields: { decision.write(to: &$0) }) }
    origin.write(to: &sink)
    sink.put("fragments", fragments, as: text)
    if !undo.isEmpty { sink.put("undo", undo) }
  }
}

extension ScopeRecord.Decision {
  /// Reads a decision as ``write(to:)`` writes it.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  package init(json: JSONValue) throws(FragmentError) {
    let decision = try ScopeStanding.Decision(json: json)
    guard case .object(let object) = json, case .string(let text)? = object["client"],
      let client = UUID(uuidString: text)
    else { throw .invalid(field: "client", problem: "should be a UUID") }
    guard case .integer(let number)? = object["checksum"], let checksum = UInt32(exactly: number)
    else { throw .invalid(field: "checksum", problem: "should be a number of 32 bits") }
    self.init(
      client: client, number: decision.number, checksum: checksum,
      fragmentReplies: decision.fragmentReplies, outcome: decision.outcome)
  }

  fileprivate func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("client", client)
    sink.put("number", number)
    sink.put("checksum", Int(checksum))
    sink.put("fragmentReplies", fragmentReplies)
    if let outcome { sink.put("outcome", outcome.json) }
  }
}

extension ScopeRecord {
  /// The approximate size of the record in memory, in bytes.
  var roughSize: Int {
    var size = 200 + (text?.bytes.count ?? fragments.roughSize)
    size += undo.roughSize
    if let decision { size += FragmentReply.roughSize(decision.fragmentReplies, decision.outcome) }
    return size
  }
}

extension FragmentReply {
  /// The approximate size of replies and an outcome in memory, in bytes.
  static func roughSize(_ replies: [FragmentReply], _ outcome: CallOutcome?) -> Int {
    replies.reduce(outcome?.roughSize ?? 0) { $0 + 64 + $1.roughSize }
  }
}
