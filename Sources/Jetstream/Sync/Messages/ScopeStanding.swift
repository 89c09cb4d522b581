/// A position in the order of a scope's change sets: a sequence in one epoch.
package struct ScopePosition: Sendable, Hashable {
  /// The identity of the history that the sequence belongs to. A server that has lost its history begins another
  /// epoch.
  package var epoch: String
  /// The sequence of the last change set that is included; 0 for none.
  package var sequence: Int

  /// Creates a position.
  package init(epoch: String, sequence: Int) {
    self.epoch = epoch
    self.sequence = sequence
  }
}

/// The resume point that a server sends with the grant of a scope, before its state: the scope's position, and the
/// decisions about the client's change sets. Since version 2.
package struct ScopeStanding: Sendable, Hashable {
  /// The server's decision about one of the client's change sets.
  package struct Decision: Sendable, Hashable {
    /// The change set's number.
    package var number: Int
    /// One reply for each fragment, in the same order; none if the change set has a sequence and each was accepted as it is.
    package var fragmentReplies: [FragmentReply]
    /// The change set's sequence; nil if no part of it had an effect.
    package var sequence: Int?
    /// The outcome of the procedure; nil if none was called.
    package var outcome: CallOutcome?
    /// The checksum of the change set; nil if it is not told.
    package var checksum: UInt32?
    /// True if the server has forgotten how the change set was decided, which the client has said it knows.
    package var isForgotten = false

    /// True if the server knows no more of the change set than that no part of it had an effect.
    package var isBare: Bool {
      fragmentReplies.isEmpty && sequence == nil && outcome == nil && !isForgotten
    }

    /// Creates a decision.
    package init(
      number: Int, fragmentReplies: [FragmentReply], sequence: Int? = nil,
      outcome: CallOutcome? = nil, checksum: UInt32? = nil
    ) {
      self.number = number
      self.fragmentReplies = fragmentReplies
      self.sequence = sequence
      self.outcome = outcome
      self.checksum = checksum
    }
  }

  /// The scope's current position. A state that follows is the one at this position.
  package var position: ScopePosition
  /// True if no state follows, only the change sets after the position that the client named.
  package var resumes: Bool
  /// The highest number of a change set of this client that the server has decided, 0 for none.
  package var decided: Int
  /// The decisions that the client has not yet reported as known, in the order of their numbers.
  package var decisions: [Decision]
  /// True if the server may have decided change sets of this client whose outcomes it no longer knows.
  package var isForgotten = false
  /// The highest number of a change set of this client that is known to be decided although its decision is forgotten; 0 if
  /// there is none above ``decided``.
  package var forgottenUpTo = 0

  /// The highest number of a change set of this client that is known to be decided, 0 for none.
  var lastNumber: Int { max(decided, forgottenUpTo) }

  /// Creates a standing.
  package init(
    position: ScopePosition, resumes: Bool = false, decided: Int = 0, decisions: [Decision] = []
  ) {
    self.position = position
    self.resumes = resumes
    self.decided = decided
    self.decisions = decisions
  }
}

extension ScopePosition {
  init(_ fields: MessageFields, in object: JSONObject, _ field: String) throws(MessageError) {
    guard case .string(let epoch)? = object["epoch"], let sequence = object["sequence"]?.wholeNumber
    else { throw fields.invalid(field, "should have an epoch and a sequence") }
    self.init(epoch: epoch, sequence: sequence)
  }

  var json: JSONObject {
    ["epoch": .string(epoch), "sequence": .integer(Int64(sequence))]
  }
}

extension ScopeStanding {
  init(_ fields: MessageFields, _ field: String) throws(MessageError) {
    let object = try fields.object(field)
    self.init(
      position: try ScopePosition(fields, in: object, field),
      resumes: object["resumes"] == .bool(true))
    isForgotten = object["forgotten"] == .bool(true)
    for (key, number) in [("decided", \Self.decided), ("forgottenUpTo", \Self.forgottenUpTo)] {
      guard let value = (object[key] ?? 0).wholeNumber else {
        throw fields.invalid(field, "should have a whole number in \(key)")
      }
      self[keyPath: number] = value
    }
    guard case .array(let elements) = object["decisions"] ?? [] else {
      throw fields.invalid(field, "should have an array in decisions")
    }
    for (position, element) in elements.enumerated() {
      do throws(FragmentError) {
        decisions.append(try Decision(json: element))
      } catch {
        throw .invalidElement(
          message: fields.type, index: fields.index, field: "\(field).decisions",
          position: position, error: error)
      }
    }
  }

  var json: JSONValue {
    var object = position.json
    object["resumes"] = .bool(resumes)
    object["decided"] = .integer(Int64(decided))
    object["decisions"] = .array(decisions.map(\.json))
    if isForgotten { object["forgotten"] = true }
    if forgottenUpTo > 0 { object["forgottenUpTo"] = .integer(Int64(forgottenUpTo)) }
    return .object(object)
  }
}

extension ScopeStanding.Decision {
  /// Reads a decision.
  ///
  /// - Throws: ``FragmentError`` naming the field that is missing or wrong.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let number = object["number"]?.wholeNumber else {
      throw .invalid(field: "number", problem: "should be a whole number from 0 up")
    }
    guard case .array(let elements)? = object["fragmentReplies"] else {
      throw .invalid(field: "fragmentReplies", problem: "should be an array")
    }
    var replies: [FragmentReply] = []
    for element in elements { replies.append(try FragmentReply(json: element)) }
    self.init(number: number, fragmentReplies: replies, outcome: try CallOutcome(in: object))
    switch object["sequence"] {
    case nil, .null?: break
    case let value?:
      guard let sequence = value.wholeNumber else {
        throw .invalid(field: "sequence", problem: "should be a whole number from 0 up")
      }
      self.sequence = sequence
    }
    switch object["checksum"] {
    case nil, .null?: break
    case let value?:
      guard let checksum = value.wholeNumber.flatMap({ UInt32(exactly: $0) }) else {
        throw .invalid(field: "checksum", problem: "should be a number of 32 bits")
      }
      self.checksum = checksum
    }
    isForgotten = object["forgotten"] == true
  }

  /// The decision as JSON.
  package var json: JSONValue {
    var object: JSONObject = [
      "number": .integer(Int64(number)),
      "fragmentReplies": .array(fragmentReplies.map(\.json)),
    ]
    if let sequence { object["sequence"] = .integer(Int64(sequence)) }
    if let outcome { object["outcome"] = outcome.json }
    if let checksum { object["checksum"] = .integer(Int64(checksum)) }
    if isForgotten { object["forgotten"] = true }
    return .object(object)
  }
}
