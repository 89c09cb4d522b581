import Foundation

/// A client's request for a scope. A scope that it has already is asked for again to be told of it in
/// another way.
package struct ScopeFetch: Sendable, Hashable {
  /// What a client wants to be told of what others do. Since version 2.
  package enum Tell: String, Sendable, Hashable, CaseIterable {
    /// What it has missed, and everything as it happens.
    case everything
    /// What it has missed until now, and then nothing but what becomes of its own change sets.
    case missed
    /// Nothing but what becomes of its own change sets.
    case nothing
  }

  /// The message's number.
  package var index: Int

  /// The scope's name.
  package var name: String

  /// What the application wants to tell the server, such as which document it means.
  package var params: JSONValue

  /// Up to where the client has the scope already, if it has. Since version 2.
  package var since: ScopePosition?

  /// Up to which number the client knows what became of its change sets. Since version 2.
  package var decided: Int?

  /// The name under which the client numbers its change sets of this scope, if that is not the one of the
  /// session: one that it keeps with what it has not sent. Since version 2.
  package var client: UUID?

  /// What the client wants to be told. Since version 2.
  package var tell = Tell.everything

  /// Makes a request.
  package init(
    index: Int = 0, name: String, params: JSONValue = .object([:]), since: ScopePosition? = nil,
    decided: Int? = nil, client: UUID? = nil, tell: Tell = .everything
  ) {
    self.index = index
    self.name = name
    self.params = params
    self.since = since
    self.decided = decided
    self.client = client
    self.tell = tell
  }
}

/// The server's answer to ``ScopeFetch``. If it grants the scope, a ``ScopeState`` follows, unless the
/// standing says otherwise.
package struct ScopeFetchReply: Sendable, Hashable {
  /// The message's number.
  package var index: Int

  /// The number of the request.
  package var replyTo: Int

  /// The number by which this session's messages name the scope, or why there is none.
  package var result: Result<Int, WireError>

  /// Where the scope is, and how the client stands to it. Since version 2.
  package var standing: ScopeStanding?

  /// Makes a reply.
  package init(index: Int = 0, replyTo: Int, result: Result<Int, WireError>) {
    self.index = index
    self.replyTo = replyTo
    self.result = result
  }

  /// Grants the scope.
  package init(index: Int = 0, replyTo: Int, scopeIndex: Int, standing: ScopeStanding? = nil) {
    self.init(index: index, replyTo: replyTo, result: .success(scopeIndex))
    self.standing = standing
  }

  /// Denies the scope.
  package init(index: Int = 0, replyTo: Int, error: WireError) {
    self.init(index: index, replyTo: replyTo, result: .failure(error))
  }

  /// The scope's number, or nil if the scope was denied.
  package var scopeIndex: Int? { try? result.get() }

  /// The reason, or nil if the scope was granted.
  package var error: WireError? {
    guard case .failure(let error) = result else { return nil }
    return error
  }
}

/// Everything that a scope holds, or a part of it.
package struct ScopeState: Sendable, Hashable {
  /// The message's number.
  package var index: Int

  /// The scope's number in this session.
  package var scopeIndex: Int

  /// The identity of the scope's root model.
  package var rootUUID: UUID

  /// The models, parents before children: first the root as a `change`, then the others as `add`.
  package var fragments: [SyncFragment]

  /// Whether the next message of the scope goes on where this one ends; the state is complete with the first
  /// that does not say so. Since version 2.
  package var more = false

  /// Makes a state.
  package init(index: Int = 0, scopeIndex: Int, rootUUID: UUID, fragments: [SyncFragment]) {
    self.index = index
    self.scopeIndex = scopeIndex
    self.rootUUID = rootUUID
    self.fragments = fragments
  }
}

extension ScopeFetch: MessageBody {
  static var type: String { "ScopeFetch" }

  init(_ fields: MessageFields) throws(MessageError) {
    self.init(
      index: fields.index, name: try fields.string("name"),
      params: fields["params"] ?? .object([:]), decided: try fields.optionalNumber("decided"))
    if fields.has("client") { client = try fields.uuid("client") }
    if fields.has("since") {
      since = try ScopePosition(fields, in: try fields.object("since"), "since")
    }
    if fields.has("tell") {
      guard let tell = Tell(rawValue: try fields.string("tell")) else {
        throw fields.invalid("tell", "should be everything, missed or nothing")
      }
      self.tell = tell
    }
  }

  var json: JSONObject {
    var object = head
    object["name"] = .string(name)
    object["params"] = params
    if let since { object["since"] = .object(since.json) }
    if let decided { object["decided"] = .integer(Int64(decided)) }
    if let client { object["client"] = .string(client.wireText) }
    if tell != .everything { object["tell"] = .string(tell.rawValue) }
    return object
  }
}

extension ScopeFetchReply: MessageBody {
  static var type: String { "ScopeFetchReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    let replyTo = try fields.wholeNumber("replyTo")
    if fields.has("error") {
      self.init(index: fields.index, replyTo: replyTo, error: try fields.error())
    } else {
      let scopeIndex = try fields.wholeNumber("scopeIndex")
      self.init(index: fields.index, replyTo: replyTo, scopeIndex: scopeIndex)
      if fields.has("standing") { standing = try ScopeStanding(fields, "standing") }
    }
  }

  var json: JSONObject {
    var object = head
    object["replyTo"] = .integer(Int64(replyTo))
    switch result {
    case .success(let scopeIndex):
      object["scopeIndex"] = .integer(Int64(scopeIndex))
      if let standing { object["standing"] = standing.json }
    case .failure(let error): object["error"] = error.json
    }
    return object
  }
}

extension ScopeState: MessageBody {
  static var type: String { "ScopeState" }

  init(_ fields: MessageFields) throws(MessageError) {
    self.init(
      index: fields.index, scopeIndex: try fields.wholeNumber("scopeIndex"),
      rootUUID: try fields.uuid("rootUUID"),
      fragments: try fields.fragments())
    more = fields["more"] == .bool(true)
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

  private var trailing: JSONObject { more ? ["more": true] : [:] }

  private var leading: JSONObject {
    var object = head
    object["scopeIndex"] = .integer(Int64(scopeIndex))
    object["rootUUID"] = .string(rootUUID.wireText)
    return object
  }
}
