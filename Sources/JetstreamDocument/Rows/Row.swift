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

  /// The content of a property of the row's class, or of an entry of one of its dictionaries.
  package internal(set) subscript(_ property: PropertySchema) -> RowContent {
    get {
      check(property)
      return withSlots { slots in
        guard let key = property.entryKey else { return slots.read(property.index) }
        return .reference(slots.withDictionary(property.index) { $0[key] })
      }
    }
    set {
      check(property)
      withSlots { slots in
        guard let key = property.entryKey else { return slots.write(property.index, newValue) }
        guard case .reference(let uuid) = newValue else {
          preconditionFailure("An entry of a dictionary is a reference.")
        }
        slots.withDictionary(property.index) { $0[key] = uuid }
      }
    }
  }

  /// Returns true if an entry of a dictionary of the row's class holds a model.
  func hasEntry(_ uuid: UUID, in dictionary: PropertySchema) -> Bool {
    check(dictionary)
    return withSlots { $0.withDictionary(dictionary.index) { $0.holds(uuid) } }
  }

  /// Makes room for a number of entries more in a dictionary of the row's class.
  func reserve(_ additional: Int, in dictionary: PropertySchema) {
    check(dictionary)
    withSlots { $0.withDictionary(dictionary.index) { $0.reserve(additional) } }
  }

  /// Applies operations to a collection of the row's class.
  func apply(_ operations: [PropertyOperation], to collection: PropertySchema) {
    check(collection)
    withSlots { $0.withCollection(collection.index) { $0.apply(operations) } }
  }

  /// Without this check, a property of another class would lead to memory of something else.
  @inline(__always)
  private func check(_ property: PropertySchema) {
    precondition(
      property.index < schema.properties.count, "The property is of another class.")
  }

  /// Every synced property with its value, and in place of a dictionary its entries, in the order of their keys.
  package var properties: JSONObject {
    var result = JSONObject()
    result.reserveCapacity(schema.properties.count)
    for property in schema.properties where property.isSynced {
      let content = self[property]
      guard case .dictionary(let models) = content else {
        // Properties have different names, and no entry has one of them.
        result.append(newKey: property.wireName, content.json)
        continue
      }
      result.reserveCapacity(result.count + models.count + schema.properties.count)
      for (key, model) in models.entries {
        result.append(
          newKey: EntryName.text(of: key, in: property.wireName), .string(model.wireText))
      }
    }
    return result
  }

  /// Calls `body` with each model that a synced property holds, in order, and with the property: for a dictionary once
  /// for each entry, with the dictionary.
  package func forEachChild(_ body: (UUID, PropertySchema) -> Void) {
    for property in schema.holding {
      self[property].forEachModel { body($0, property) }
    }
  }
}
