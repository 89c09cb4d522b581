/// The answer to one fragment of a change set: `{}` if it was accepted as it is, an error if it
/// was rejected, values if the server accepted it with corrections.
public struct FragmentReply: Sendable, Hashable {
  /// Why the fragment was rejected, or nil if it was accepted.
  public var error: WireError?

  /// The values that the model has instead of the submitted ones, by property name.
  public var modifications: JSONObject?

  /// Makes a reply, by default the one that accepts.
  public init(error: WireError? = nil, modifications: JSONObject? = nil) {
    self.error = error
    self.modifications = modifications
  }

  /// Reads a reply. A `null` error or modification is none; unknown keys are ignored.
  ///
  /// - Throws: ``FragmentError`` naming `error` or `modifications`.
  public init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    switch object["error"] {
    case nil, .null?: error = nil
    case let value?:
      do throws(FragmentError) {
        error = try WireError(json: value)
      } catch {
        throw .invalid(field: "error", problem: "is invalid: \(error)")
      }
    }
    switch object["modifications"] {
    case nil, .null?: modifications = nil
    case .object(let values)?: modifications = values
    default: throw .invalid(field: "modifications", problem: "should be an object")
    }
  }

  /// The reply as JSON, `error` before `modifications`, without what is nil.
  public var json: JSONValue {
    var object = JSONObject()
    if let error { object["error"] = error.json }
    if let modifications { object["modifications"] = .object(modifications) }
    return .object(object)
  }
}
