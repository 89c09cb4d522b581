/// One side ends the syncing of a scope: a client that wants no more of it, or a server that does not serve it any more
/// and says why. Since version 2.
package struct ScopeLeave: Sendable, Hashable {
  /// The message's number.
  package var index: Int

  /// The scope's number in this session. It is not used again.
  package var scopeIndex: Int

  /// Why the server ends it; nil from a client.
  package var error: WireError?

  /// Makes a message.
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

  var json: JSONObject {
    var object = head
    object["scopeIndex"] = .integer(Int64(scopeIndex))
    if let error { object["error"] = error.json }
    return object
  }
}
