import Foundation
import Jetstream

/// The broadcast of an applied submission to other sessions.
extension ScopeOrder {
  /// Returns the applied fragments with the server's values, for the other sessions. Models that the submission brought
  /// back without adding them come first.
  ///
  /// A value that a fragment names is told as it is after the whole submission. Operations of other fragments that it
  /// contains already are left out: they would count twice.
  ///
  /// - Parameter asValues: true to name the resulting values of properties instead of the operations on them.
  func broadcast(of effective: [SyncFragment], asValues: Bool = false) -> [SyncFragment] {
    var result: [SyncFragment] = []
    if !passage.arrived.isEmpty || !passage.returned.isEmpty {
      let (models, unknown) = broughtBack(by: effective)
      result = models.map(addition) + unknown
    }
    var told = asValues ? nil : ToldValues(of: effective, broughtBack: result)
    result.reserveCapacity(result.count + effective.count)
    for at in effective.indices {
      if let model = content.sharedModel(effective[at].uuid) {
        if let fragment = toldFragment(
          at, of: effective, model, asValues: asValues, after: &told)
        {
          result.append(fragment)
        }
      } else if unknown == .keep, let kept = currentValues(ofUnknown: effective[at]) {
        result.append(kept)
      }
    }
    return result
  }

  /// Returns an applied fragment with the server's values; nil if nothing of it is left to be told.
  ///
  /// - Parameters:
  ///   - told: what the fragments in front of it tell; nil if all operations can be told.
  ///   - allAreThere: true if the scope is known to have all models that the fragments insert.
  func toldFragment(
    _ at: Int, of effective: [SyncFragment], _ model: any HostedModel, asValues: Bool = false,
    after told: inout ToldValues?, allAreThere: Bool = false
  ) -> SyncFragment? {
    var fragment = SyncFragment(
      effective[at].kind, uuid: effective[at].uuid, className: model.wireClassName,
      properties: currentValues(of: effective[at], in: model, asValues: asValues),
      operations: asValues ? [:] : effective[at].operations)
    if told?.concerns(fragment.uuid) == true {
      let staysAsItIs = settle(&fragment, of: model, told!, allAreThere)
      let isEmpty = fragment.properties.isEmpty && fragment.operations.isEmpty
      if !staysAsItIs, isEmpty, fragment.kind == .change { return nil }
      told!.note(fragment, at)
    }
    return fragment
  }

  /// Leaves out the operations on properties whose resulting values are told, and tells the resulting value in place of
  /// operations that a client cannot repeat.
  ///
  /// - Returns: true if the fragment stays as it is.
  private func settle(
    _ fragment: inout SyncFragment, of model: any HostedModel, _ told: ToldValues,
    _ allAreThere: Bool
  ) -> Bool {
    let uuid = fragment.uuid
    let staysAsItIs = fragment.operations.allSatisfy {
      !told.includes($0.key, of: uuid)
        && (allAreThere || canBeRepeated($0, on: model.classSchema))
    }
    if staysAsItIs { return true }
    var left = PropertyOperations()
    for entry in fragment.operations where !told.includes(entry.key, of: uuid) {
      if canBeRepeated(entry, on: model.classSchema) {
        left.append(newKey: entry.key, entry.operations)
      } else {
        fragment.properties[entry.key] = currentValue(
          of: model.classSchema[wireName: entry.key], named: entry.key, in: model)
      }
    }
    fragment.operations = left
    return false
  }

  /// Returns false for operations that insert a model which has left again with the same submission: clients are not told
  /// of it, and could not find the places behind it.
  private func canBeRepeated(
    _ entry: PropertyOperations.Entry, on schema: ClassSchema
  ) -> Bool {
    // An unknown property has UUIDs of any models.
    guard let property = schema[wireName: entry.key], property.isCollection else { return true }
    return entry.operations.allSatisfy { operation in
      guard case .insert(let uuid, _) = operation else { return true }
      return content.sharedModel(uuid) != nil || content.unknownModel(uuid) != nil
    }
  }

  /// Returns the models that the submission has brought back without adding them, in the order of their UUIDs: those
  /// with objects, and those of unknown classes.
  func broughtBack(
    by effective: [SyncFragment]
  ) -> (models: [any HostedModel], unknown: [SyncFragment]) {
    // Mostly models come in the order of their additions: as long as they do, none has to be looked for.
    var next = 0
    let rest = passage.arrived.drop { model in
      while next < effective.count, effective[next].kind != .add { next += 1 }
      guard next < effective.count, effective[next].uuid == model.uuid else { return false }
      next += 1
      return true
    }
    if rest.isEmpty, passage.returned.isEmpty { return ([], []) }
    var added = UUIDList(capacity: effective.count)
    for at in effective.indices where effective[at].kind == .add {
      added.insert(effective[at].uuid)
    }
    let models =
      rest
      .filter { !added.contains($0.uuid) && content.sharedModel($0.uuid) === $0 }
      .sorted(byUUID: \.uuid)
    let returned = passage.returned.filter { !added.contains($0) }.sorted()
    return (models, returned.compactMap { content.unknownModel($0) })
  }

