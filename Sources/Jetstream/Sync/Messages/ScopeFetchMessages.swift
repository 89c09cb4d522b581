import Foundation

/// A client's request for a scope. A client that has the scope already sends another request to change its ``Tell``,
/// or to get what it has missed.
package struct ScopeFetch: Sendable, Hashable {
  /// The part of other clients' changes that a client asks for. Since version 2.
  package enum Tell: String, Sendable, Hashable, CaseIterable {
    /// Everything that the client has missed, and every later change as it happens.
    case everything
    /// Everything that the client has missed until now, and after that only the decisions about its own change sets.
    case missed
    /// Only the decisions about the client's own change sets.
    case nothing
  }

  /// The message's index.
  package var index: Int

  /// The scope's name.
  package var name: String

  /// The parameters that the client's app passes to the server's app, such as which document it means.
  package var params: JSONValue

  /// The position up to which the client has applied the scope; nil if it has no state. Since version 2.
  package var since: ScopePosition?

  /// The number up to which the client knows the outcome of its own change sets. Since version 2.
  package var decided: Int?

  /// The identity under which the client numbers its change sets of this scope, if it differs from the session's:
  /// the one that it keeps in a log together with its pending change sets. Since version 2.
  package var client: UUID?

  /// The part of other clients' changes that the client asks for. Since version 2.
  package var tell = Tell.everything

  /// The schema of the scope's classes, if the server has asked for it; see ``WireError/schemaWanted``. A server reads it
  /// as data that it does not trust. Since version 2.
  package var schema: JSONValue?

  /// Creates a request.
  package init(
    index: Int = 0, name: String, params: JSONValue = .object([:]), since: ScopePosition? = nil,
    decided: Int? = nil, client: UUID? = nil, tell: Tell = .everything, schema: JSONValue? = nil
  ) {
    self.index = index
    self.name = name
    self.params = params
    self.since = since
    self.decided = decided
    self.client = client
    self.tell = tell
    self.schema = schema
  }
}

/// The server's answer to ``ScopeFetch``. If the server grants the scope, a ``ScopeState`` follows, unless the
/// ``standing`` says otherwise.
package struct ScopeFetchReply: Sendable, Hashable {
  /// The answers to a request for a scope.
  package enum Answer: Sendable, Hashable {
    /// The server grants the scope, which has this index in the session.
    case granted(scopeIndex: Int)
    /// The scope is served in another channel of the session: the client asks for it there. Since version 2.
    case moved(channel: Int)
    case denied(WireError)
  }

  /// The message's index.
  package var index: Int

  /// The index of the request.
  package var replyTo: Int

  /// The answer.
  package var answer: Answer

  /// The scope's current sequence and what the server has decided about the client's change sets. Since version 2.
  package var standing: ScopeStanding?

  /// Creates a reply.
  package init(index: Int = 0, replyTo: Int, answer: Answer) {
    self.index = index
    self.replyTo = replyTo
    self.answer = answer
  }

  /// Grants the scope.
  package init(index: Int = 0, replyTo: Int, scopeIndex: Int, standing: ScopeStanding? = nil) {
    self.init(index: index, replyTo: replyTo, answer: .granted(scopeIndex: scopeIndex))
    self.standing = standing
  }

  /// Denies the scope.
  package init(index: Int = 0, replyTo: Int, error: WireError) {
    self.init(index: index, replyTo: replyTo, answer: .denied(error))
  }

  /// The scope's index, or nil if the server did not grant the scope.
  package var scopeIndex: Int? {
    if case .granted(let index) = answer { index } else { nil }
  }

  /// The reason for the denial, or nil if the server did not deny the scope.
  package var error: WireError? {
    if case .denied(let error) = answer { error } else { nil }
  }
}

/// The full state of a scope, or a part of it.
package struct ScopeState: Sendable, Hashable {
  /// The message's index.
  package var index: Int

  /// The scope's index in this session.
  package var scopeIndex: Int

  /// The UUID of the scope's root model.
  package var rootUUID: UUID

  /// The models: first the root as a `change`, then the others as `add`. Parents come before their children, but for
  /// models that were moved or added while the server read a large state.
  package var fragments: [SyncFragment]

  /// The text of the fragments, if other messages carry them as well. A message that a server has made for a client of
  /// version 1 of several parts has the text alone, and no ``fragments``.
  package var text: FragmentsText?

  /// True if the next message of the scope continues this state. The state is complete with the first message in
  /// which this is false. Since version 2.
  package var more = false

  /// Creates a state.
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
    if fields.has("schema") { schema = fields["schema"] }
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("name", .string(name))
    sink.put("params", params)
    if let since { sink.put("since", .object(since.json)) }
    if let decided { sink.put("decided", decided) }
    if let client { sink.put("client", client) }
    if tell != .everything { sink.put("tell", .string(tell.rawValue)) }
    if let schema { sink.put("schema", schema) }
  }
}

extension ScopeFetchReply: MessageBody {
  static var type: String { "ScopeFetchReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    let replyTo = try fields.wholeNumber("replyTo")
    if fields.has("error") {
      self.init(index: fields.index, replyTo: replyTo, error: try fields.error())
    } else if fields.has("channel") {
      let channel = try fields.wholeNumber("channel")
      self.init(index: fields.index, replyTo: replyTo, answer: .moved(channel: channel))
    } else {
      let scopeIndex = try fields.wholeNumber("scopeIndex")
      self.init(index: fields.index, replyTo: replyTo, scopeIndex: scopeIndex)
      if fields.has("standing") { standing = try ScopeStanding(fields, "standing") }
    }
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("replyTo", replyTo)
    switch answer {
    case .granted(let scopeIndex):
      sink.put("scopeIndex", scopeIndex)
      if let standing { sink.put("standing", standing.json) }
    case .moved(let channel): sink.put("channel", channel)
    case .denied(let error): sink.put("error", error.json)
    }
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

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("scopeIndex", scopeIndex)
    sink.put("rootUUID", rootUUID)
    sink.put("fragments", fragments, as: text)
    if more { sink.put("more", .bool(true)) }
  }
}
