import Foundation

/// One model of a document.
///
/// The contents of its properties are behind the object itself, in the same allocation: most models are small, and an
/// array of their own would cost as much again. That is why a row is a `ManagedBuffer`. Its elements are bytes, which
/// ``RowSlots`` reads and writes.
package final class Row: ManagedBuffer<Row.Header, UInt8> {
  /// The parts that every row has.
  package struct Header {
    fileprivate let uuid: UUID
    /// The class, which says how many slots are behind the object.
    fileprivate let schema: ClassSchema
    fileprivate var holders = RowHolders()
  }

  /// Makes a new model of a class, with the default values.
  static func make(_ schema: ClassSchema, _ uuid: UUID) -> Row {
    let count = schema.properties.count
    // On 64 bits the header is aligned to eight bytes, and the bytes are right behind it.
    let size = RowSlots.size(
      of: count, behind: MemoryLayout<Header>.alignment == 8 ? MemoryLayout<Header>.size : nil)
    let buffer = create(minimumCapacity: size) { _ in Header(uuid: uuid, schema: schema) }
    // `create` makes an object of the class that it is called on.
    let row = unsafeDowncast(buffer, to: Row.self)
    row.withSlots { slots in
      precondition(slots.fit(size, of: count), "Rows are laid out in another way here.")
      // Every slot has a content from now on: `deinit` and the subscript count on it.
      for (place, property) in schema.properties.enumerated() {
        slots.initialize(place, to: RowContent(of: property))
      }
    }
    return row
  }

  deinit {
    withSlots { slots in
      for place in schema.properties.indices { slots.deinitialize(place) }
    }
  }

  /// Calls `body` with the slots of the properties.
  @inline(__always)
  private func withSlots<Result>(_ body: (RowSlots) -> Result) -> Result {
    withUnsafeMutablePointers { header, bytes in
      body(RowSlots(bytes, of: header.pointee.schema.properties.count))
    }
  }

  /// The UUID of the model.
  package var uuid: UUID { header.uuid }

  /// The class of the model.
  package var schema: ClassSchema { header.schema }

  /// The properties of models in the document that hold this model.
  var holders: RowHolders {
    _read { yield header.holders }
    _modify { yield &header.holders }
  }

  /// The content of a property of the row's class.
  package internal(set) subscript(_ property: PropertySchema) -> RowContent {
    get {
      check(property)
      return withSlots { $0.read(property.index) }
    }
    set {
      check(property)
      withSlots { $0.write(property.index, newValue) }
    }
  }

  /// Without this check, a property of another class would lead to memory of something else.
  @inline(__always)
  private func check(_ property: PropertySchema) {
    precondition(
      property.index < schema.properties.count, "The property is of another class.")
  }

  /// Every synced property with its value.
  package var properties: JSONObject {
    var result = JSONObject()
    for property in schema.properties where property.isSynced {
      result[property.wireName] = self[property].json
    }
    return result
  }

  /// Calls `body` with each model that a synced property holds, in order, and with the property.
  func forEachChild(_ body: (UUID, PropertySchema) -> Void) {
    for property in schema.properties where property.kind != .plain && property.isSynced {
      self[property].forEachModel { body($0, property) }
    }
  }
}
