import Foundation

/// The content of a dictionary: models by their UUIDs, under keys. A model can have several keys.
///
/// All that edits do to a dictionary stands in this file and in ``DictionaryEdit``. Unlike the elements of a collection,
/// entries do not depend on each other: two edits meet only where both assign the same key.
package struct DictionaryContent: Sendable, Hashable {
  private var models: [String: UUID]
  /// The keys of each model; nil while there are fewer than `indexedCount` entries, which are searched.
  private var keys: [UUID: Keys]?

  /// The keys of a model. Most models have one.
  private enum Keys {
    case one(String)
    case many(Set<String>)

    var all: [String] {
      switch self {
      case .one(let key): [key]
      case .many(let keys): Array(keys)
      }
    }

    mutating func insert(_ key: String) {
      switch self {
      case .one(let first): self = .many([first, key])
      case .many(var keys):
        // The set is copied if it is still in here.
        self = .one(key)
        keys.insert(key)
        self = .many(keys)
      }
    }

    /// Removes a key. Returns false if it is the last one.
    mutating func remove(_ key: String) -> Bool {
      guard case .many(var keys) = self else { return false }
      self = .one(key)
      keys.remove(key)
      self = keys.count > 1 ? .many(keys) : .one(keys.first!)
      return true
    }
  }

  /// From this number of entries on, a model is looked up by its hash.
  private static let indexedCount = 16

  /// Makes a dictionary of models by key.
  package init(_ models: [String: UUID] = [:]) {
    self.models = models
    index()
  }

  /// Reads an object of UUIDs in either case; nil for any other JSON. Fragments have no such object: they have entries.
  package init?(_ json: JSONValue) {
    guard case .object(let members) = json else { return nil }
    var models: [String: UUID] = [:]
    for (key, value) in members {
      guard case .string(let text) = value, let uuid = UUID(wireText: text) else { return nil }
      models[EntryName.normal(key)] = uuid
    }
    self.init(models)
  }

  /// The UUIDs as an object, in the order of the keys.
  package var json: JSONValue {
    .object(JSONObject(entries.map { ($0.key, .string($0.model.wireText)) }))
  }

  /// The model with a key; nil for no entry.
  package subscript(key: String) -> UUID? {
    get { models[key] }
    set {
      let old =
        if let newValue { models.updateValue(newValue, forKey: key) } else {
          models.removeValue(forKey: key)
        }
      if (keys != nil) != (models.count >= Self.indexedCount) { return index() }
      guard keys != nil, old != newValue else { return }
      if let old, keys?[old]?.remove(key) == false { keys?[old] = nil }
      if let newValue { note(key, of: newValue) }
    }
  }

  private mutating func index() {
    keys = nil
    guard models.count >= Self.indexedCount else { return }
    keys = Dictionary(minimumCapacity: models.count)
    for (key, model) in models { note(key, of: model) }
  }

  private mutating func note(_ key: String, of model: UUID) {
    if keys?[model]?.insert(key) == nil { keys?[model] = .one(key) }
  }

  /// Makes room for a number of entries more. A dictionary that would grow no more than once for them is left as it is:
  /// otherwise each call could cost O(n) in all entries.
  mutating func reserve(_ additional: Int) {
    if additional > models.count / 2 { models.reserveCapacity(models.count + additional) }
  }

  /// True if there is no entry.
  package var isEmpty: Bool { models.isEmpty }

  /// The number of entries.
  package var count: Int { models.count }

  /// The entries in the order of the bytes of their keys, which is the same in every run. Cost: O(n log n).
  package var entries: [(key: String, model: UUID)] {
    let entries = models.map { (key: $0.key, model: $0.value) }
    return ByteOrder.places(entries.count) { entries[$0].key }.map { entries[$0] }
  }

  /// Returns true if a model has a key.
  package func holds(_ uuid: UUID) -> Bool {
    keys.map { $0[uuid] != nil } ?? models.values.contains(uuid)
  }

  /// Returns the keys of a model, in the order of their bytes. Cost: O(k log k) for k keys.
  package func keys(of uuid: UUID) -> [String] {
    guard let keys else {
      return models.lazy.filter { $0.value == uuid }.map(\.key).sortedByBytes()
    }
    return keys[uuid]?.all.sortedByBytes() ?? []
  }

  package static func == (a: DictionaryContent, b: DictionaryContent) -> Bool {
    a.models == b.models
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(models) }

  // MARK: Edits

  /// Applies an edit.
  package mutating func apply(_ edit: DictionaryEdit) {
    for (key, model) in edit.assignments { self[key] = model }
  }

  /// Returns the edit that takes `edit` back right after it was applied to this content. It assigns the same keys, also
  /// those at which `edit` changes nothing: another edit may change these beneath it. See ``DictionaryEdit/rebased(onto:)``.
  package func inverse(of edit: DictionaryEdit) -> DictionaryEdit {
    var result = DictionaryEdit()
    for key in edit.assignments.keys { result[key] = .some(models[key]) }
    return result
  }

  /// Returns the shortest edit that leads from this content to `new`. Cost: O(n).
  package func edit(to new: DictionaryContent) -> DictionaryEdit {
    var result = DictionaryEdit()
    for key in models.keys where new.models[key] == nil { result[key] = .some(nil) }
    for (key, model) in new.models where models[key] != model { result[key] = model }
    return result
  }
}
