import Foundation
import Jetstream

/// What a server does with properties and classes that its scope does not know.
public enum UnknownContent: Sendable, Hashable {
  /// Fragments with such content are rejected: for a server that knows all that its clients know.
  case reject
  /// It is kept, stored, relayed and part of the state that new clients get, unchecked but for its
  /// size. So clients can be newer than their server.
  case keep
}

/// Judging what the scope does not know.
extension FragmentValidator {
  /// How many unknown properties one model may have.
  static let maxUnknownProperties = 256

  /// A model of the scope that no object stands for.
  func keptModel(_ uuid: UUID) -> SyncFragment? {
    unknown == .keep && unknownModels.contains(uuid) ? scope.unknownModel(uuid) : nil
  }

  /// What such a model would be, if a known property referred to it.
  func keptSchema(_ uuid: UUID) -> ModelSchema? {
    guard let kept = keptModel(uuid) else { return nil }
    return scope.schema(named: kept.className) ?? standIns[uuid]
  }

  /// The models that a value refers to; nil if it cannot. Whatever looks like a reference is one in an
  /// unknown property.
  func references(in value: JSONValue, at key: String, _ schema: ModelSchema?) -> [UUID]? {
    if let property = schema?[wireName: key] {
      return property.isCollection || property.isReference ? Self.uuids(in: value) : nil
    }
    var result: [UUID] = []
    value.forEachUUID { result.append($0) }
    return result
  }

  /// Models of unknown classes to which known properties refer are judged as what will stand in for
  /// them.
  mutating func findStandIns() {
    var positions: [UUID: [Int]] = [:]
    var open: [(links: [(key: String, uuids: [UUID])], schema: ModelSchema)] = []
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
        guard let expected = schema[wireName: key]?.modelClass else { continue }
        for uuid in uuids where standIns[uuid] == nil {
          let isAdded = additions[uuid].map { accepted[$0]?.schema == nil } ?? false
          let kept = keptModel(uuid)
          guard isAdded || kept.map({ scope.schema(named: $0.className) == nil }) ?? false else {
            continue
          }
          let standIn = ModelSchema.of(expected)
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

  /// The models that a fragment may refer to, by property.
  private static func links(of fragment: SyncFragment) -> [(key: String, uuids: [UUID])] {
    fragment.properties.map { ($0.key, uuids(in: $0.value)) }
      + fragment.operations.map { ($0.key, inserted(by: $0.operations)) }
  }

  /// What was sent by a client that does not know yet that it has no such model.
  func rejectedReference(in value: JSONValue, at key: String) -> Problem? {
    var missing: UUID?
    value.forEachUUID { uuid in
      if memory.wasRejected(uuid), additions[uuid] == nil, scope.sharedModel(uuid) == nil {
        missing = uuid
      }
    }
    return missing.map {
      Problem("No such ModelObject '\($0.wireText)' at '\(key)'", missing: $0)
    }
  }

  /// Why a fragment has too much that is unknown; nil if it has not.
  func sizeProblem(of fragment: SyncFragment, schema: ModelSchema?) -> String? {
    let limit = Self.maxUnknownProperties
    let keys = fragment.properties.map(\.key) + fragment.operations.map(\.key)
    let new = keys.filter { schema?[wireName: $0] == nil }
    if new.isEmpty { return nil }
    var known = Set(keptModel(fragment.uuid)?.properties.map(\.key) ?? [])
    if let model = scope.model(fragment.uuid) {
      known.formUnion(scope.unknownProperties(of: model).map(\.key))
    }
    return known.union(new).count > limit
      ? "More than \(limit) unknown properties" : nil
  }
}
