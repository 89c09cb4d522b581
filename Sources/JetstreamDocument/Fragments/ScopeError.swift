import Foundation

/// The reason why a scope refused something.
public enum ScopeError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A model of one scope was put into the tree of another.
  case modelInTwoScopes(className: String, model: UUID, scope: String, other: String)
  /// Two models of one scope have the same UUID.
  case duplicateUUID(className: String, model: UUID)
  /// A scope that has a root was given another one.
  case rootIsSet(scope: String)
  /// A fragment names a class that the scope does not know.
  case unknownClass(className: String, model: UUID)
  /// A fragment adds a model that exists as an object of another class.
  case classMismatch(model: UUID, className: String, other: String)
  /// A fragment changes a model that is not in the scope.
  case unknownModel(className: String, model: UUID)
  /// A fragment names a property that the class does not have.
  case unknownProperty(className: String, model: UUID, property: String)
  /// A value does not fit its property, which expects the type that is named.
  case invalidValue(className: String, model: UUID, property: String, expected: String)
  /// A value refers to a model that does not exist.
  case unknownReference(className: String, model: UUID, property: String, missing: String)
  /// A fragment adds a model that nothing refers to.
  case noParent(className: String, model: UUID)
  /// A full state does not begin with its root, or the scope has no root to take it.
  case invalidState(problem: String)

  /// The problem in words, with the object and the property.
  public var description: String {
    switch self {
    case .modelInTwoScopes(let name, let uuid, let own, let other):
      "\(name) \(uuid.wireText) belongs to scope \(own) and cannot be part of scope \(other)."
    case .duplicateUUID(let name, let uuid):
      "\(name) \(uuid.wireText): another model of the scope has this UUID."
    case .rootIsSet(let scope): "Scope \(scope) has a root already."
    case .unknownClass(let name, let uuid): "No such class type '\(name)' (\(uuid.wireText))"
    case .classMismatch(let uuid, let own, let other):
      "ModelObject '\(uuid.wireText)' is a \(own), not a \(other)"
    case .unknownModel(let name, let uuid): "\(name) '\(uuid.wireText)' not found"
    case .unknownProperty(let name, let uuid, let key):
      "No property at '\(key)' of \(name) '\(uuid.wireText)'"
    case .invalidValue(let name, let uuid, let key, let type):
      "Not valid type at '\(key)' of \(name) '\(uuid.wireText)', should be \(type)"
    case .unknownReference(let name, let uuid, let key, let missing):
      "No such ModelObject '\(missing)' at '\(key)' of \(name) '\(uuid.wireText)'"
    case .noParent(let name, let uuid):
      "No parents, parent sync fragment failed: \(name) '\(uuid.wireText)'"
    case .invalidState(let problem): "The full state cannot be applied: \(problem)"
    }
  }
}
