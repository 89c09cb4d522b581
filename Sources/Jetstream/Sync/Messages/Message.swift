/// A message of the sync protocol, version 1 or 2.
///
/// A message with ``index`` 0 is ephemeral: the receiver always processes it, and the sender never sends it again.
/// All other messages are numbered from 1, per session and direction, and kept until the peer has acknowledged them.
///
/// Boxed, since a message is copied more often than it is made: into what is kept, and into what is to be sent.
package enum Message: Sendable, Hashable {
  /// A client asks for a new session.
  indirect case sessionCreate(SessionCreate)
  /// The server grants or denies the session.
  indirect case sessionCreateReply(SessionCreateReply)
  /// A client asks for a scope.
  indirect case scopeFetch(ScopeFetch)
  /// The server grants or denies the scope.
  indirect case scopeFetchReply(ScopeFetchReply)
  /// The server sends the full state of a scope, or a part of it.
  indirect case scopeState(ScopeState)
  /// Either side sends changes of a scope.
  case scopeSync(ScopeSync)
  /// The server answers a client's change set.
  case scopeSyncReply(ScopeSyncReply)
  /// Either side ends the syncing of a scope. Since version 2.
  indirect case scopeLeave(ScopeLeave)
  /// Either side acknowledges, keeps the connection alive, or asks for lost messages.
  indirect case ping(Ping)

  /// The values of the field `type`, one for each kind of message.
  static let types: Set<String> = [
    SessionCreate.type, SessionCreateReply.type, ScopeFetch.type, ScopeFetchReply.type,
    ScopeState.type, ScopeSync.type, ScopeSyncReply.type, ScopeLeave.type, Ping.type,
  ]

  /// Reads one message. Ignores unknown keys.
  ///
  /// - Throws: ``MessageError``: `unknownType` for a message of another version, other cases for a field that is
  ///   missing or invalid. One invalid fragment makes the whole message invalid.
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
      self = .scopeSync(try fields.read(Self.sync, naming: "scopeIndex", MessageError.inScope))
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

  private static func sync(_ fields: MessageFields) throws(MessageError) -> ScopeSync {
    try fields.read(Self.set, naming: "number", MessageError.inChangeSet)
  }

  private static func set(_ fields: MessageFields) throws(MessageError) -> ScopeSync {
    do throws(MessageError) {
      return try ScopeSync(fields)
    } catch {
      throw fields.has("arguments") ? .inCall(error) : error
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

  /// The message's index in its session and direction; 0 if it is ephemeral.
  package var index: Int {
    get {
      switch self {
      case .sessionCreate(let body): body.index
      case .sessionCreateReply(let body): body.index
      case .scopeFetch(let body): body.index
      case .scopeFetchReply(let body): body.index
      case .scopeState(let body): body.index
      case .scopeSync(let body): body.index
      case .scopeSyncReply(let body): body.index
      case .scopeLeave(let body): body.index
      case .ping(let body): body.index
      }
    }
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

  /// The value of the field `type`, such as `ScopeSync`.
  package var type: String { Swift.type(of: body).type }

  /// The message as JSON, with keys in the order of the original server: `type`, `index`, then the rest.
  package var json: JSONValue { .object(body.json) }

  /// Appends the UTF-8 of ``json`` to `bytes`. Encodes fragments directly, without making JSON values of them first.
  package func write(to bytes: inout [UInt8]) {
    bytes.append(size: sizeHint, written: { write(to: &$0) })
  }

  /// The number of bytes that a text adds to what is written.
  private static func copied(of text: FragmentsText?) -> Int {
    text.map { $0.isShort ? $0.bytes.count : 0 } ?? 0
  }

  /// The size of the text if that is much, and known at once.
  private var sizeHint: Int {
    switch self {
    case .scopeState(let body): 512 + Self.copied(of: body.text)
    case .scopeSync(let body): 512 + Self.copied(of: body.text)
    default: 512
    }
  }

  /// Appends the UTF-8 of ``json``.
  func write(to output: inout JSONOutput) {
    switch self {
    case .sessionCreate(let body): body.writeText(to: &output)
    case .sessionCreateReply(let body): body.writeText(to: &output)
    case .scopeFetch(let body): body.writeText(to: &output)
    case .scopeFetchReply(let body): body.writeText(to: &output)
    case .scopeState(let body): body.writeText(to: &output)
    case .scopeSync(let body): body.writeText(to: &output)
    case .scopeSyncReply(let body): body.writeText(to: &output)
    case .scopeLeave(let body): body.writeText(to: &output)
    case .ping(let body): body.writeText(to: &output)
    }
  }
}

/// The requirements that the structs behind the cases of ``Message`` share.
protocol MessageBody: Sendable, Hashable {
  static var type: String { get }
  var index: Int { get set }

  /// Reads the fields after `type` and `index`.
  init(_ fields: MessageFields) throws(MessageError)

  /// Writes the fields after `type` and `index`, in the order of the original server.
  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink)
}

extension MessageBody {
  /// All fields as JSON.
  var json: JSONObject {
    var object: JSONObject = ["type": .string(Self.type), "index": .integer(Int64(index))]
    write(to: &object)
    return object
  }

  /// Appends the UTF-8 of ``json``.
  func writeText(to output: inout JSONOutput) {
    output.append(fixed: #"{"type":"#)
    JSONWriter.write(Self.type, to: &output)
    output.put("index", index)
    write(to: &output)
    output.append("}")
  }
}
