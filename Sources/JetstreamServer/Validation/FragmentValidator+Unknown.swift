import Foundation
import Jetstream

/// A server's treatment of properties and classes that are not in the scope's schema.
public enum UnknownContent: Sendable, Hashable {
  /// Fragments with unknown properties or classes are rejected: for a server that knows everything that its clients
  /// know.
  case reject
  /// Unknown properties and models of unknown classes are stored, relayed and included in the state that new clients
  /// get. Only their size is checked. So clients can be newer than their server. Changes with which a client calls a
  /// procedure are an exception: those of them that the scope does not know are rejected.
  case keep
}

/// Validation of properties and classes that are not in the scope's schema.
extension FragmentValidator {
  /// The largest number of unknown properties that one model may have.
  static let maxUnknownProperties = 256

  /// Returns a model of the scope that is stored as a fragment only, since its class is unknown.
  func keptModel(_ uuid: UUID) -> SyncFragment? {
    unknown == .keep && unknownModels.contains(uuid) ? content.unknownModel(uuid) : nil
  }

  /// Returns the schema against which a model without an object is checked if a known property refers to it.
  func keptSchema(_ uuid: UUID) -> ClassSchema? {
    guard let kept = keptModel(uuid) else { return nil }
    return content.schema(named: kept.className) ?? standIns[uuid]
  }

  /// Returns the models that a value refers to; nil if the property cannot refer to models. In an unknown property
  /// every UUID counts as a reference.
  func references(in value: JSONValue, at key: String, _ schema: ClassSchema?) -> [UUID]? {
    if let property = schema?[wireName: key] {
      return property.isCollection || property.isReference ? Self.uuids(in: value) : nil
    }
    var result: [UUID] = []
    value.forEachUUID { result.append($0) }
    return result
  }

  /// Finds the models of unknown classes to which known properties refer. They are checked against the schema of the
  /// class that the property expects.
  mutating func findStandIns() {
    var positions: [UUID: [Int]] = [:]
    var open: [(links: [(key: String, uuids: [UUID])], schema: ClassSchema)] = []
    for (at, fragment) in fragments.enumerated() {
      guard let entry = accepted[at] else { continue }
      positions[fragment.uuid, default: []].append(at)
      if let schema = entry.schema { open.append((Self.links(of: fragment), schema)) }
    }
    var next = 0
    while next < open.count {
      let (links, schema) = open[next]
      next += 1
      for (key, uuids) in links {
        guard let expected = schema[wireName: key]?.heldClass else { continue }
        for uuid in uuids where standIns[uuid] == nil {
          let isAdded = additions[uuid].map { accepted[$0]?.schema == nil } ?? false
          let kept = keptModel(uuid)
          guard isAdded || kept.map({ content.schema(named: $0.className) == nil }) ?? false else {
            continue
          }
          let known = content.schema(named: expected)
          guard let standIn = known ?? (expected == ClassSchema.root ? .base : nil) else {
            continue
          }
          standIns[uuid] = standIn
          if let kept { open.append((Self.links(of: kept), standIn)) }
          for at in positions[uuid] ?? [] {
            accepted[at]?.schema = standIn
            open.append((Self.links(of: fragments[at]), standIn))
          }
        }
      }
    }
  }

  /// Returns the models that a fragment may refer to, by property.
  static func links(of fragment: SyncFragment) -> [(key: String, uuids: [UUID])] {
    fragment.properties.map { ($0.key, uuids(in: $0.value)) }
      + fragment.operations.map { ($0.key, inserted(by: $0.operations)) }
  }

  /// Returns a problem if a value refers to a model whose addition was rejected: the client has sent it before it knew
  /// of the rejection.
  func rejectedReference(in value: JSONValue, at key: String) -> Problem? {
    var missing: UUID?
    value.forEachUUID { uuid in
      if memory.wasRejected(uuid), additions[uuid] == nil, content.sharedModel(uuid) == nil {
        missing = uuid
      }
    }
    return missing.map {
      Problem("No such ModelObject '\($0.wireText)' at '\(key)'", missing: $0)
    }
  }

  /// The size of a reference to a model in a value, in quotes and with a comma.
  static let referenceBytes = 39

  /// Returns an error text if a model would have more than ``maxUnknownProperties`` unknown properties after a fragment, and
  /// more than before, or too long a value of one; nil otherwise. An entry of a dictionary that becomes null is gone, and
  /// leaves room for others of the same fragment: that of another one, which may be rejected, does not.
  mutating func sizeProblem(of fragment: SyncFragment, schema: ClassSchema?) -> String? {
    if let problem = lengthProblem(of: fragment, schema) { return problem }
    let limit = Self.maxUnknownProperties
    let values = fragment.properties.filter { schema?[wireName: $0.key] == nil }
    let changed = fragment.operations.map(\.key).filter { schema?[wireName: $0] == nil }
    if values.isEmpty, changed.isEmpty { return nil }
    var (names, countBefore): (Set<String>, Int)
    if let known = changeCounts[fragment.uuid]?.unknownKeys {
      (names, countBefore) = known
    } else {
      names = unknownKeys(of: fragment.uuid, schema)
      countBefore = names.count
    }
    names.formUnion(changed)
    var removedCount = 0
    for (key, value) in values {
      if value == .null, EntryName.mayBeEntry(key) {
        if names.contains(key) { removedCount += 1 }
      } else {
        names.insert(key)
      }
    }
    if names.count - removedCount > max(limit, countBefore) {
      return "More than \(limit) unknown properties"
    }
    changeCounts[fragment.uuid, default: ChangeCount()].unknownKeys = (names, countBefore)
    return nil
  }

  /// Returns the names of the properties that a model of the scope has and its class does not.
  private func unknownKeys(of uuid: UUID, _ schema: ClassSchema?) -> Set<String> {
    var keys = Set(keptModel(uuid)?.properties.map(\.key) ?? [])
    if let model = content.model(uuid) { keys.formUnion(content.unknownKeys(of: model)) }
    return schema == nil ? keys : keys.filter { schema?[wireName: $0] == nil }
  }

  /// Returns an error text if operations would make the value of an unknown property longer than one that a change set can
  /// bring; nil otherwise. They append to what is kept, and would make it longer with each change set.
  private mutating func lengthProblem(of fragment: SyncFragment, _ schema: ClassSchema?) -> String?
  {
    guard let most = unknownValueBytes, !fragment.operations.isEmpty else { return nil }
    for entry in fragment.operations where schema?[wireName: entry.key] == nil {
      let inserted = Self.inserted(by: entry.operations)
      if inserted.isEmpty { continue }
      let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
      let value = content.unknownValue(name)
      let room = (most - (value?.roughSize ?? 0)) / Self.referenceBytes
      // Insertions of the change set into other properties of the model count as well: a total is enough.
      let earlier = changeCounts[fragment.uuid]?.insertions ?? 0
      var count = inserted.count
      if earlier + count > room {
        count = Set(inserted).subtracting(value.map { Self.uuids(in: $0) } ?? []).count
        if count > 0, earlier + count > room { return "More than \(most) bytes at '\(entry.key)'" }
      }
      changeCounts[fragment.uuid, default: ChangeCount()].insertions += count
    }
    return nil
  }
}
