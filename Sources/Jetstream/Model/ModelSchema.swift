import Synchronization

/// The schema of a ``ModelObject`` subclass: its wire name, and its properties in the order of
/// declaration, inherited ones first.
///
/// Made once for each class, on first use, and shared by all its objects.
package final class ModelSchema: Sendable, CustomStringConvertible {
  /// One property of a model class.
  package final class Property: Sendable {
    /// The name of the property in the source, which observers use.
    package let name: String
    /// The name of the property in fragments and in messages to peers: ``name``, unless the options
    /// give another one.
    package let wireName: String
    /// The type of the property on the wire.
    package let type: _PropertyType
    /// The options from the declaration, combined with those of ``ModelObject/propertyOptions``.
    package let options: PropertyOptions
    /// The index of the property in ``ModelSchema/properties``.
    package let index: Int
    /// The value in a new object. Null or empty if `init()` makes models, since each object has its
    /// own.
    package let defaultValue: JSONValue
    /// True if a new object has models in the property.
    let makesModels: Bool
    let offset: Int
    let kind: _StorageKind
    let access: any StoredProperty.Type
    /// The numbers that the property can hold; nil if its type is not an integer.
    package let counterRange: CounterRange?

    /// True if the property is part of fragments; false for a local one.
    package let isSynced: Bool
    /// The property as data.
    package let data: PropertySchema
    /// The key of the entry of a dictionary that this is; nil for a property of the class.
    package let entryKey: String?

    init(
      name: String, options: PropertyOptions, index: Int, defaultValue: JSONValue,
      makesModels: Bool, offset: Int, access: any StoredProperty.Type
    ) {
      self.name = name
      wireName = options.wireName ?? name
      type = access.valueType._propertyType
      self.options = options
      self.index = index
      self.defaultValue = defaultValue
      self.makesModels = makesModels
      self.offset = offset
      kind = access.valueType._storageKind
      counterRange = CounterRange(access.valueType)
      self.access = access
      isSynced = !options.isLocal
      entryKey = nil
      data = PropertySchema(
        wireName: wireName, type: type, index: index, isSynced: isSynced,
        isCounter: options.isCounter, mergeRule: options.mergeRule,
        rules: options.rules.isEmpty ? nil : options.rules, counterRange: counterRange,
        defaultValue: defaultValue, codec: TypeCodec(access))
    }

    /// Makes an entry of a dictionary: a reference with the index and the storage of the dictionary.
    private init(_ data: PropertySchema, of dictionary: Property) {
      (name, wireName) = (data.wireName, data.wireName)
      (type, index, isSynced) = (data.type, data.index, data.isSynced)
      (options, offset, access) = (dictionary.options, dictionary.offset, dictionary.access)
      (defaultValue, makesModels, counterRange) = (data.defaultValue, false, nil)
      kind = .reference
      entryKey = data.entryKey
      self.data = data
    }

    /// Returns the entry of a dictionary with a key; nil for any other property.
    func entry(_ key: String) -> Property? { data.entry(key).map { Property($0, of: self) } }
  }

  /// The class that the schema describes.
  package let modelClass: ModelObject.Type
  /// The name of the class on the wire.
  package let wireName: String
  /// All properties, in the order of declaration, inherited ones first.
  package let properties: [Property]
  /// The properties that hold models.
  let childProperties: [Property]
  /// True if the class has a dictionary of models.
  let hasDictionaries: Bool
  /// True if the class adopts `Observable`, so that reads and changes are reported to its
  /// registrar.
  let isObservable: Bool
  /// The synced properties with a minimum sync interval.
  package let throttledProperties: [Property]
  /// The class as data.
  package let data: ClassSchema
  /// A cache from key paths of the class to property indices.
  let keyPaths = KeyPathCache()
  private let indexByName: [String: Int]
  private let indexByOffset: [UInt16]

  init(_ modelClass: ModelObject.Type, wireName: String, properties: [Property]) {
    self.modelClass = modelClass
    self.wireName = wireName
    self.properties = properties
    childProperties = properties.filter { $0.kind != .plain }
    hasDictionaries = properties.contains { $0.kind == .dictionary }
    isObservable = ObservationBridge.adopts(modelClass)
    throttledProperties = properties.filter { $0.isSynced && $0.options.minSyncInterval != nil }
    indexByName = Dictionary(properties.map { ($0.name, $0.index) }) { _, index in
      preconditionFailure(
        "\(modelClass) has two properties called \(properties[index].name), one of them inherited.")
    }
    var named: [String: Property] = [:]
    for property in properties {
      guard let other = named.updateValue(property, forKey: property.wireName) else { continue }
      preconditionFailure(
        "\(modelClass).\(other.name) and \(modelClass).\(property.name) are both called "
          + "\(property.wireName) on the wire.")
    }
    data = ClassSchema(
      wireName, superclasses: SchemaReflection.superclassNames(of: modelClass),
      properties: properties.map(\.data))
    var table = [UInt16](repeating: .max, count: (properties.map(\.offset).max() ?? 0) + 1)
    for property in properties { table[property.offset] = UInt16(property.index) }
    indexByOffset = table
    if let (property, dictionary) = data.nameLikeEntry {
      preconditionFailure(
        "\(modelClass) has a property that is called \(property) on the wire, as an entry of its "
          + "dictionary \(dictionary) is.")
    }
  }

  /// Returns the schema of `modelClass`. Cost: a look-up, after the first call.
  package static func of(_ modelClass: ModelObject.Type) -> ModelSchema {
    SchemaCache.schema(of: modelClass)
  }

  /// The property named `name` in the source; nil if there is none.
  package subscript(name: String) -> Property? { indexByName[name].map { properties[$0] } }

  /// The property named `wireName` in fragments, or the entry of a dictionary; nil if there is none.
  package subscript(wireName wireName: String) -> Property? {
    // Mostly it is a declared property: nothing is made for it.
    if let index = data.index(ofDeclared: wireName) { return properties[index] }
    return hasDictionaries ? data[wireName: wireName].map { self[$0] } : nil
  }

  /// The property of the class that a property as data describes.
  package subscript(data: PropertySchema) -> Property {
    let property = properties[data.index]
    return data.entryKey.flatMap { property.entry($0) } ?? property
  }

  /// Returns the indices of the named properties. Traps if the class does not have one of them.
  func indices(of names: [String]) -> [Int] {
    names.map { name in
      guard let index = indexByName[name] else {
        preconditionFailure(
          "\(wireName) has no property \"\(name)\"; it has "
            + properties.map(\.name).joined(separator: ", ") + ".")
      }
      return index
    }
  }

  @inline(__always)
  func index(atOffset offset: Int) -> Int {
    let index = indexByOffset[offset]
    precondition(index != .max, "A @Property of \(wireName) is not where reflection found it.")
    return Int(index)
  }

  /// The class with its properties and their types, for people to read.
  package var description: String {
    let lines = properties.map { property in
      let options = property.options.words
      return "  \(property.name): \(property.type)" + (options.isEmpty ? "" : " (\(options))")
    }
    return (["\(wireName) {"] + lines + ["}"]).joined(separator: "\n")
  }
}

