/// Changes of a scope: a client's change set, or what the server relays of another's.
package struct ScopeSync: Sendable, Hashable {
  /// The message's number.
  package var index: Int

  /// The scope's number in this session.
  package var scopeIndex: Int

  /// The changes, in order. May be empty: old servers send that if they rejected everything.
  package var fragments: [SyncFragment]

  /// Whether all of it has to be applied or nothing; from clients only, nil if not said.
  package var atomic: Bool?

  /// The procedure that judges the changes, as `Model.name`; from clients only.
  package var procedure: String?

  /// The number that the client has given the set, from 1; with it the server applies it once, however
  /// often it comes. From a server: this is the receiver's own set of that number. Since version 2.
  package var number: Int?

  /// The place of the changes in the scope's order; from servers only. Since version 2.
  package var sequence: Int?

  /// Up to which number the client knows what became of its sets; from clients only. Since version 2.
  package var decided: Int?

  /// Whether these are no changes, but models as they are at that place of the order, for a client that
  /// has something else; from servers only. Since version 2.
  package var repairs = false

  /// Who has made the changes, and what they knew. A server passes it on. Since version 2.
  package var origin = ChangeOrigin()

  /// Makes a message. Old servers drop one that has a procedure but not `atomic`: with a procedure,
  /// `atomic` is false unless given.
  package init(
    index: Int = 0, scopeIndex: Int, fragments: [SyncFragment], atomic: Bool? = nil,
    procedure: String? = nil
  ) {
    self.index = index
    self.scopeIndex = scopeIndex
    self.fragments = fragments
    self.atomic = atomic ?? (procedure == nil ? nil : false)
    self.procedure = procedure
  }
}

/// The server's answer to a client's ``ScopeSync``.
package struct ScopeSyncReply: Sendable, Hashable {
  /// The message's number.
  package var index: Int

  /// The number of the client's message.
  package var replyTo: Int

  /// One answer for each fragment, in the same order.
  package var fragmentReplies: [FragmentReply]

  /// The place of the set in the scope's order, or nil if nothing of it was accepted. Since version 2.
  package var sequence: Int?

  /// What the server has done instead of what was submitted, if that is something else. Since version 2.
  package var effective: [SyncFragment]?

  /// Makes a reply.
  package init(
    index: Int = 0, replyTo: Int, fragmentReplies: [FragmentReply], sequence: Int? = nil,
    effective: [SyncFragment]? = nil
  ) {
    self.index = index
    self.replyTo = replyTo
    self.fragmentReplies = fragmentReplies
    self.sequence = sequence
    self.effective = effective
  }
}

extension ScopeSync: MessageBody {
  static var type: String { "ScopeSync" }

  init(_ fields: MessageFields) throws(MessageError) {
    self.init(
      index: fields.index, scopeIndex: try fields.wholeNumber("scopeIndex"),
      fragments: try fields.fragments())
    if let value = fields["atomic"] {
      guard case .bool(let flag) = value else {
        throw fields.invalid("atomic", "should be a boolean")
      }
      atomic = flag
    }
    if fields["procedure"] != nil {
      let name = try fields.string("procedure")
      guard name.utf8.count(where: { $0 == UInt8(ascii: ".") }) == 1 else {
        throw fields.invalid("procedure", "should have the form Model.name")
      }
      procedure = name
    }
    number = try fields.optionalNumber("number")
    sequence = try fields.optionalNumber("sequence")
    decided = try fields.optionalNumber("decided")
    repairs = fields["repairs"] == .bool(true)
    origin = try fields.origin()
  }

  var json: JSONObject {
    var object = leading
    object["fragments"] = .array(fragments.map(\.json))
    for (key, value) in trailing { object[key] = value }
    return object
  }

  func write(to output: inout JSONOutput) {
    write(leading, fragments: fragments, then: trailing, to: &output)
  }

  private var leading: JSONObject {
    var object = head
    object["scopeIndex"] = .integer(Int64(scopeIndex))
    return object
  }

  private var trailing: JSONObject {
    var object = JSONObject()
    if let atomic { object["atomic"] = .bool(atomic) }
    if let procedure { object["procedure"] = .string(procedure) }
    if let number { object["number"] = .integer(Int64(number)) }
    if let sequence { object["sequence"] = .integer(Int64(sequence)) }
    if let decided { object["decided"] = .integer(Int64(decided)) }
    if repairs { object["repairs"] = .bool(true) }
    origin.write(to: &object)
    return object
  }
}

extension ScopeSyncReply: MessageBody {
  static var type: String { "ScopeSyncReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    self.init(
      index: fields.index, replyTo: try fields.wholeNumber("replyTo"),
      fragmentReplies: try fields.elements("fragmentReplies", FragmentReply.init(json:)))
    sequence = try fields.optionalNumber("sequence")
    if fields.has("effective") {
      effective = try fields.elements("effective", SyncFragment.init(json:))
    }
  }

  var json: JSONObject {
    var object = head
    object["replyTo"] = .integer(Int64(replyTo))
    object["fragmentReplies"] = .array(fragmentReplies.map(\.json))
    if let sequence { object["sequence"] = .integer(Int64(sequence)) }
    if let effective { object["effective"] = .array(effective.map(\.json)) }
    return object
  }
}
