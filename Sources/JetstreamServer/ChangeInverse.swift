import Foundation
import Jetstream

/// The inverse of a change set that is about to be applied: what was there is noted before, and compared after.
///
/// A value is undone by the value before; a counter loses the number that was added; models of collections get their
/// places back, and models that leave are added again. The inverse counts on nothing that other change sets have written
/// meanwhile, so that these stay. Cost: O(n) in the change set and in the models that leave with it, and in a collection
/// that it names as a whole.
struct ChangeInverse {
  /// The part of a property's content that may change.
  fileprivate enum Before {
    case value(JSONValue)
    case counter(PropertySchema, JSONValue)
    case collection(JSONValue)
    case places(PropertySchema, of: [UUID], [(model: UUID, place: PropertyOperation.Place)])
  }

  /// The properties of one model that may change.
  fileprivate struct Note {
    let uuid: UUID
    let className: String
    /// Nil for a model that has no object.
    let model: (any HostedModel)?
    var properties: [(key: String, before: Before)] = []
  }

  private let content: any HostedContent
  private var notes: [Note] = []

  /// Notes the content that `fragments` may change.
  init(of fragments: [SyncFragment], in content: any HostedContent) {
    self.content = content
    var places: [UUID: Int] = [:]
    for fragment in fragments {
      let uuid = fragment.uuid
      let model = content.sharedModel(uuid)
      // A model that is new has nothing before: it leaves as soon as nothing holds it.
      if model == nil, content.unknownModel(uuid) == nil { continue }
      let at = places[uuid] ?? notes.count
      if at == notes.count {
        let name = model?.wireClassName ?? fragment.className
        notes.append(Note(uuid: uuid, className: name, model: model))
        places[uuid] = at
      }
      for (key, _) in fragment.properties { notes[at].add(key, [], content) }
      for entry in fragment.operations { notes[at].add(entry.key, entry.operations, content) }
    }
  }

  /// Returns the fragments that undo what has become of the noted content.
  ///
  /// - Parameter gone: The models that have left since, which come first, as additions, in the order of their UUIDs.
  func fragments(restoring gone: [any HostedModel]) -> [SyncFragment] {
    var models: [UUID: any HostedModel] = [:]
    for model in gone { models[model.uuid] = model }
    var result = models.sorted { $0.key < $1.key }.map { uuid, model in
      SyncFragment(
        .add, uuid: uuid, className: model.wireClassName, properties: model.currentProperties())
    }
    if content.hasUnknownModels {
      let values = result.map { JSONValue.object($0.properties) }
      result += content.unknownModels(referredToBy: .array(values))
    }
    for note in notes {
      var change = SyncFragment(
        .change, uuid: note.uuid, className: note.className, properties: [:])
      for (key, before) in note.properties { note.undo(before, of: key, content, &change) }
      if change.properties.isEmpty, change.operations.isEmpty { continue }
      result.append(change)
    }
    return result
  }
}

extension ChangeInverse.Note {
  private func value(of key: String, _ content: any HostedContent) -> JSONValue? {
    guard let model else {
      return content.unknownValue(PropertyKey(uuid: uuid, name: key))
    }
    guard let property = model.classSchema[wireName: key] else { return model.unknownValue(key) }
    return model.currentJSON(of: property)
  }

  /// Notes a property that is written or, by operations, changed.
  fileprivate mutating func add(
    _ key: String, _ operations: [PropertyOperation], _ content: any HostedContent
  ) {
    guard let property = model?.classSchema[wireName: key] else {
      if properties.contains(where: { $0.key == key }) { return }
      guard let value = value(of: key, content) else { return }
      properties.append((key, operations.isEmpty ? .value(value) : .collection(value)))
      return
    }
    let known = properties.firstIndex { $0.key == key }
    guard let model, property.isSynced else { return }
    if property.kind == .collection, !operations.isEmpty {
      var touched = operations.compactMap(\.model)
      if let known {
        // Two fragments about the same collection are rare.
        guard case .places(_, let others, _) = properties[known].before else { return }
        touched += others
      }
      let before = ChangeInverse.Before.places(
        property, of: touched, model.places(of: touched, in: property))
      if let known { properties[known].before = before } else { properties.append((key, before)) }
      return
    }
    if let known {
      guard case .places = properties[known].before else { return }
      properties.remove(at: known)
    }
    let value = model.currentJSON(of: property)
    let before: ChangeInverse.Before =
      switch property.kind {
      case .collection: .collection(value)
      case .plain where !operations.isEmpty: .counter(property, value)
      case .plain, .reference, .dictionary: .value(value)
      }
    properties.append((key, before))
  }

  /// Adds what undoes the change of one property.
  fileprivate func undo(
    _ before: ChangeInverse.Before, of key: String, _ content: any HostedContent,
    _ change: inout SyncFragment
  ) {
    switch before {
    case .value(let value): change.properties[key] = value
    case .counter(let property, let old):
      guard let new = model?.currentJSON(of: property), new != old else { return }
      if let number = JSONValue.difference(from: new, to: old) {
        change.operations[key] = [.add(number)]
      } else {
        change.properties[key] = old
      }
    case .collection(let old):
      guard let new = value(of: key, content), new != old else { return }
      if let before = CollectionContent(old), let now = CollectionContent(new) {
        change.operations[key] = now.operations(to: before)
      } else {
        change.properties[key] = old
      }
    case .places(let property, let touched, let places):
      let now = Set(model?.places(of: touched, in: property).map(\.model) ?? [])
      let were = Set(places.map(\.model))
      // From front to back, each model finds the ones that stood before it.
      var operations = touched.filter { now.contains($0) && !were.contains($0) }
        .map { PropertyOperation.remove($0) }
      for (uuid, place) in places {
        operations.append(now.contains(uuid) ? .move(uuid, place) : .insert(uuid, place))
      }
      if !operations.isEmpty { change.operations[key] = operations }
    }
  }
}
