import Foundation

/// A change of the root's UUID, applied to everything that names the root in JSON: pending change sets, the values
/// underneath them, conflicts and undo histories. The root takes the server's UUID when the first full state
/// arrives.
package struct RootRenaming {
  package let old: UUID
  package let new: UUID
  private let scope: Scope?
  private let newText: JSONValue

  /// - Parameter scope: the scope whose classes say which values name models; without one, every UUID in a value does.
  package init(from old: UUID, to new: UUID, in scope: Scope? = nil) {
    (self.old, self.new, self.scope) = (old, new, scope)
    newText = .string(new.wireText)
  }

  func callAsFunction(_ uuid: UUID) -> UUID { uuid == old ? new : uuid }

  /// Renames the root where the value of a reference, a collection or an unknown property names it.
  func callAsFunction(_ value: JSONValue) -> JSONValue {
    switch value {
    case .string(let text): UUID(wireText: text) == old ? newText : value
    case .array(let elements): .array(elements.map { self($0) })
    case .object(let object): .object(JSONObject(object.map { ($0, self($1)) }))
    default: value
    }
  }

  /// Renames the root in the values of a model of the given class; plain values stay as they are.
  func callAsFunction(_ values: JSONObject, of schema: ModelSchema?) -> JSONObject {
    var result = values
    for (key, value) in values where schema?[wireName: key]?.namesModels != false {
      result[key] = self(value)
    }
    return result
  }

  func callAsFunction(_ fragment: SyncFragment) -> SyncFragment {
    let schema = scope?.schema(of: fragment)
    var result = fragment
    result.uuid = self(fragment.uuid)
    result.properties = self(fragment.properties, of: schema)
    result.operations = fragment.operations.renaming(old, to: new)
    result.bases = self(fragment.bases, of: schema)
    return result
  }

  package func callAsFunction(_ set: ChangeSet) -> ChangeSet {
    set.with(set.fragments.map { self($0) }, undo: set.undo.map { self($0) })
  }
}

extension Scope {
  /// Gives the root another UUID, that of the server.
  func renameRoot(to uuid: UUID) {
    guard let old = tree.renameRoot(to: uuid) else { return }
    let renaming = RootRenaming(from: old, to: uuid, in: self)
    interval.departed.states = interval.departed.states.mapValues { renaming($0) }
    interval.throttle.rename(old, to: uuid)
    conflicts.rename(renaming)
    renameWeakReferences(renaming)
    if let root { tree.observers.forEach { $0.modelRenamed(root, from: old) } }
  }

  /// Renames the root in weak references that hold only its UUID, as those read from a log do. They lead to the
  /// same model as before. Cost: O(n) in the models.
  func renameWeakReferences(_ renaming: RootRenaming) {
    let old = JSONValue.string(renaming.old.wireText)
    tree.writeRemotely {
      for model in models {
        for property in model.schema.properties where property.isWeakReference {
          guard model.json(of: property) == old else { continue }
          let new = JSONValue.string(renaming.new.wireText)
          _ = property.access.assign(new, to: model, at: property.offset)
        }
      }
    }
  }
}
