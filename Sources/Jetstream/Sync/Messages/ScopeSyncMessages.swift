/// Changes of a scope: a client's own change set, or the change set of another client that the server passes on.
package struct ScopeSync: Sendable, Hashable {
  /// The message's index.
  package var index: Int

  /// The scope's index in this session.
  package var scopeIndex: Int

  /// The changes, in order. May be empty: old servers send an empty message if they rejected everything.
  package var fragments: [SyncFragment]

  /// The text of the fragments, if other messages carry them as well.
  package var text: FragmentsText?

  /// True to have the server apply either all of the change set or nothing; from clients only. Nil if not specified.
  package var atomic: Bool?

  /// The procedure that decides about the changes, in the form `Model.name`; from clients only.
  package var procedure: String?

  /// The arguments of the procedure: the changes are the client's guess of what it does. From clients only. Since version
  /// 2.
  package var arguments: JSONValue?

  /// The change set's number, counted by its client from 1. It lets the server apply the change set exactly once,
  /// however often it arrives. From a server, it marks the receiver's own change set of that number. Since version
  /// 2.
  package var number: Int?

  /// The change set's sequence; from servers only. Since version 2.
  package var sequence: Int?

  /// The number up to which the client knows the outcome of its own change sets; from clients only. Since version 2.
  package var decided: Int?

  /// True if the fragments are not changes but whole models as of that sequence, for a client whose copy differs;
  /// from servers only. Since version 2.
  package var repairs = false

  /// The reason for which the receiver cannot read the change set, whose fragments stand for nothing then; nil if it
  /// can. Never sent.
  package var problem: WireError?

  /// The author of the changes and what the author had seen. A server passes it on. Since version 2.
  package var origin = ChangeOrigin()

  /// Creates a message. If there is a procedure, `atomic` is false unless given, because old servers drop a message
  /// that has a procedure but no `atomic`.
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
  /// The message's index.
  package var index: Int

  /// The index of the client's message.
  package var replyTo: Int

  /// One reply for each fragment, in the same order.
  package var fragmentReplies: [FragmentReply]

  /// The change set's sequence, or nil if no part of it was accepted. Since version 2.
  package var sequence: Int?

  /// The changes that the server made instead of the submitted ones; nil if they are the same. Since version 2.
  package var effective: [SyncFragment]?

  /// The outcome of the procedure; nil if none was called. Since version 2.
  package var outcome: CallOutcome?

  /// Creates a reply.
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
    arguments = fields["arguments"]
    number = try fields.optionalNumber("number")
    sequence = try fields.optionalNumber("sequence")
    decided = try fields.optionalNumber("decided")
    repairs = fields["repairs"] == .bool(true)
    origin = try fields.origin()
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("scopeIndex", scopeIndex)
    sink.put("fragments", fragments, as: text)
    if let atomic { sink.put("atomic", .bool(atomic)) }
    if let procedure { sink.put("procedure", .string(procedure)) }
    if let arguments { sink.put("arguments", arguments) }
    if let number { sink.put("number", number) }
    if let sequence { sink.put("sequence", sequence) }
    if let decided { sink.put("decided", decided) }
    if repairs { sink.put("repairs", .bool(true)) }
    origin.write(to: &sink)
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
    outcome = try fields.outcome()
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("replyTo", replyTo)
    sink.put("fragmentReplies", fragmentReplies)
    if let sequence { sink.put("sequence", sequence) }
    if let effective { sink.put("effective", effective) }
    if let outcome { sink.put("outcome", outcome.json) }
  }
}