  /// Returns a fragment with the current values of a model of an unknown class; nil if the scope does not have it.
  func currentValues(ofUnknown fragment: SyncFragment) -> SyncFragment? {
    guard let kept = content.unknownModel(fragment.uuid) else { return nil }
    let keys = fragment.properties.map(\.key) + fragment.operations.map(\.key)
    let properties =
      fragment.kind == .add
      ? kept.properties
      : JSONObject(keys.compactMap { key in kept.properties[key].map { (key, $0) } })
    return SyncFragment(
      fragment.kind, uuid: kept.uuid, className: kept.className, properties: properties)
  }

  /// Returns the values that a model has now of the properties that a fragment names; all of them for an addition.
  func currentValues(
    of fragment: SyncFragment, in model: any HostedModel, asValues: Bool = false
  ) -> JSONObject {
    let schema = model.classSchema
    if fragment.kind == .add {
      var properties = model.currentProperties()
      guard schema.hasDictionaries else { return properties }
      // Clients that have the model are to learn of the entries that it has lost.
      for (key, value) in fragment.properties where value == .null {
        guard let entry = schema[wireName: key], entry.entryKey != nil else { continue }
        properties[entry.wireName] = properties[entry.wireName] ?? .null
      }
      return properties
    }
    var result = JSONObject()
    result.reserveCapacity(fragment.properties.count)
    for member in fragment.properties.members {
      let property = schema[wireName: member.key]
      guard let value = currentValue(of: property, named: member.key, in: model) else { continue }
      // Of an entry, the submitter may have written the key in another form.
      result.append(newKey: property?.wireName ?? member.key, value)
    }
    if asValues {
      for entry in fragment.operations {
        result[entry.key] = currentValue(
          of: schema[wireName: entry.key], named: entry.key, in: model)
      }
    }
    return result
  }

  private func currentValue(
    of property: PropertySchema?, named key: String, in model: any HostedModel
  ) -> JSONValue? {
    property.map { model.currentJSON(of: $0) } ?? model.unknownValue(key)
  }

  func addition(of model: any HostedModel) -> SyncFragment {
    SyncFragment(
      .add, uuid: model.uuid, className: model.wireClassName,
      properties: model.currentProperties())
  }
}

/// The properties of which a change set tells the resulting values, as far as it has operations on their models.
struct ToldValues {
  /// The position of the last fragment that has operations, by model.
  private var lastEdits: [UUID: Int] = [:]
  /// The model of them if there is one alone.
  private var onlyModel: UUID?
  /// The models that are added: all of their values are told.
  private var models: Set<UUID> = []
  private var properties: Set<PropertyKey> = []

  /// Returns nil for fragments of which all operations can be told. Cost: O(n) in their number; mostly there are few with
  /// operations.
  init?(of fragments: [SyncFragment], broughtBack: [SyncFragment]) {
    // One fragment names a property once. It cannot take out a model that it has put in but with a removal.
    if fragments.count == 1, !Self.insertAndRemove(fragments) { return nil }
    for at in fragments.indices where !fragments[at].operations.isEmpty {
      lastEdits[fragments[at].uuid] = at
    }
    if lastEdits.isEmpty { return nil }
    if lastEdits.count == 1 { onlyModel = lastEdits.first?.key }
    for at in fragments.indices where fragments[at].kind == .add && concerns(fragments[at].uuid) {
      models.insert(fragments[at].uuid)
    }
    for addition in broughtBack where concerns(addition.uuid) { models.insert(addition.uuid) }
  }

  /// Returns true if fragments insert models and remove some: what they insert need not be there when all are applied.
  static func insertAndRemove(_ fragments: some Sequence<SyncFragment>) -> Bool {
    var (inserts, removes) = (false, false)
    for fragment in fragments {
      for entry in fragment.operations {
        for operation in entry.operations {
          switch operation {
          case .insert: inserts = true
          case .remove: removes = true
          default: continue
          }
          if inserts && removes { return true }
        }
      }
    }
    return false
  }

  /// Returns true if some fragment has operations on a model.
  func concerns(_ model: UUID) -> Bool {
    if let onlyModel { onlyModel == model } else { lastEdits[model] != nil }
  }

  /// Returns true if the resulting value of a property is told, as far as the fragments were noted.
  func includes(_ key: String, of model: UUID) -> Bool {
    if !models.isEmpty, models.contains(model) { return true }
    return !properties.isEmpty && properties.contains(PropertyKey(uuid: model, name: key))
  }

  /// Notes the values of the fragment at a position, if others behind it have operations on its model.
  mutating func note(_ fragment: SyncFragment, _ at: Int) {
    guard lastEdits[fragment.uuid]! > at else { return }
    for member in fragment.properties.members {
      properties.insert(PropertyKey(uuid: fragment.uuid, name: member.key))
    }
  }
}
