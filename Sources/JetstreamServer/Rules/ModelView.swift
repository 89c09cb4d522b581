import Foundation
import Jetstream

/// A model as it is, or as a change set would leave it, for a rule to look at.
///
/// ```swift
/// rules.update(\Message.text, "Only its author edits a message") { session, old, new in
///   old.author == session.principal?.id
/// }
/// ```
///
/// It has the properties of its class; those that hold models lead to further views. It works for scopes of objects and for
/// those that are hosted from a schema. It is of use only while the closure runs that was given it. Cost: that of decoding
/// a value, for each property that is read.
@dynamicMemberLookup
public struct ModelView<Model: ModelObject> {
  let scope: TentativeScope
  let model: TentativeModel
  /// True for the model as it would be.
  let isAfter: Bool

  /// The UUID of the model.
  public var uuid: UUID { model.uuid }

  // Types that hold models are not Sendable: they must not be taken for plain values.
  /// The value of a property without models.
  public subscript<Value: PropertyValue & Sendable>(
    dynamicMember keyPath: KeyPath<Model, Value>
  ) -> Value {
    let declared = Model.property(at: keyPath)
    if let property = property(declared) {
      let json = isAfter ? model.newValue(of: property) : model.oldValue(of: property)
      return Value._decode(json, or: { misread(declared) })
    }
    return misread(declared)
  }

  /// The model that a property holds; nil if it holds none, or one of another class.
  public subscript<Child: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, Child?>
  ) -> ModelView<Child>? {
    let found: [ModelView<Child>] = models(at: keyPath)
    return found.first
  }

  /// The models of a collection, in order. Cost: O(n).
  public subscript<Child: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, ModelArray<Child>>
  ) -> [ModelView<Child>] {
    models(at: keyPath)
  }

  /// The models of a dictionary, by the text of their keys on the wire. Cost: O(n log n).
  public subscript<Key, Child: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, ModelDictionary<Key, Child>>
  ) -> [String: ModelView<Child>] {
    let declared = Model.property(at: keyPath)
    guard let property = property(declared) else {
      noteMisreading(of: declared)
      return [:]
    }
    var result: [String: ModelView<Child>] = [:]
    for (key, uuid) in model.entries(of: property, after: isAfter) {
      result[key] = scope[uuid].flatMap { $0.view(in: scope, isAfter: isAfter) }
    }
    return result
  }

  /// Returns the root of the scope; nil if it is of another class.
  public func root<Root: ModelObject>(as _: Root.Type) -> ModelView<Root>? {
    scope.root.flatMap { $0.view(in: scope, isAfter: isAfter) }
  }

  /// Returns the models of a class that hold this one before the change set, each once; none for a model that comes with it.
  public func holders<Holder: ModelObject>(as _: Holder.Type) -> [ModelView<Holder>] {
    var seen: Set<UUID> = []
    return scope.holders(of: model).filter { seen.insert($0.uuid).inserted }.compactMap {
      scope[$0.uuid].flatMap { $0.view(in: scope, isAfter: isAfter) }
    }
  }

  // MARK: Inside

  private func models<Child: ModelObject>(
    at keyPath: PartialKeyPath<Model>
  ) -> [ModelView<Child>] {
    let declared = Model.property(at: keyPath)
    guard let property = property(declared) else {
      noteMisreading(of: declared)
      return []
    }
    return model.models(in: property, after: isAfter).compactMap { uuid in
      scope[uuid].flatMap { $0.view(in: scope, isAfter: isAfter) }
    }
  }

  /// Returns the property as the scope's schema has it; nil if that lacks it, or has it as one of another kind, such as a
  /// reference as a text. Local properties are not in fragments, nor here.
  private func property(_ declared: ModelSchema.Property) -> PropertySchema? {
    let schema = model.schema
    // Mostly both schemas are one.
    if declared.index < schema.properties.count,
      schema.properties[declared.index] === declared.data
    {
      return declared.data
    }
    // A dictionary is not found by its name alone.
    let found =
      schema.index(ofDeclared: declared.wireName).map { schema.properties[$0] }
      ?? schema.properties.first { $0.wireName == declared.wireName }
    return found?.kind == declared.data.kind ? found : nil
  }

  /// Notes that a property was read which the scope does not have, or has with another type: the change set is not to be
  /// accepted on such grounds.
  private func noteMisreading(of declared: ModelSchema.Property) {
    scope.misreading =
      scope.misreading
      ?? "'\(declared.wireName)' of a \(model.schema.wireName) is not \(declared.type)"
  }

  /// Returns the default of a property that cannot be read, and notes that.
  private func misread<Value: PropertyValue>(_ declared: ModelSchema.Property) -> Value {
    noteMisreading(of: declared)
    guard let value = Value._decode(declared.defaultValue) else {
      preconditionFailure("\(declared.name) holds models, and a view has no value of it but views.")
    }
    return value
  }
}

extension TentativeModel {
  /// Returns a view of the model; nil if it is not of the view's class.
  func view<Model: ModelObject>(in scope: TentativeScope, isAfter: Bool) -> ModelView<Model>? {
    guard schema.isKind(of: ModelSchema.of(Model.self).wireName) else { return nil }
    return ModelView(scope: scope, model: self, isAfter: isAfter)
  }
}
