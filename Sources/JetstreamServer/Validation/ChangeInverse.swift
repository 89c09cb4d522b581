import Foundation
import Jetstream

/// The inverse of a change set that is about to be applied: what was there is noted before, and compared after.
///
/// A value is undone by the value before; a counter loses the number that was added; models of collections get their
/// places back, and models that leave are added again. Content that the classes do not know is left out: a scope cannot
/// tell its clients of changes of it. Cost: O(n) in the change set, in the models that leave with it, and in a
/// collection that it names as a whole.
struct ChangeInverse {
  private let content: any HostedContent
  private var notes: [InverseNote] = []
  /// The models that the change set names and that are not there yet.
  private var newcomers: Set<UUID> = []
  /// The places of the notes, by model.
  private var places: [UUID: Int] = [:]

  /// Notes the content that `fragments` may change.
  init(of fragments: [SyncFragment], in content: any HostedContent) {
    self.init(in: content)
    for fragment in fragments { expect(fragment) }
    take()
  }

  /// Makes the inverse of a change set of which nothing was looked at; see ``expect(_:)`` and ``take()``.
  init(in content: any HostedContent) { self.content = content }

  /// Notes which content a fragment may change.
  mutating func expect(_ fragment: SyncFragment) {
    let uuid = fragment.uuid
    fragment.forEachModel(as: content.schema(of: fragment)) { named in
      if content.sharedModel(named) == nil { newcomers.insert(named) }
    }
    guard let model = content.sharedModel(uuid) else {
      newcomers.insert(uuid)
      return
    }
    let at = places[uuid] ?? notes.count
    if at == notes.count {
      notes.append(InverseNote(model: model))
      places[uuid] = at
    }
    notes[at].expect(fragment)
  }

  /// Takes what is there now, once all fragments were looked at.
  mutating func take() {
    for at in notes.indices { notes[at].take() }
  }

  /// Returns the fragments that undo what has become of the noted content.
  ///
  /// - Parameter gone: the models that have left since. Those that were there before come first, as additions, in the order
  ///   of their UUIDs.
  func fragments(restoring gone: [any HostedModel]) -> [SyncFragment] {
    var models: [UUID: any HostedModel] = [:]
    for model in gone where !newcomers.contains(model.uuid) { models[model.uuid] = model }
    let changes = notes.map(\.undo)
    var before: [UUID: JSONObject] = [:]
    for (note, change) in zip(notes, changes) {
      guard let change, models[note.model.uuid] != nil else { continue }
      before[note.model.uuid] = note.properties(undoneBy: change)
    }
    let additions = Array(models.values).sorted(byUUID: \.uuid).map { model in
      SyncFragment(
        .add, uuid: model.uuid, className: model.wireClassName,
        properties: before[model.uuid] ?? model.currentProperties())
    }
    return additions + changes.compactMap(\.self)
  }
}

/// The properties of one model that a change set may change, with what they had before.
private struct InverseNote {
  /// The part of a property's content that may change.
  private enum Before {
    case value(JSONValue)
    case counter(JSONValue)
    case collection(JSONValue)
    case places(of: [UUID], [(model: UUID, place: PropertyOperation.Place)])
  }

  private struct Property {
    let schema: PropertySchema
    /// The name on the wire, of an entry with its key.
    let key: String
    var isAssigned = false
    var touched: [UUID] = []
    var before = Before.value(.null)
  }

  let model: any HostedModel
  private var properties: [Property] = []
  private var places: [String: Int] = [:]

  init(model: any HostedModel) { self.model = model }

  /// Notes which properties a fragment writes or, by operations, changes.
  mutating func expect(_ fragment: SyncFragment) {
    for (key, _) in fragment.properties {
      if let at = place(of: key) { properties[at].isAssigned = true }
    }
    for entry in fragment.operations {
      if let at = place(of: entry.key) {
        properties[at].touched += entry.operations.compactMap(\.model)
      }
    }
  }

  private mutating func place(of key: String) -> Int? {
    if let known = places[key] { return known }
    guard let schema = model.classSchema[wireName: key], schema.isSynced else { return nil }
    places[key] = properties.count
    properties.append(Property(schema: schema, key: key))
    return properties.count - 1
  }

  /// Takes what is there now.
  mutating func take() {
    for at in properties.indices {
      let property = properties[at]
      switch property.schema.kind {
      case .collection where !property.isAssigned:
        properties[at].before = .places(
          of: property.touched, model.places(of: property.touched, in: property.schema))
      case .collection: properties[at].before = .collection(value(of: property))
      case .plain where !property.isAssigned: properties[at].before = .counter(value(of: property))
      case .plain, .reference, .dictionary: properties[at].before = .value(value(of: property))
      }
    }
  }

  private func value(of property: Property) -> JSONValue { model.currentJSON(of: property.schema) }

  /// The change that undoes what has become of the properties since; nil if there is nothing to undo.
  var undo: SyncFragment? {
    var change = SyncFragment(
      .change, uuid: model.uuid, className: model.wireClassName, properties: [:])
    for property in properties {
      switch property.before {
      case .value(let value): change.properties[property.key] = value
      case .counter(let old):
        let new = value(of: property)
        if new == old { continue }
        if let number = JSONValue.difference(from: new, to: old) {
          change.operations[property.key] = [.add(number)]
        } else {
          change.properties[property.key] = old
        }
      case .collection(let old):
        let new = value(of: property)
        if new == old { continue }
        guard let before = CollectionContent(old), let now = CollectionContent(new) else {
          continue
        }
        change.operations[property.key] = now.operations(to: before)
      case .places(let touched, let before):
        let operations = Self.operations(
          to: before, from: model.places(of: touched, in: property.schema))
        if !operations.isEmpty { change.operations[property.key] = operations }
      }
    }
    return change.properties.isEmpty && change.operations.isEmpty ? nil : change
  }

  /// Returns what all properties had before, but for counters: an addition of the model is to name no model that has come
  /// with the change set. The change comes behind it, which does nothing again but adding to counters.
  func properties(undoneBy change: SyncFragment) -> JSONObject {
    var result = model.currentProperties()
    var gone: Set<String> = []
    for (key, value) in change.properties {
      if value == .null, model.classSchema[wireName: key]?.entryKey != nil {
        gone.insert(key)
      } else {
        result[key] = value
      }
    }
    // All at once: each removal takes time in proportion to the entries.
    if !gone.isEmpty { result.removeAll { key, _ in gone.contains(key) } }
    for entry in change.operations {
      if let now = result[entry.key], var list = CollectionContent(now) {
        list.apply(entry.operations)
        result[entry.key] = list.json
      }
    }
    return result
  }

  /// Returns the operations that give models their places back: from front to back, each finds those that stood before it.
  /// If none has moved, those that are still there are left alone, because others may move them later.
  private static func operations(
    to before: [(model: UUID, place: PropertyOperation.Place)],
    from now: [(model: UUID, place: PropertyOperation.Place)]
  ) -> [PropertyOperation] {
    let were = Set(before.map(\.model))
    let places = Dictionary(now.map { ($0.model, $0.place) }, uniquingKeysWith: { $1 })
    // A model can have the same predecessors as before because all of them have moved with it.
    let hasMoved = before.contains { uuid, place in places[uuid].map { $0 != place } ?? false }
    var result = now.filter { !were.contains($0.model) }.map { PropertyOperation.remove($0.model) }
    for (uuid, place) in before {
      if places[uuid] == nil {
        result.append(.insert(uuid, place))
      } else if hasMoved {
        result.append(.move(uuid, place))
      }
    }
    return result
  }
}