/// The schemas made so far.
enum SchemaCache {
  private static let schemas = Mutex<[ObjectIdentifier: ModelSchema]>([:])

  static func schema(of modelClass: ModelObject.Type) -> ModelSchema {
    let key = ObjectIdentifier(modelClass)
    if let found = SchemaTable.find(key) { return found }
    // Made outside of the lock, since the prototype's initializer may ask for other schemas. If two
    // threads make the same schema, the first to finish is kept.
    let made = SchemaReflection.makeSchema(of: modelClass)
    let kept = schemas.withLock { schemas in
      if let other = schemas[key] { return other }
      schemas[key] = made
      SchemaTable.publish(schemas)
      return made
    }
    return kept
  }
}

/// The same schemas in a table that is read without a lock, because each new model looks up its
/// class.
///
/// A table never changes once it is published, and it is never freed, so that a reader on another
/// thread can go on using it. Each new class publishes a new table.
private enum SchemaTable {
  private struct Slot {
    var key: ObjectIdentifier?
    var schema: Unmanaged<ModelSchema>?
  }

  /// The address of the published table. Safe: it is written under the cache's lock with release
  /// ordering after the table is complete, it is read with acquire ordering, and tables are
  /// immutable from then on.
  private static let current = Atomic<UInt>(0)

  @inline(__always)
  static func find(_ key: ObjectIdentifier) -> ModelSchema? {
    guard let pointer = UnsafeRawPointer(bitPattern: current.load(ordering: .acquiring)) else {
      return nil
    }
    let mask = pointer.load(as: Int.self)
    let slots = (pointer + MemoryLayout<Int>.stride).assumingMemoryBound(to: Slot.self)
    var at = hash(key) & mask
    while let other = slots[at].key {
      if other == key { return slots[at].schema!.takeUnretainedValue() }
      at = (at + 1) & mask
    }
    return nil
  }

  static func publish(_ schemas: [ObjectIdentifier: ModelSchema]) {
    var capacity = 64
    while capacity < schemas.count * 2 { capacity *= 2 }
    let bytes = MemoryLayout<Int>.stride + capacity * MemoryLayout<Slot>.stride
    let pointer = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
    pointer.storeBytes(of: capacity - 1, as: Int.self)
    let slots = (pointer + MemoryLayout<Int>.stride).bindMemory(to: Slot.self, capacity: capacity)
    slots.initialize(repeating: Slot(), count: capacity)
    for (key, schema) in schemas {
      var at = hash(key) & (capacity - 1)
      while slots[at].key != nil { at = (at + 1) & (capacity - 1) }
      slots[at] = Slot(key: key, schema: Unmanaged.passRetained(schema))
    }
    current.store(UInt(bitPattern: pointer), ordering: .releasing)
  }

  @inline(__always)
  private static func hash(_ key: ObjectIdentifier) -> Int {
    let mixed = (UInt(bitPattern: key) >> 4) &* 0x9E37_79B9_7F4A_7C15
    return Int(truncatingIfNeeded: mixed >> 32)
  }
}
