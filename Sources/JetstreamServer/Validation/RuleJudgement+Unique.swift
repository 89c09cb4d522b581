import Foundation
import Jetstream

/// Judgement of unique values: those of the models of a collection or a dictionary after the fragments.
///
/// Only collections that get a model, or of which a model gets another value, or whose own model comes back, are looked at.
/// Two equal values that were there before, since the server's own app does not ask, stay without an error. A model whose
/// move has no effect stays where it is, with its value.
extension RuleJudgement {
  /// A change of a collection.
  enum Edit {
    case insert(UUID)
    case remove(UUID)
    /// The value as a whole, which is merged.
    case all([UUID])
    /// The value as a whole, of a model that the scope does not have.
    case exactly([UUID])
    /// Another model for the entry of a dictionary, or none.
    case entry(PropertySchema, UUID?)

    var inserted: [UUID] {
      switch self {
      case .insert(let uuid): [uuid]
      case .all(let uuids), .exactly(let uuids): uuids
      case .entry(_, let uuid): uuid.map { [$0] } ?? []
      case .remove: []
      }
    }

    /// The model of an operation, which has no effect if it is a part of a lost move; nil for a value.
    var operand: UUID? {
      switch self {
      case .insert(let uuid), .remove(let uuid): uuid
      case .all, .exactly, .entry: nil
      }
    }
  }

  /// The changes of one collection, each with the index of its fragment.
  typealias Edits = [(at: Int, edit: Edit)]

  /// The models of a collection after the fragments.
  struct Members {
    /// The number of places of each model: a dictionary may hold it more than once.
    private(set) var counts: [UUID: Int] = [:]
    /// The models that were there before.
    let before: Set<UUID>
    /// The fragments that have brought the others.
    private(set) var bringers: [UUID: Int] = [:]
    private var entries: [String: UUID?] = [:]

    /// - Parameter reviver: the fragment that brings back the model of the collection, and with it all that the collection
    ///   had; nil if the scope has the model.
    init(_ uuids: [UUID], broughtBy reviver: Int?) {
      before = reviver == nil ? Set(uuids) : []
      for uuid in uuids {
        counts[uuid, default: 0] += 1
        bringers[uuid] = reviver
      }
    }

    mutating func apply(_ edit: Edit, at: Int, holder: (any HostedModel)?) {
      switch edit {
      case .insert(let uuid): if counts[uuid] == nil { add(uuid, at) }
      case .remove(let uuid): remove(uuid)
      case .all(let uuids):
        // Elements that are not named stay: others may have inserted them in the meantime.
        for uuid in uuids where counts[uuid] == nil { add(uuid, at) }
      case .exactly(let uuids):
        let named = Set(uuids)
        for uuid in counts.keys where !named.contains(uuid) { counts[uuid] = nil }
        for uuid in uuids where counts[uuid] == nil { add(uuid, at) }
      case .entry(let property, let uuid):
        let old = entries[property.wireName] ?? Self.model(of: property, holder)
        if let old { remove(old) }
        if let uuid { add(uuid, at) }
        entries[property.wireName] = .some(uuid)
      }
    }

    private static func model(of entry: PropertySchema, _ holder: (any HostedModel)?) -> UUID? {
      guard case .string(let text)? = holder?.currentJSON(of: entry) else { return nil }
      return UUID(wireText: text)
    }

    private mutating func add(_ uuid: UUID, _ at: Int) {
      counts[uuid, default: 0] += 1
      if !before.contains(uuid) { bringers[uuid] = at }
    }

    private mutating func remove(_ uuid: UUID) {
      guard let count = counts[uuid] else { return }
      counts[uuid] = count > 1 ? count - 1 : nil
    }
  }

  mutating func judgeUnique() {
    let edits = collectionEdits()
    var affected: Set<PropertyKey> = []
    for (collection, edits) in edits {
      let isAffected = edits.contains { entry in
        entry.edit.inserted.contains { check.classSchema(of: $0)?.hasUnique == true }
      }
      if isAffected { affected.insert(collection) }
    }
    for uuid in Set(uniqueWrites.keys.map(\.uuid)) {
      guard let model = check.content.model(uuid) else { continue }
      for holder in check.content.holders(of: model) {
        if let collection = collection(of: holder) { affected.insert(collection) }
      }
    }
    let revivals = revivals(with: edits)
    if affected.isEmpty, revivals.isEmpty { return }
    let lost = lostMoves()
    for uuid in revivals.keys {
      for collection in collections(of: uuid) where !affected.contains(collection) {
        let members = members(of: collection, edits[collection] ?? [], broughtBy: revivals[uuid])
        if members.counts.keys.contains(where: { check.classSchema(of: $0)?.hasUnique == true }) {
          affected.insert(collection)
        }
      }
    }
    for collection in affected {
      let left = edits[collection]?.filter { entry in
        entry.edit.operand.map { !lost.isLost($0, in: collection) } ?? true
      }
      judge(collection, left ?? [], broughtBy: revivals[collection.uuid])
    }
  }

