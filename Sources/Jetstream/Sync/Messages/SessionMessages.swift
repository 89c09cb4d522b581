import Foundation

/// The first message that a client sends to get a new session.
package struct SessionCreate: Sendable, Hashable {
  /// Always 0 from this implementation; old clients may send any number, which is ignored.
  package var index: Int

  /// The version that the client states: a semantic version, perhaps with build identifiers such as
  /// ``SemanticVersion/rebase``.
  package var version: String

  /// The parameters that the client's app passes to the server's app, such as credentials.
  package var params: JSONValue

  /// The highest version of this protocol that the client speaks; nil for version 1.
  package var `protocol`: Int?

  /// The client's identity in all its sessions, under which its change sets are numbered. Since version 2.
  package var client: UUID?

  /// Creates a request. Servers refuse it unless the version satisfies ``SemanticVersion/isValid(_:)``.
  package init(
    index: Int = 0, version: String, params: JSONValue = .object([:]), protocol: Int? = nil,
    client: UUID? = nil
  ) {
    self.index = index
    self.version = version
    self.params = params
    self.protocol = `protocol`
    self.client = client
  }
}

/// The server's answer to ``SessionCreate``.
package struct SessionCreateReply: Sendable, Hashable {
  /// Always 0: the reply comes before the numbering starts.
  package var index: Int

  /// The token that resumes the session, or the reason for the denial.
  package var result: Result<String, WireError>

  /// The version of this protocol that the session uses; nil for version 1.
  package var `protocol`: Int?

  /// Creates a reply.
  package init(index: Int = 0, result: Result<String, WireError>) {
    self.index = index
    self.result = result
  }

  /// Grants the session.
  package init(index: Int = 0, sessionToken: String, protocol: Int? = nil) {
    self.init(index: index, result: .success(sessionToken))
    self.protocol = `protocol`
  }

  /// Denies the session.
  package init(index: Int = 0, error: WireError) {
    self.init(index: index, result: .failure(error))
  }

  /// The token, or nil if the server denied the session.
  package var sessionToken: String? { try? result.get() }

  /// The reason for the denial, or nil if the server granted the session.
  package var error: WireError? {
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
    self.init(
      index: fields.index, version: version, params: fields["params"] ?? .object([:]),
      protocol: try fields.optionalNumber("protocol"),
      client: fields.has("client") ? try fields.uuid("client") : nil)
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("version", .string(version))
    sink.put("params", params)
    if let `protocol` { sink.put("protocol", `protocol`) }
    if let client { sink.put("client", client) }
  }
}

extension SessionCreateReply: MessageBody {
  static var type: String { "SessionCreateReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    if fields.has("error") {
      self.init(index: fields.index, error: try fields.error())
    } else {
      self.init(
        index: fields.index, sessionToken: try fields.string("sessionToken"),
        protocol: try fields.optionalNumber("protocol"))
    }
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    switch result {
    case .success(let token):
      sink.put("sessionToken", .string(token))
      if let `protocol` { sink.put("protocol", `protocol`) }
    case .failure(let error): sink.put("error", error.json)
    }
  }
}
