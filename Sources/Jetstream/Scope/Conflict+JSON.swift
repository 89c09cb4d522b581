import Foundation

/// The identity of a conflict that outlives its process: the change set, the model and the property.
package struct ConflictName: Sendable, Hashable {
  package let changeSet: UUID
  package let model: UUID
  /// The name of the property on the wire; nil for an addition.
  package let property: String?

  package init(_ conflict: Conflict) {
    (changeSet, model, property) = (conflict.changeSet, conflict.model, conflict.property)
  }
}

extension ConflictName {
  /// Reads the identity of a conflict from its ``json``.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    changeSet = try object.uuid("changeSet")
    model = try object.uuid("model")
    property = try object.optionalString("property")
  }

  var json: JSONValue {
    var object: JSONObject = [
      "changeSet": .string(changeSet.wireText), "model": .string(model.wireText),
    ]
    if let property { object["property"] = .string(property) }
    return .object(object)
  }
}

extension Conflict {
  /// Reads a conflict from its ``json``. The result gets a new ``id``.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let mine = object["mine"] else { throw .missing(field: "mine") }
    let fragment = try SyncFragment(json: mine)
    let names = fragment.properties.map(\.key) + fragment.operations.map(\.key)
    let change: Change
    switch (fragment.kind, names.count) {
    case (.add, _): change = .addition(fragment.properties)
    case (.change, 1):
      change =
        fragment.properties[names[0]].map { .value($0) }
        ?? .operations(fragment.operations[names[0]])
    default: throw .invalid(field: "mine", problem: "should change one property")
    }
    let reason: Reason
    switch object["reason"] {
    case .string("modified")?: reason = .modified
    case .string("overwritten")?: reason = .overwritten
    case .string("moveLost")?: reason = .moveLost
    case .object(let error)?: reason = .rejected(try WireError(json: .object(error)))
    default: throw .invalid(field: "reason", problem: "should be a known reason, or an error")
    }
    self.init(
      id: .pooled(), model: fragment.uuid, className: fragment.className,
      property: fragment.kind == .add ? nil : names[0], base: object["base"],
      mine: change, theirs: object["theirs"], reason: reason,
      theirAuthor: try object.optionalString("theirAuthor"),
      changeSet: try object.uuid("changeSet"), author: try object.optionalString("author"),
      message: try object.optionalString("message"),
      isAtomic: try object.optionalFlag("atomic"))
    switch object["consequences"] {
    case nil: break
    case .array(let elements)?:
      for element in elements {
        // A consequence has no consequences of its own, so the recursion ends here whatever the text says.
        guard case .object(var part) = element else { throw .notAnObject }
        part["consequences"] = nil
        consequences.append(try Conflict(json: .object(part)))
      }
    default: throw .invalid(field: "consequences", problem: "should be an array")
    }
  }

  /// The conflict as JSON; fields without a value are left out.
  package var json: JSONValue {
    var object: JSONObject = ["mine": fragment.json]
    if let base { object["base"] = base }
    if let theirs { object["theirs"] = theirs }
    switch reason {
    case .rejected(let error): object["reason"] = error.json
    case .modified: object["reason"] = "modified"
    case .overwritten: object["reason"] = "overwritten"
    case .moveLost: object["reason"] = "moveLost"
    }
    if let theirAuthor { object["theirAuthor"] = .string(theirAuthor) }
    object["changeSet"] = .string(changeSet.wireText)
    if let author { object["author"] = .string(author) }
    if let message { object["message"] = .string(message) }
    if isAtomic { object["atomic"] = true }
    if !consequences.isEmpty { object["consequences"] = .array(consequences.map(\.json)) }
    return .object(object)
  }
}
