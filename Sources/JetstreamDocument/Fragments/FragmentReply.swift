/// The server's answer to one fragment of a change set: `{}` if it was accepted as it is, an error if it was
/// rejected, values if the server accepted it with corrections, names of properties if some of their operations had
/// no effect.
package struct FragmentReply: Sendable, Hashable {
  /// The reason why the fragment was rejected; nil if it was accepted.
  package var error: WireError?

  /// The values that the model has instead of the submitted ones, by property name.
  package var modifications: JSONObject?

  /// The names of collections that moves did not reach: the model was elsewhere by then, or the move would have
  /// made it unreachable. Since version 2 of the protocol.
  package var lost: [String]

  /// The index of the fragment in the change set that caused this rejection: the addition of a model that this
  /// fragment refers to, or the fragment for which an atomic change set was rejected. That fragment was rejected
  /// for a reason of its own. Nil if this one was, and from peers that do not send it. Since version 2 of the
  /// protocol.
  package var causedBy: Int?

  /// Makes a reply, by default the one that accepts.
  package init(
    error: WireError? = nil, modifications: JSONObject? = nil, lost: [String] = [],
    causedBy: Int? = nil
  ) {
    self.error = error
    self.modifications = modifications
    self.lost = lost
    self.causedBy = causedBy
  }

  /// Reads a reply from its ``json``. A `null` error, modification, list or cause counts as absent; unknown keys
  /// are ignored.
  ///
  /// - Throws: ``FragmentError`` naming `error`, `modifications`, `lost` or `causedBy`.
  package init(json: JSONValue) throws(FragmentError) {
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
    lost = []
    switch object["lost"] {
    case nil, .null?: break
    case .array(let names)?:
      for name in names {
        guard case .string(let name) = name else {
          throw .invalid(field: "lost", problem: "should be an array of strings")
        }
        lost.append(name)
      }
    default: throw .invalid(field: "lost", problem: "should be an array of strings")
    }
    switch object["causedBy"] {
    case nil, .null?: break
    case .integer(let place)?: causedBy = Int(place)
    default: throw .invalid(field: "causedBy", problem: "should be a whole number")
    }
  }

  /// True if the reply accepts the fragment as it is, and says nothing else.
  package var isPlain: Bool {
    error == nil && modifications == nil && lost.isEmpty && causedBy == nil
  }

  /// The reply as JSON: `error`, `modifications`, `lost`, `causedBy`; fields without a value are left out.
  package var json: JSONValue {
    var object = JSONObject()
    if let error { object["error"] = error.json }
    if let modifications { object["modifications"] = .object(modifications) }
    if !lost.isEmpty { object["lost"] = .array(lost.map { .string($0) }) }
    if let causedBy { object["causedBy"] = .integer(Int64(causedBy)) }
    return .object(object)
  }
}

extension [FragmentReply] {
  /// Returns the index of the fragment whose rejection caused that of the fragment at `place`. Nil if that one was
  /// rejected for a reason of its own, or was not rejected.
  package func cause(of place: Int) -> Int? {
    guard self[place].error != nil, let cause = self[place].causedBy, cause != place,
      indices.contains(cause), self[cause].error != nil, self[cause].causedBy == nil
    else { return nil }
    return cause
  }
}
