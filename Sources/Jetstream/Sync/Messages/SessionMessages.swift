/// The first message of a client on a new session.
public struct SessionCreate: Sendable, Hashable {
  /// Always 0 from our clients; old ones may send any number, which does not count.
  public var index: Int

  /// The protocol version that the client speaks, a semantic version.
  public var version: String

  /// What the application wants to tell the server, such as credentials.
  public var params: JSONValue

  /// Makes a request. The version has to satisfy ``SemanticVersion/isValid(_:)``, or servers refuse
  /// it.
  public init(index: Int = 0, version: String, params: JSONValue = .object([:])) {
    self.index = index
    self.version = version
    self.params = params
  }
}

/// The server's answer to ``SessionCreate``.
public struct SessionCreateReply: Sendable, Hashable {
  /// Always 0: the reply comes before the numbering starts.
  public var index: Int

  /// The token that resumes the session, or why there is none.
  public var result: Result<String, WireError>

  /// Makes a reply.
  public init(index: Int = 0, result: Result<String, WireError>) {
    self.index = index
    self.result = result
  }

  /// Grants the session.
  public init(index: Int = 0, sessionToken: String) {
    self.init(index: index, result: .success(sessionToken))
  }

  /// Denies the session.
  public init(index: Int = 0, error: WireError) {
    self.init(index: index, result: .failure(error))
  }

  /// The token, or nil if the session was denied.
  public var sessionToken: String? { try? result.get() }

  /// The reason, or nil if the session was granted.
  public var error: WireError? {
    guard case .failure(let error) = result else { return nil }
    return error
  }
}

extension SessionCreate: MessageBody {
  static var type: String { "SessionCreate" }

  init(_ fields: MessageFields) throws(MessageError) {
    let version = try fields.string("version")
    guard SemanticVersion.isValid(version) else {
      throw fields.invalid("version", "should be a semantic version")
    }
    self.init(index: fields.index, version: version, params: fields["params"] ?? .object([:]))
  }

  var json: JSONObject {
    var object = head
    object["version"] = .string(version)
    object["params"] = params
    return object
  }
}

extension SessionCreateReply: MessageBody {
  static var type: String { "SessionCreateReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    if fields.has("error") {
      self.init(index: fields.index, error: try fields.error())
    } else {
      self.init(index: fields.index, sessionToken: try fields.string("sessionToken"))
    }
  }

  var json: JSONObject {
    var object = head
    switch result {
    case .success(let token): object["sessionToken"] = .string(token)
    case .failure(let error): object["error"] = error.json
    }
    return object
  }
}
