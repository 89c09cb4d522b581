import Foundation

/// The content of one property of a row.
package enum RowContent: Sendable, Hashable {
  /// A plain value, as its type writes it.
  case value(JSONValue)
  /// The model that a reference leads to.
  case reference(UUID?)
  /// The models of a collection.
  case collection(CollectionContent)
  /// The models of a dictionary. The content of one of its entries is a reference.
  case dictionary(DictionaryContent)

  /// Makes the content of a new model.
  init(of property: PropertySchema) {
    self =
      switch property.kind {
      case .plain: .value(property.defaultValue)
      case .reference: .reference(nil)
      case .collection: .collection(CollectionContent())
      case .dictionary: .dictionary(DictionaryContent())
      }
  }

  /// Reads JSON that fits the property.
  init(_ json: JSONValue, of property: PropertySchema) {
    switch (property.kind, json) {
    case (.plain, _): self = .value(json)
    case (.reference, .string(let text)): self = .reference(UUID(wireText: text))
    case (.reference, _): self = .reference(nil)
    case (.collection, _): self = .collection(CollectionContent(json) ?? CollectionContent())
    case (.dictionary, _): self = .dictionary(DictionaryContent(json) ?? DictionaryContent())
    }
  }

  /// The content as JSON.
  package var json: JSONValue {
    switch self {
    case .value(let value): value
    case .reference(let uuid): uuid.map { .string($0.wireText) } ?? .null
    case .collection(let list): list.json
    case .dictionary(let models): models.json
    }
  }

  /// Calls `body` with each model that the content holds, for a dictionary once for each entry, in the order of the keys.
  @inline(__always)
  package func forEachModel(_ body: (UUID) -> Void) {
    switch self {
    case .value, .reference(nil): break
    case .reference(let uuid?): body(uuid)
    case .collection(let list): for uuid in list.elements { body(uuid) }
    case .dictionary(let models): for entry in models.entries { body(entry.model) }
    }
  }

  /// Returns the models that this content holds and `next` does not, and those that only `next` holds. Of two collections
  /// that differ in one range, only that range is looked at closely.
  func differences(to next: RowContent) -> (gone: [UUID], come: [UUID]) {
    var (old, new): ([UUID], [UUID]) = ([], [])
    if case .collection(let before) = self, case .collection(let after) = next {
      let (before, after) = (before.elements, after.elements)
      let shorter = min(before.count, after.count)
      var start = 0
      while start < shorter, before[start] == after[start] { start += 1 }
      var end = 0
      while end < shorter - start, before[before.count - 1 - end] == after[after.count - 1 - end] {
        end += 1
      }
      old = Array(before[start..<(before.count - end)])
      new = Array(after[start..<(after.count - end)])
    } else {
      forEachModel { old.append($0) }
      next.forEachModel { new.append($0) }
    }
    if old.isEmpty || new.isEmpty { return (old, new) }
    let (known, kept) = (UUIDList(old), UUIDList(new))
    return (old.filter { !kept.contains($0) }, new.filter { !known.contains($0) })
  }
}
