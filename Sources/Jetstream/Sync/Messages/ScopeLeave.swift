/// Ends the syncing of a scope, from either side: a client no longer wants the scope, or a server no longer serves
/// it and says why. Since version 2.
package struct ScopeLeave: Sendable, Hashable {
  /// The message's index.
  package var index: Int

  /// The scope's index in this session. It is not used again.
  package var scopeIndex: Int

  /// The reason why the server ends the syncing; nil from a client.
  package var error: WireError?

  /// Creates a message.
  package init(index: Int = 0, scopeIndex: Int, error: WireError? = nil) {
    self.index = index
    self.scopeIndex = scopeIndex
    self.error = error
  }
}

extension ScopeLeave: MessageBody {
  static var type: String { "ScopeLeave" }

  init(_ fields: MessageFields) throws(MessageError) {
    self.init(index: fields.index, scopeIndex: try fields.wholeNumber("scopeIndex"))
    if fields.has("error") { error = try fields.error() }
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("scopeIndex", scopeIndex)
    if let error { sink.put("error", error.json) }
  }
}
