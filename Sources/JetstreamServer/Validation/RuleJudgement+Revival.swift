import Foundation
import Jetstream

/// Models that come back with the fragments, as far as unique values are concerned.
///
/// A model that has left comes back when a model of the scope is to hold it, with or without an addition of its own, and it
/// brings all that it has held. The others may have got other values meanwhile, or get them with the same change set. So a
/// collection that comes back is judged as if the fragment that brings it had inserted each of its models.
extension RuleJudgement {
  /// Returns the models that come back, each with the index of the fragment that brings it. Cost: O(n) in the models that
  /// come back and the models that the fragments name.
  mutating func revivals(with edits: [PropertyKey: Edits]) -> [UUID: Int] {
    var result: [UUID: Int] = [:]
    var open: [(model: any HostedModel, at: Int)] = []
    // The references of models that may come back, as far as fragments write them.
    var written: Set<PropertyKey> = []
    func come(_ uuid: UUID, with at: Int) {
      guard result[uuid] == nil, let model = check.memory.departed(uuid) else { return }
      result[uuid] = at
      open.append((model, at))
    }
    for at in check.fragments.indices where check.errors[at] == nil {
      guard let entry = check.accepted[at], let schema = entry.schema else { continue }
      let mayComeBack = check.memory.departed(check.fragments[at].uuid) != nil
      for member in entry.properties.members {
        // No rule is about a model that only an unknown property names.
        guard let property = schema[wireName: member.key],
          property.isCollection || property.isReference
        else { continue }
        for uuid in FragmentValidator.uuids(in: member.value) { come(uuid, with: at) }
        if mayComeBack {
          written.insert(PropertyKey(uuid: check.fragments[at].uuid, name: member.key))
        }
      }
      for entry in entry.operations {
        for uuid in FragmentValidator.inserted(by: entry.operations) { come(uuid, with: at) }
      }
    }
    // A model that several fragments bring comes with the first of them.
    open.reverse()
    while let (model, at) = open.popLast() {
      for collection in collections(of: model.uuid) {
        let members = members(of: collection, edits[collection] ?? [], broughtBy: at)
        for uuid in members.counts.keys { come(uuid, with: at) }
      }
      for property in model.classSchema.properties where property.kind == .reference {
        // The fragment that writes it was looked at above.
        if written.contains(PropertyKey(uuid: model.uuid, name: property.wireName)) { continue }
        for uuid in FragmentValidator.uuids(in: model.currentJSON(of: property)) {
          come(uuid, with: at)
        }
      }
    }
    return result
  }

  /// Returns the collections and the dictionaries of a model.
  func collections(of uuid: UUID) -> [PropertyKey] {
    (check.classSchema(of: uuid)?.properties ?? [])
      .filter { $0.isSynced && ($0.isCollection || $0.kind == .dictionary) }
      .map { PropertyKey(uuid: uuid, name: $0.wireName) }
  }

  /// Returns the edit of a collection of which a fragment has the whole value. It is put back or merged exactly as in
  /// ``ScopeOrder/merge(_:of:into:by:)``.
  func wholeEdit(of property: PropertySchema, _ value: JSONValue, _ at: Int) -> Edit {
    let fragment = check.fragments[at]
    guard fragment.kind == .add, check.content.sharedModel(fragment.uuid) == nil else {
      return .all(FragmentValidator.uuids(in: value))
    }
    guard let base = fragment.bases[property.wireName] else {
      return .exactly(FragmentValidator.uuids(in: value))
    }
    return .exactly(
      FragmentValidator.uuids(in: check.merged(value, base: base, of: property, at)))
  }

  /// Returns the entries that the addition of a model which comes back leaves out, with the models that they have then:
  /// none, but for those of which others have changed what the client knew.
  func droppedEntries(
    _ at: Int, _ entry: FragmentValidator.Accepted, _ schema: ClassSchema
  ) -> [(property: PropertySchema, model: UUID?)] {
    guard schema.hasDictionaries, let model = check.memory.departed(check.fragments[at].uuid)
    else { return [] }
    let known = check.takesOperations ? check.fragments[at].bases : [:]
    return model.currentProperties().members.compactMap { member in
      guard entry.properties[member.key] == nil,
        let property = schema[wireName: member.key], property.entryKey != nil,
        known.isEmpty || known[member.key] != nil
      else { return nil }
      let left = known[member.key].map { property.putBack(.null, onto: member.value, base: $0) }
      return (property, left.flatMap { FragmentValidator.uuids(in: $0).first })
    }
  }
}
