/// Changes of a scope: a client's change set, or what the server relays of another's.
public struct ScopeSync: Sendable, Hashable {
  /// The message's number.
  public var index: Int

  /// The scope's number in this session.
  public var scopeIndex: Int

  /// The changes, in order. May be empty: old servers send that if they rejected everything.
  public var fragments: [SyncFragment]

  /// Whether all of it has to be applied or nothing; from clients only, nil if not said.
  public var atomic: Bool?

  /// The procedure that judges the changes, as `Model.name`; from clients only.
  public var procedure: String?

  /// Makes a message. Old servers drop one that has a procedure but not `atomic`: with a procedure,
  /// `atomic` is false unless given.
  public init(
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
public struct ScopeSyncReply: Sendable, Hashable {
  /// The message's number.
  public var index: Int

  /// The number of the client's message.
  public var replyTo: Int

  /// One answer for each fragment, in the same order.
  public var fragmentReplies: [FragmentReply]

  /// Makes a reply.
  public init(index: Int = 0, replyTo: Int, fragmentReplies: [FragmentReply]) {
    self.index = index
    self.replyTo = replyTo
    self.fragmentReplies = fragmentReplies
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
    return object
  }
}

extension ScopeSyncReply: MessageBody {
  static var type: String { "ScopeSyncReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    let replyTo = try fields.wholeNumber("replyTo")
    do throws(MessageError) {
      self.init(
        index: fields.index, replyTo: replyTo,
        fragmentReplies: try fields.elements("fragmentReplies", FragmentReply.init(json:)))
    } catch {
      throw .inReply(to: replyTo, error)
    }
  }

  var json: JSONObject {
    var object = head
    object["replyTo"] = .integer(Int64(replyTo))
    object["fragmentReplies"] = .array(fragmentReplies.map(\.json))
    return object
  }
}