  /// Returns the moves that have no effect, as far as the fragments are accepted by now. What an addition gives to a model
  /// that the scope has counts as it stands.
  private func lostMoves() -> LostMoves {
    var (accepted, rejected): ([SyncFragment], [SyncFragment]) = ([], [])
    for at in check.fragments.indices {
      var fragment = check.fragments[at]
      guard check.errors[at] == nil, let entry = check.accepted[at] else {
        rejected.append(fragment)
        continue
      }
      fragment.properties = entry.properties
      accepted.append(fragment)
    }
    return LostMoves(of: accepted, rejected: rejected, in: check)
  }

  /// Returns the collection or the dictionary that a property is, or is an entry of; nil for any other, and for one that
  /// clients do not have: that of a local property, or of a model that only local properties hold.
  private func collection(of key: PropertyKey) -> PropertyKey? {
    guard let schema = check.content.sharedModel(key.uuid)?.classSchema,
      let property = schema[wireName: key.name], property.isSynced,
      property.isCollection || property.entryKey != nil
    else { return nil }
    return PropertyKey(uuid: key.uuid, name: schema.properties[property.index].wireName)
  }

  private func collectionEdits() -> [PropertyKey: Edits] {
    var result: [PropertyKey: Edits] = [:]
    for isAddition in [true, false] {
      for at in check.fragments.indices
      where check.errors[at] == nil && check.isAppliedAsAddition(at) == isAddition {
        guard let entry = check.accepted[at], let schema = entry.schema else { continue }
        let uuid = check.fragments[at].uuid
        func add(_ edit: Edit, to property: PropertySchema) {
          let name = schema.properties[property.index].wireName
          result[PropertyKey(uuid: uuid, name: name), default: []].append((at, edit))
        }
        for (key, value) in entry.properties {
          guard let property = schema[wireName: key] else { continue }
          if property.isCollection {
            add(wholeEdit(of: property, value, at), to: property)
          } else if property.entryKey != nil {
            add(.entry(property, FragmentValidator.uuids(in: value).first), to: property)
          }
        }
        if isAddition {
          for (property, model) in droppedEntries(at, entry, schema) {
            add(.entry(property, model), to: property)
          }
        }
        for entry in entry.operations {
          guard let property = schema[wireName: entry.key], property.isCollection else { continue }
          for operation in entry.operations {
            switch operation {
            case .insert(let model, _): add(.insert(model), to: property)
            case .remove(let model): add(.remove(model), to: property)
            case .move, .add: break
            }
          }
        }
      }
    }
    return result
  }

  /// Rejects what gives models of a collection a value that another one has: of those that the change set brings or
  /// changes, all if another model had the value before, and otherwise all but the first.
  ///
  /// - Parameter reviver: the fragment that brings back the model of the collection; nil if the scope has the model.
  private mutating func judge(_ collection: PropertyKey, _ edits: Edits, broughtBy reviver: Int?) {
    let members = members(of: collection, edits, broughtBy: reviver)
    struct Value: Hashable {
      let name: String
      let json: JSONValue
    }
    var groups: [Value: [UUID]] = [:]
    for uuid in members.counts.keys {
      guard let schema = check.classSchema(of: uuid), schema.hasUnique else { continue }
      for property in schema.ruled ?? [] where property.rules?.isUnique == true {
        let json = value(of: property, of: uuid)
        if json == .null { continue }
        groups[Value(name: property.wireName, json: json), default: []].append(uuid)
      }
    }
    for (value, models) in groups {
      var writers: [Int] = []
      for uuid in models {
        let write = uniqueWrites[PropertyKey(uuid: uuid, name: value.name)]
        if let at = write ?? members.bringers[uuid] { writers.append(at) }
      }
      writers.sort()
      for at in writers { noteJudged(at) }
      guard models.count > 1 else { continue }
      for at in models.count > writers.count ? writers[...] : writers.dropFirst() {
        reject(
          at, FieldRules.uniqueProblem(with: value.json, called: value.name, in: collection.name))
      }
    }
  }

  /// Returns the models of a collection after the fragments.
  mutating func members(
    of collection: PropertyKey, _ edits: Edits, broughtBy reviver: Int?
  ) -> Members {
    let holder = check.earlierModel(collection.uuid)
    let property = holder?.classSchema.properties.first { $0.wireName == collection.name }
    var members = Members(
      property.flatMap { holder?.models(in: $0) } ?? [], broughtBy: reviver)
    for (at, edit) in edits { members.apply(edit, at: at, holder: holder) }
    effort += members.counts.count
    return members
  }

  /// Returns the value of a unique property after the fragments, as its type writes it.
  private func value(of property: PropertySchema, of uuid: UUID) -> JSONValue {
    let value =
      values[PropertyKey(uuid: uuid, name: property.wireName)]
      ?? check.earlierValue(of: property, of: uuid) ?? property.defaultValue
    return property.normalized(value) ?? value
  }
}
