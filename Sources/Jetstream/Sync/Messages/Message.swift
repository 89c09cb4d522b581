/// A message of the sync protocol, version 1.
///
/// A message with ``index`` 0 is ephemeral: it is always processed and never sent again. All others
/// are numbered per session and direction from 1, and kept until the peer has acknowledged them.
package enum Message: Sendable, Hashable {
  /// A client asks for a new session.
  case sessionCreate(SessionCreate)
  /// The server grants or denies it.
  case sessionCreateReply(SessionCreateReply)
  /// A client asks for a scope.
  case scopeFetch(ScopeFetch)
  /// The server grants or denies it.
  case scopeFetchReply(ScopeFetchReply)
  /// The server sends everything that a scope holds.
  case scopeState(ScopeState)
  /// Either side sends changes of a scope.
  case scopeSync(ScopeSync)
  /// The server answers a client's changes.
  case scopeSyncReply(ScopeSyncReply)
  /// Either side ends the syncing of a scope. Since version 2.
  case scopeLeave(ScopeLeave)
  /// Either side acknowledges, keeps the connection alive, or asks for lost messages.
  case ping(Ping)

  /// The words for the types, as they stand in the field `type`.
  static let types: Set<String> = [
    SessionCreate.type, SessionCreateReply.type, ScopeFetch.type, ScopeFetchReply.type,
    ScopeState.type, ScopeSync.type, ScopeSyncReply.type, ScopeLeave.type, Ping.type,
  ]

  /// Reads one message. Unknown keys are ignored.
  ///
  /// - Throws: ``MessageError``: `unknownType` for a message of some other version, other cases for
  ///   a field that is missing or wrong. One bad fragment makes the whole message invalid.
  package init(json: JSONValue) throws(MessageError) {
    try self.init(try MessageFields(json: json))
  }

  init(_ fields: MessageFields) throws(MessageError) {
    switch fields.type {
    case SessionCreate.type: self = .sessionCreate(try SessionCreate(fields))
    case SessionCreateReply.type: self = .sessionCreateReply(try SessionCreateReply(fields))
    case ScopeFetch.type: self = .scopeFetch(try ScopeFetch(fields))
    case ScopeFetchReply.type:
      self = .scopeFetchReply(
        try fields.read(ScopeFetchReply.init, naming: "replyTo", MessageError.inReply))
    case ScopeState.type:
      self = .scopeState(
        try fields.read(ScopeState.init, naming: "scopeIndex", MessageError.inScope))
    case ScopeSync.type:
      self = .scopeSync(try fields.read(ScopeSync.init, naming: "scopeIndex", MessageError.inScope))
    case ScopeSyncReply.type:
      self = .scopeSyncReply(
        try fields.read(ScopeSyncReply.init, naming: "replyTo", MessageError.inReply))
    case ScopeLeave.type:
      self = .scopeLeave(
        try fields.read(ScopeLeave.init, naming: "scopeIndex", MessageError.inScope))
    case Ping.type: self = .ping(try Ping(fields))
    default: throw .unknownType(fields.type, index: fields.index)
    }
  }

  private var body: any MessageBody {
    switch self {
    case .sessionCreate(let body): body
    case .sessionCreateReply(let body): body
    case .scopeFetch(let body): body
    case .scopeFetchReply(let body): body
    case .scopeState(let body): body
    case .scopeSync(let body): body
    case .scopeSyncReply(let body): body
    case .scopeLeave(let body): body
    case .ping(let body): body
    }
  }

  /// The message's number, or 0 if it is ephemeral.
  package var index: Int {
    get { body.index }
    set {
      switch self {
      case .sessionCreate(var body):
        body.index = newValue
        self = .sessionCreate(body)
      case .sessionCreateReply(var body):
        body.index = newValue
        self = .sessionCreateReply(body)
      case .scopeFetch(var body):
        body.index = newValue
        self = .scopeFetch(body)
      case .scopeFetchReply(var body):
        body.index = newValue
        self = .scopeFetchReply(body)
      case .scopeState(var body):
        body.index = newValue
        self = .scopeState(body)
      case .scopeSync(var body):
        body.index = newValue
        self = .scopeSync(body)
      case .scopeSyncReply(var body):
        body.index = newValue
        self = .scopeSyncReply(body)
      case .scopeLeave(var body):
        body.index = newValue
        self = .scopeLeave(body)
      case .ping(var body):
        body.index = newValue
        self = .ping(body)
      }
    }
  }

  /// The word in the field `type`, such as `ScopeSync`.
  package var type: String { Swift.type(of: body).type }

  /// The message as JSON, keys in the order of the original server: `type`, `index`, then the rest.
  package var json: JSONValue { .object(body.json) }

  /// Appends the UTF-8 of ``json`` to `bytes`. Fragments are written without a value in between.
  package func write(to bytes: inout [UInt8]) {
    bytes.append(written: { write(to: &$0) })
  }

  /// Appends the UTF-8 of ``json``.
  func write(to output: inout JSONOutput) {
    body.write(to: &output)
  }
}

/// What the structs behind the cases of ``Message`` have in common.
protocol MessageBody: Sendable, Hashable {
  static var type: String { get }
  var index: Int { get set }

  /// Reads the fields after `type` and `index`.
  init(_ fields: MessageFields) throws(MessageError)

  /// Everything, in the server's key order.
  var json: JSONObject { get }

  func write(to output: inout JSONOutput)
}

extension MessageBody {
  /// The first two fields.
  var head: JSONObject { ["type": .string(Self.type), "index": .integer(Int64(index))] }

  func write(to output: inout JSONOutput) {
    JSONWriter.write(json, sorted: false, to: &output)
  }

  /// Writes `json` except for a last member that is an array of fragments, then that member.
  func write(
    _ fields: JSONObject, fragments: [SyncFragment], then rest: JSONObject = [:],
    to output: inout JSONOutput
  ) {
    JSONWriter.write(fields, sorted: false, to: &output)
    output.removeLast(1)
    output.append(fixed: #","fragments":["#)
    for (position, fragment) in fragments.enumerated() {
      if position > 0 { output.append(",") }
      fragment.write(to: &output)
    }
    output.append("]")
    for (key, value) in rest {
      output.append(",")
      JSONWriter.write(key, to: &output)
      output.append(":")
      JSONWriter.write(value, sorted: false, to: &output)
    }
    output.append("}")
  }
}
