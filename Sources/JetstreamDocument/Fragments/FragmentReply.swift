/// The server's answer to one fragment of a change set: `{}` if it was accepted as it is, an error if it was
/// rejected, values if the server accepted it with corrections, names of properties if some of their operations had
/// no effect.
package struct FragmentReply: Sendable, Hashable {
  /// The fields of a reply that says something. Indirect: nearly all replies say nothing, and are copied more often than made.
  private indirect enum Content: Sendable, Hashable {
    case fields(Fields)
  }

  private struct Fields: Sendable, Hashable {
    var error: WireError?
    var modifications: JSONObject?
    var lost: [String] = []
    var causedBy: Int?

    /// True if they say nothing.
    var areEmpty: Bool {
      error == nil && modifications == nil && lost.isEmpty && causedBy == nil
    }
  }

  /// Nil if the reply says nothing.
  private var content: Content?

  private var fields: Fields {
    get { if case .fields(let fields) = content { fields } else { Fields() } }
    set { content = newValue.areEmpty ? nil : .fields(newValue) }
  }

  /// The reason why the fragment was rejected; nil if it was accepted.
  package var error: WireError? {
    get { isPlain ? nil : fields.error }
    set { fields.error = newValue }
  }

  /// The values that the model has instead of the submitted ones, by property name.
  package var modifications: JSONObject? {
    get { isPlain ? nil : fields.modifications }
    set { fields.modifications = newValue }
  }

  /// The names of collections that moves did not reach: the model was elsewhere by then, or the move would have
  /// made it unreachable. Since version 2 of the protocol.
  package var lost: [String] {
    get { isPlain ? [] : fields.lost }
    set { fields.lost = newValue }
  }

  /// The index of the fragment in the change set that caused this rejection: the addition of a model that this
  /// fragment refers to, or the fragment for which an atomic change set was rejected. That fragment was rejected
  /// for a reason of its own. Nil if this one was, and from peers that do not send it. Since version 2 of the
  /// protocol.
  package var causedBy: Int? {
    get { isPlain ? nil : fields.causedBy }
    set { fields.causedBy = newValue }
  }

  /// Makes the reply that accepts.
  package init() { content = nil }

  /// Makes a reply.
  package init(
    error: WireError? = nil, modifications: JSONObject? = nil, lost: [String] = [],
    causedBy: Int? = nil
  ) {
    fields = Fields(error: error, modifications: modifications, lost: lost, causedBy: causedBy)
  }

  /// Reads a reply from its ``json``. A `null` error, modification, list or cause counts as absent; unknown keys
  /// are ignored.
  ///
  /// - Throws: ``FragmentError`` naming `error`, `modifications`, `lost` or `causedBy`.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    var fields = Fields()
    switch object["error"] {
    case nil, .null?: break
    case let value?:
      do throws(FragmentError) {
        fields.error = try WireError(json: value)
      } catch {
        throw .invalid(field: "error", problem: "is invalid: \(error)")
      }
    }
    switch object["modifications"] {
    case nil, .null?: break
    case .object(let values)?: fields.modifications = values
    default: throw .invalid(field: "modifications", problem: "should be an object")
    }
    switch object["lost"] {
    case nil, .null?: break
    case .array(let names)?:
      for name in names {
        guard case .string(let name) = name else {
          throw .invalid(field: "lost", problem: "should be an array of strings")
        }
        fields.lost.append(name)
      }
    default: throw .invalid(field: "lost", problem: "should be an array of strings")
    }
    switch object["causedBy"] {
    case nil, .null?: break
    case .integer(let place)?: fields.causedBy = Int(place)
    default: throw .invalid(field: "causedBy", problem: "should be a whole number")
    }
    self.fields = fields
  }

  /// True if the reply accepts the fragment as it is, and says nothing else.
  package var isPlain: Bool { content == nil }

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
