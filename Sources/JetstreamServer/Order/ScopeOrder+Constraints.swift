import Foundation
import Jetstream

/// Change sets as the constraints of procedures judge them.
extension ScopeOrder {
  /// Returns fragments as constraints judge them: with the values that the properties have which they change, and with the
  /// classes of the models, whatever their client says. An addition of a model that the scope has is the change that it
  /// makes.
  ///
  /// - Parameter asOperations: true for a client that sends operations, and says what it knew of a model that it adds again.
  func changes(of fragments: [SyncFragment], asOperations: Bool) -> ChangeSet {
    var known: [PropertyKey: JSONValue] = [:]
    var fragments = fragments.compactMap { fragment in
      guard fragment.kind == .add, let model = content.sharedModel(fragment.uuid) else {
        return fragment
      }
      var change = fragment
      if asOperations {
        nameKnownEntries(in: &change, model.classSchema, known: fragment.bases)
        change = addedAgain(change, model, known: fragment.bases)
      }
      return leavingOut(&known, from: change, of: model)
    }
    var values: [UUID: JSONObject] = [:]
    var added: [UUID: String] = [:]
    for fragment in fragments where fragment.kind == .add {
      added[fragment.uuid] = fragment.className
    }
    for at in fragments.indices where fragments[at].kind == .change {
      let fragment = fragments[at]
      guard let model = content.sharedModel(fragment.uuid) else {
        let name = added[fragment.uuid] ?? content.unknownModel(fragment.uuid)?.className
        if let name { fragments[at].className = name }
        continue
      }
      if model.wireClassName != fragment.className {
        fragments[at].className = model.wireClassName
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
  /// - Parameter known: the values of models that were read.
  private func leavingOut(
    _ known: inout [PropertyKey: JSONValue], from change: SyncFragment, of model: any HostedModel
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
    for (key, value) in change.properties {
      guard let property = model.classSchema[wireName: key] else { continue }
      if property.areSame(value, current(key, property)) { result.properties[key] = nil }
    }
    for entry in change.operations {
      guard let property = model.classSchema[wireName: entry.key], property.isCollection else {
        continue
      }
      let held = Set(FragmentValidator.uuids(in: current(entry.key, property)))
      let new = entry.operations.filter { $0.model.map { !held.contains($0) } ?? true }
      result.operations[entry.key] = new
    }
    return result.properties.isEmpty && result.operations.isEmpty ? nil : result
  }
}
