import Foundation
import Jetstream

/// One step of a scope's history as a server keeps it: what was accepted at one place of the order, and
/// what was decided of the set that asked for it.
package struct ScopeRecord: Sendable, Hashable {
  /// What was decided of a client's change set.
  package struct Decision: Sendable, Hashable {
    /// Who has sent the set.
    package var client: UUID
    /// The number that the client has given it.
    package var number: Int
    /// Tells the set from another one with its number.
    package var checksum: UInt32
    /// One answer for each fragment.
    package var fragmentReplies: [FragmentReply]

    /// Makes a decision.
    package init(client: UUID, number: Int, checksum: UInt32, fragmentReplies: [FragmentReply]) {
      self.client = client
      self.number = number
      self.checksum = checksum
      self.fragmentReplies = fragmentReplies
    }
  }

  /// The place in the order; nil if nothing was accepted.
  package var sequence: Int?
  /// What was done.
  package var fragments: [SyncFragment]
  /// What was decided; nil for the server's own changes, and for clients that do not number their sets.
  package var decision: Decision?
  /// What the maker of the set has said of it, for those who are told later.
  package var origin: ChangeOrigin

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

/// What all the records of a scope up to one of them amount to.
package struct ScopeHistory: Sendable, Hashable {
  /// What a client's sets have come to.
  package struct Client: Sendable, Hashable {
    /// The highest number that was decided.
    package var decided: Int
    /// Tells the set of that number from another one.
    package var checksum: UInt32
    /// The decisions that the client has not said to know.
    package var decisions: [ScopeStanding.Decision]
    /// Tells the sets that they are of from others, by number, as far as that is known.
    package var checksums: [Int: UInt32] = [:]
    /// How far the scope was when the client was here last.
    package var seenAt = 0

    /// Makes one.
    package init(decided: Int, checksum: UInt32, decisions: [ScopeStanding.Decision]) {
      self.decided = decided
      self.checksum = checksum
      self.decisions = decisions
    }
  }

  /// Tells this history from others.
  package var epoch: String
  /// The place in the order that the state is of.
  package var sequence: Int
  /// The scope's full state there, the root first.
  package var state: [SyncFragment]
  /// What the clients have to be told when they come back.
  package var clients: [UUID: Client]
  /// Clients that were here last at this place of the order, or before, may be forgotten.
  package var forgottenUpTo = 0
  /// The properties of the root that were written until then, by their names on the wire; nil if that is not known.
  package var written: Set<String>?
  /// What came after that, in order.
  package var records: [ScopeRecord]

  /// Makes a history.
  package init(
    epoch: String, sequence: Int = 0, state: [SyncFragment], clients: [UUID: Client] = [:],
    records: [ScopeRecord] = []
  ) {
    self.epoch = epoch
    self.sequence = sequence
    self.state = state
    self.clients = clients
    self.records = records
  }
}

extension ScopeRecord {
  /// Reads a record as ``json`` gives it. Unknown keys are ignored.
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
    if let json = object["decision"] { decision = try Decision(json: json) }
    origin = try ChangeOrigin(in: object)
  }

  /// The record as JSON, without what it does not have.
  package var json: JSONValue {
    var object = JSONObject()
    if let sequence { object["sequence"] = .integer(Int64(sequence)) }
    if let decision { object["decision"] = decision.json }
    origin.write(to: &object)
    object["fragments"] = .array(fragments.map(\.json))
    return .object(object)
  }
}

extension ScopeRecord.Decision {
  /// Reads a decision as ``json`` gives it.
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
      fragmentReplies: decision.fragmentReplies)
  }

  /// The decision as JSON.
  package var json: JSONValue {
    [
      "client": .string(client.uuidString.lowercased()), "number": .integer(Int64(number)),
      "checksum": .integer(Int64(checksum)),
      "fragmentReplies": .array(fragmentReplies.map(\.json)),
    ]
  }
}
