import Foundation

/// Why a scope refused something.
public enum ScopeError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A model of one scope was put into the tree of another: class, UUID, its scope, the other one.
  case modelInTwoScopes(String, UUID, String, String)
  /// Two models of one scope have the same UUID: class and UUID.
  case duplicateUUID(String, UUID)
  /// A scope that has a root was given another one: the scope's name.
  case rootIsSet(String)
  /// A fragment names a class that the scope does not know.
  case unknownClass(String, UUID)
  /// A fragment adds a model that exists as an object of another class: UUID, its class, the other.
  case classMismatch(UUID, String, String)
  /// A fragment changes a model that is not in the scope: class and UUID.
  case unknownModel(String, UUID)
  /// A fragment names a property that the class does not have: class, UUID, property.
  case unknownProperty(String, UUID, String)
  /// A value does not fit its property: class, UUID, property, what it should be.
  case invalidValue(String, UUID, String, String)
  /// A value refers to a model that does not exist: class, UUID, property, the missing UUID.
  case unknownReference(String, UUID, String, String)
  /// A fragment adds a model that nothing refers to: class and UUID.
  case noParent(String, UUID)
  /// A full state does not begin with its root, or the scope has no root to take it.
  case invalidState(String)

  /// What is wrong, with object and property.
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
