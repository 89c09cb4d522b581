import Foundation

/// One model of a document.
package final class Row {
  /// The UUID of the model.
  package let uuid: UUID
  /// The class of the model.
  package let schema: ClassSchema
  /// The contents of the properties, in the order of the schema.
  package internal(set) var contents: [RowContent]
  /// The properties of models in the document that hold this model.
  var holders = RowHolders()

  init(_ schema: ClassSchema, _ uuid: UUID) {
    self.uuid = uuid
    self.schema = schema
    contents = schema.properties.map { RowContent(of: $0) }
  }

  /// The content of a property.
  package subscript(_ property: PropertySchema) -> RowContent { contents[property.index] }

  /// Every synced property with its value.
  package var properties: JSONObject {
    var result = JSONObject()
    for property in schema.properties where property.isSynced {
      result[property.wireName] = self[property].json
    }
    return result
  }

  /// Calls `body` with each model that a synced property holds, in order, and with the index of the property.
  func forEachChild(_ body: (UUID, Int) -> Void) {
    for property in schema.properties where property.kind != .plain && property.isSynced {
      contents[property.index].forEachModel { body($0, property.index) }
    }
  }
}

/// The properties that hold a model. Most models are held by one.
struct RowHolders {
  /// A property of a row in the document.
  struct Holder: Hashable {
    let uuid: UUID
    let index: Int
  }

  private enum Storage {
    case few(Holder?)
    case many(Set<Holder>)
  }

  private var storage = Storage.few(nil)

  var isEmpty: Bool { if case .few(nil) = storage { true } else { false } }

  var all: [Holder] {
    switch storage {
    case .few(let holder): holder.map { [$0] } ?? []
    case .many(let holders): Array(holders)
    }
  }

  mutating func insert(_ holder: Holder) {
    switch storage {
    case .few(nil): storage = .few(holder)
    case .few(let first?): if first != holder { storage = .many([first, holder]) }
    case .many(var holders):
      storage = .few(nil)
      holders.insert(holder)
      storage = .many(holders)
    }
  }

  mutating func remove(_ holder: Holder) {
    switch storage {
    case .few(let first): if first == holder { storage = .few(nil) }
    case .many(var holders):
      storage = .few(nil)
      holders.remove(holder)
      storage = holders.count > 1 ? .many(holders) : .few(holders.first)
    }
  }
}
