import Foundation
import Jetstream

/// Change sets as the constraints of procedures judge them.
extension ScopeOrder {
  /// Returns fragments as constraints judge them: with the values that the properties have which they change, and with the
  /// classes of the models, whatever their client says. An addition of a model that the scope has is the change that it
  /// makes. The fragments are in the order in which they are applied. Operations that put no model into a collection, and take
  /// none out, are left out beside others that do. Cost: O(n) in the fragments and in the collections that they change.
  ///
  /// - Parameter asOperations: true for a client that sends operations, and says what it knew of a model that it adds again.
  func changes(of fragments: [SyncFragment], asOperations: Bool) -> ChangeSet {
    var known: [PropertyKey: JSONValue] = [:]
    var members = PassingMembers()
    let changes = fragments.filter { $0.kind == .change }
    var fragments = fragments.filter { $0.kind == .add }.compactMap { fragment in
      guard let model = content.sharedModel(fragment.uuid) else { return fragment }
      var change = fragment
      if asOperations {
        nameKnownEntries(in: &change, model.classSchema, known: fragment.bases)
        change = addedAgain(change, model, known: fragment.bases)
      }
      return leavingOut(&known, &members, from: change, of: model)
    }
    let additionCount = fragments.count
    fragments += changes
    var values: [UUID: JSONObject] = [:]
    var added: [UUID: String] = [:]
    for fragment in fragments where fragment.kind == .add {
      added[fragment.uuid] = fragment.className
      guard let schema = content.schema(named: fragment.className) else { continue }
      for (key, value) in fragment.properties where schema[wireName: key]?.isCollection == true {
        members.write(value, to: PropertyKey(uuid: fragment.uuid, name: key))
      }
    }
    for at in fragments.indices where fragments[at].kind == .change {
      let fragment = fragments[at]
      guard let model = content.sharedModel(fragment.uuid) else {
        let name = added[fragment.uuid] ?? content.unknownModel(fragment.uuid)?.className
        if let name { fragments[at].className = name }
        if let schema = added[fragment.uuid].flatMap({ content.schema(named: $0) }) {
          let gone = departed(fragment.uuid)
          members.pass(&fragments[at], of: schema) { gone?.currentJSON(of: $0) ?? .array([]) }
        }
        continue
      }
      if model.wireClassName != fragment.className {
        fragments[at].className = model.wireClassName
      }
      if at >= additionCount {
        members.pass(&fragments[at], of: model.classSchema) { model.currentJSON(of: $0) }
      }
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        guard let property = model.classSchema[wireName: key],
          values[fragment.uuid]?[key] == nil
        else { continue }
        values[fragment.uuid, default: [:]][key] = model.currentJSON(of: property)
      }
    }
    return ChangeSet(fragments: fragments, bases: values)
  }

  /// Returns a change without the values that the model has already; nil if nothing is left.
  ///
  /// - Parameters:
  ///   - known: the values of models that were read.
  ///   - members: the models in collections. Those of collections that the change writes are noted.
  private func leavingOut(
    _ known: inout [PropertyKey: JSONValue], _ members: inout PassingMembers,
    from change: SyncFragment, of model: any HostedModel
  ) -> SyncFragment? {
    var result = change
    (result.kind, result.className, result.bases) = (.change, model.wireClassName, [:])
    func current(_ key: String, _ property: PropertySchema) -> JSONValue {
      let name = PropertyKey(uuid: change.uuid, name: key)
      if let value = known[name] { return value }
      let value = model.currentJSON(of: property)
      known[name] = value
      return value
    }
    result.properties.removeAll { key, value in
      guard let property = model.classSchema[wireName: key] else { return false }
      if property.areSame(value, current(key, property)) { return true }
      if property.isCollection {
        members.write(value, to: PropertyKey(uuid: change.uuid, name: key))
      }
      return false
    }
    for entry in change.operations {
      guard let property = model.classSchema[wireName: entry.key], property.isCollection else {
        continue
      }
      result.operations[entry.key] = members.apply(
        entry.operations, to: PropertyKey(uuid: change.uuid, name: entry.key),
        holding: current(entry.key, property))
    }
    return result.properties.isEmpty && result.operations.isEmpty ? nil : result
  }
}

/// The models in collections, while the fragments of a change set are gone through in the order in which they are applied.
private struct PassingMembers {
  private var members: [PropertyKey: Set<UUID>] = [:]

  /// Notes that a collection is written as a whole.
  mutating func write(_ value: JSONValue, to name: PropertyKey) {
    members[name] = Set(FragmentValidator.uuids(in: value))
  }

  /// Notes what operations do to a collection.
  ///
  /// - Parameter value: the collection, if nothing was noted of it before.
  /// - Returns: the operations that put a model into the collection, or take one out.
  mutating func apply(
    _ operations: [PropertyOperation], to name: PropertyKey,
    holding value: @autoclosure () -> JSONValue
  ) -> [PropertyOperation] {
    var held = members.removeValue(forKey: name) ?? Set(FragmentValidator.uuids(in: value()))
    let effective = operations.filter { operation in
      switch operation {
      case .insert(let uuid, _): held.insert(uuid).inserted
      case .remove(let uuid): held.remove(uuid) != nil
      case .move, .add: false
      }
    }
    members[name] = held
    return effective
  }

  /// Notes what a change does to the collections of a model, and leaves the operations out of it that put no model in, and
  /// take none out. Where none does, all stay: another client may have done the same.
  ///
  /// - Parameter value: returns a collection of which nothing was noted before.
  mutating func pass(
    _ change: inout SyncFragment, of schema: ClassSchema,
    holding value: (PropertySchema) -> JSONValue
  ) {
    for (key, value) in change.properties where schema[wireName: key]?.isCollection == true {
      write(value, to: PropertyKey(uuid: change.uuid, name: key))
    }
    for entry in change.operations {
      guard let property = schema[wireName: entry.key], property.isCollection else { continue }
      let name = PropertyKey(uuid: change.uuid, name: entry.key)
      let effective = apply(entry.operations, to: name, holding: value(property))
      if !effective.isEmpty { change.operations[entry.key] = effective }
    }
  }
}
