/// The outcome of a call of a procedure, next to the changes that the procedure has made. Since version 2.
// Indirect: nearly every decision and reply has none, and each of their copies would make room for one.
package indirect enum CallOutcome: Sendable, Hashable {
  /// The procedure has made its changes, and returned this value.
  case output(JSONValue)
  /// The procedure has made no changes, for the reason of the error. The value is the error that it has thrown, for programs
  /// that know its type.
  case failure(WireError, thrown: JSONValue?)

  /// Reads an outcome from its ``json``. Unknown keys are ignored.
  ///
  /// - Throws: ``FragmentError`` naming `outcome`, or a field of its error.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    if let error = object["error"] {
      self = .failure(try WireError(json: error), thrown: object["thrown"])
    } else if let output = object["output"] {
      self = .output(output)
    } else {
      throw .invalid(field: "outcome", problem: "should have an output or an error")
    }
  }

  /// Reads the outcome that a message, or a record, may have.
  ///
  /// - Throws: ``FragmentError`` naming what is not valid.
  package init?(in object: JSONObject) throws(FragmentError) {
    guard let json = object["outcome"], json != .null else { return nil }
    try self.init(json: json)
  }

  /// The outcome as JSON: `output`, or `error` and `thrown`; a field without a value is left out.
  package var json: JSONValue {
    switch self {
    case .output(let value): return ["output": value]
    case .failure(let error, let thrown):
      var object: JSONObject = ["error": error.json]
      if let thrown { object["thrown"] = thrown }
      return .object(object)
    }
  }

  /// The error of a call that has failed.
  package var error: WireError? { if case .failure(let error, _) = self { error } else { nil } }
}
