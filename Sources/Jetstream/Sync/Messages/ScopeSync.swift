/// Changes of a scope: a client's own change set, or the change set of another client that the server passes on.
///
/// Its copies share the fields: a server hands it through many steps, and each copy costs one reference. Changing a field of
/// one that has copies costs a copy of all fields.
package struct ScopeSync: Sendable, Hashable {
  @usableFromInline
  var shared: Shared

  /// Makes a message with all its fields. They are initialized in place: a structure of them would be copied field by field.
  package init(
    index: Int = 0, scopeIndex: Int, fragments: [SyncFragment], text: FragmentsText?,
    atomic: Bool? = nil, number: Int? = nil, sequence: Int? = nil, decided: Int? = nil,
    problem: WireError? = nil, origin: ChangeOrigin = ChangeOrigin()
  ) {
    shared = Shared(
      index: index, scopeIndex: scopeIndex, fragments: fragments, text: text, atomic: atomic,
      procedure: nil, arguments: nil, number: number, sequence: sequence, decided: decided,
      repairs: false, problem: problem, origin: origin)
  }

  /// Creates a message. If there is a procedure, `atomic` is false unless given, because old servers drop a message
  /// that has a procedure but no `atomic`.
  package init(
    index: Int = 0, scopeIndex: Int, fragments: [SyncFragment], atomic: Bool? = nil,
    procedure: String? = nil
  ) {
    shared = Shared(
      index: index, scopeIndex: scopeIndex, fragments: fragments, text: nil,
      atomic: atomic ?? (procedure == nil ? nil : false), procedure: procedure, arguments: nil,
      number: nil, sequence: nil, decided: nil, repairs: false, problem: nil,
      origin: ChangeOrigin())
  }

  /// Writes the message by which a server tells a change set, without making it first.
  ///
  /// - Parameter last: the origin that was written to `output` last.
  package static func write(
    telling fragments: [SyncFragment], as text: FragmentsText?, at sequence: Int,
    by origin: ChangeOrigin, after last: inout WrittenOrigin, inScope scopeIndex: Int,
    to output: inout JSONOutput
  ) {
    output.append(fixed: #"{"type":"ScopeSync","index":0,"scopeIndex":"#)
    JSONWriter.write(Int64(scopeIndex), to: &output)
    output.put("fragments", fragments, as: text)
    output.put("sequence", sequence)
    last.write(origin, to: &output)
    output.append("}")
  }

  private mutating func makeUnique() {
    if !isKnownUniquelyReferenced(&shared) { shared = shared.copy() }
  }

  /// The message's index.
  package var index: Int {
    @inlinable get { shared.index }
    set {
      makeUnique()
      shared.index = newValue
    }
  }

  /// The scope's index in this session.
  package var scopeIndex: Int {
    @inlinable get { shared.scopeIndex }
    set {
      makeUnique()
      shared.scopeIndex = newValue
    }
  }

  /// The changes, in order. May be empty: old servers send an empty message if they rejected everything.
  package var fragments: [SyncFragment] {
    @inlinable get { shared.fragments }
    set {
      makeUnique()
      shared.fragments = newValue
    }
  }

  /// The text of the fragments, if other messages carry them as well.
  package var text: FragmentsText? {
    @inlinable get { shared.text }
    set {
      makeUnique()
      shared.text = newValue
    }
  }

  /// True to have the server apply either all of the change set or nothing; from clients only. Nil if not specified.
  package var atomic: Bool? {
    @inlinable get { shared.atomic }
    set {
      makeUnique()
      shared.atomic = newValue
    }
  }

  /// The procedure that decides about the changes, in the form `Model.name`; from clients only.
  package var procedure: String? {
    @inlinable get { shared.procedure }
    set {
      makeUnique()
      shared.procedure = newValue
    }
  }

  /// The arguments of the procedure: the changes are the client's guess of what it does. From clients only. Since version
  /// 2.
  package var arguments: JSONValue? {
    @inlinable get { shared.arguments }
    set {
      makeUnique()
      shared.arguments = newValue
    }
  }

  /// The change set's number, counted by its client from 1. It lets the server apply the change set exactly once,
  /// however often it arrives. From a server, it marks the receiver's own change set of that number. Since version
  /// 2.
  package var number: Int? {
    @inlinable get { shared.number }
    set {
      makeUnique()
      shared.number = newValue
    }
  }

  /// The change set's sequence; from servers only. Since version 2.
  package var sequence: Int? {
    @inlinable get { shared.sequence }
    set {
      makeUnique()
      shared.sequence = newValue
    }
  }

  /// The number up to which the client knows the outcome of its own change sets; from clients only. Since version 2.
  package var decided: Int? {
    @inlinable get { shared.decided }
    set {
      makeUnique()
      shared.decided = newValue
    }
  }

  /// True if the fragments are not changes but whole models as of that sequence, for a client whose copy differs;
  /// from servers only. Since version 2.
  package var repairs: Bool {
    @inlinable get { shared.repairs }
    set {
      makeUnique()
      shared.repairs = newValue
    }
  }

  /// The reason for which the receiver cannot read the change set, whose fragments stand for nothing then; nil if it
  /// can. Never sent.
  package var problem: WireError? {
    @inlinable get { shared.problem }
    set {
      makeUnique()
      shared.problem = newValue
    }
  }

  /// True if there is a ``problem``.
  package var isUnreadable: Bool {
    @inlinable get { shared.problem != nil }
  }

  /// The author of the changes and what the author had seen. A server passes it on. Since version 2.
  package var origin: ChangeOrigin {
    @inlinable get { shared.origin }
    set {
      makeUnique()
      shared.origin = newValue
    }
  }

  package static func == (left: ScopeSync, right: ScopeSync) -> Bool {
    let (a, b) = (left.shared, right.shared)
    return a === b
      || (a.index == b.index && a.scopeIndex == b.scopeIndex && a.fragments == b.fragments
        && a.text == b.text && a.atomic == b.atomic && a.procedure == b.procedure
        && a.arguments == b.arguments && a.number == b.number && a.sequence == b.sequence
        && a.decided == b.decided && a.repairs == b.repairs && a.problem == b.problem
        && a.origin == b.origin)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(shared.index)
    hasher.combine(shared.scopeIndex)
    hasher.combine(shared.number)
    hasher.combine(shared.sequence)
    hasher.combine(shared.fragments)
  }
}

extension ScopeSync: CustomStringConvertible {
  /// The message as JSON.
  package var description: String { JSONValue.object(json).text }
}

extension ScopeSync {
  /// The fields of a message, as it describes them.
  ///
  /// `@unchecked`, and without checks of exclusivity: they are only changed through a message that no copy shares them with.
  @usableFromInline
  final class Shared: @unchecked Sendable {
    @exclusivity(unchecked) @usableFromInline var index: Int
    @exclusivity(unchecked) @usableFromInline var scopeIndex: Int
    @exclusivity(unchecked) @usableFromInline var fragments: [SyncFragment]
    @exclusivity(unchecked) @usableFromInline var text: FragmentsText?
    @exclusivity(unchecked) @usableFromInline var atomic: Bool?
    @exclusivity(unchecked) @usableFromInline var procedure: String?
    @exclusivity(unchecked) @usableFromInline var arguments: JSONValue?
    @exclusivity(unchecked) @usableFromInline var number: Int?
    @exclusivity(unchecked) @usableFromInline var sequence: Int?
    @exclusivity(unchecked) @usableFromInline var decided: Int?
    @exclusivity(unchecked) @usableFromInline var repairs: Bool
    @exclusivity(unchecked) @usableFromInline var problem: WireError?
    @exclusivity(unchecked) @usableFromInline var origin: ChangeOrigin

    init(
      index: Int, scopeIndex: Int, fragments: [SyncFragment], text: FragmentsText?, atomic: Bool?,
      procedure: String?, arguments: JSONValue?, number: Int?, sequence: Int?, decided: Int?,
      repairs: Bool, problem: WireError?, origin: ChangeOrigin
    ) {
      self.index = index
      self.scopeIndex = scopeIndex
      self.fragments = fragments
      self.text = text
      self.atomic = atomic
      self.procedure = procedure
      self.arguments = arguments
      self.number = number
      self.sequence = sequence
      self.decided = decided
      self.repairs = repairs
      self.problem = problem
      self.origin = origin
    }

    func copy() -> Shared {
      Shared(
        index: index, scopeIndex: scopeIndex, fragments: fragments, text: text, atomic: atomic,
        procedure: procedure, arguments: arguments, number: number, sequence: sequence,
        decided: decided, repairs: repairs, problem: problem, origin: origin)
    }
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

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) { shared.write(to: &sink) }
}

extension ScopeSync.Shared {
  fileprivate func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
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
