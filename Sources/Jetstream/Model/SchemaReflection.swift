import CJetstream

/// The one place that looks into the memory layout of model classes.
///
/// The runtime tells the stored fields of a class, those of its superclasses included: their names,
/// types and byte offsets. One object, made by `init()`, gives defaults and options.
enum SchemaReflection {
  static func makeSchema(of modelClass: ModelObject.Type) -> ModelSchema {
    let fields = storedProperties(of: modelClass)
    let recorder = PropertyRecorder(for: modelClass)
    let prototype = recorder.makePrototype()
    let start = UnsafeRawPointer(Unmanaged.passUnretained(prototype).toOpaque())
    let found = fields.map { field in
      PropertyRecorder.Record(
        type: field.access.valueType, options: [],
        value: field.access.plainJSON(at: start + field.offset))
    }
    let records = recorder.takeRecords(matching: found)

    var properties: [ModelSchema.Property] = []
    for (index, field) in fields.enumerated() {
      let record = records[index]
      precondition(
        field.access.valueType._storageKind != .model,
        "\(modelClass).\(field.name) refers to a model and must be optional.")
      let type = field.access.valueType.propertyType
      if let misuse = type.misuse {
        preconditionFailure("\(modelClass).\(field.name) \(misuse)")
      }
      let (defaultValue, makesModels) = defaultValue(of: field, at: start + field.offset)
      properties.append(
        ModelSchema.Property(
          name: field.name, type: type, options: record.options,
          index: index, defaultValue: defaultValue, makesModels: makesModels,
          offset: field.offset, kind: field.access.valueType._storageKind, access: field.access))
    }
    return ModelSchema(
      modelClass, wireName: modelClass.wireName, properties: properties)
  }

  private static func defaultValue(
    of field: Field, at address: UnsafeRawPointer
  ) -> (json: JSONValue, makesModels: Bool) {
    switch field.access.valueType._storageKind {
    case .collection: ([], field.access.list(at: address).count > 0)
    case .reference, .model: (.null, field.access.model(at: address) != nil)
    case .plain: (field.access.json(at: address), false)
    }
  }

  private struct Field {
    let name: String
    let offset: Int
    let access: any StoredProperty.Type
  }

  /// The fields that are `@Property`, superclasses first. The wrapper's storage of `x` is named `_x`.
  private static func storedProperties(of modelClass: ModelObject.Type) -> [Field] {
    var fields: [Field] = []
    for index in 0..<fieldCount(modelClass) {
      var metadata = FieldMetadata()
      let type = fieldType(modelClass, index: index, metadata: &metadata)
      defer { metadata.freeName?(metadata.name) }
      guard let access = type as? any StoredProperty.Type else { continue }
      guard let text = metadata.name, text.pointee != 0 else {
        trapForMissingReflection(modelClass)
      }
      let name = String(cString: text)
      fields.append(
        Field(
          name: name.hasPrefix("_") ? String(name.dropFirst()) : name,
          offset: fieldOffset(modelClass, index: index), access: access))
    }
    return fields
  }

  static func trapForMissingReflection(_ modelClass: ModelObject.Type) -> Never {
    fatalError(
      "Jetstream finds the properties of \(modelClass) by reflection, which its module is built "
        + "without. Remove -disable-reflection-metadata and -reflection-metadata-for-debugger-only "
        + "from the module's compiler flags (SWIFT_REFLECTION_METADATA_LEVEL in Xcode).")
  }
}

/// Notes the type and options of each `@Property` that is initialized while a prototype is made.
///
/// Swift initializes a subclass's stored properties, in order, before its superclass's, and calls
/// `ModelObject.init` last. A default that is itself a model is complete before the property that
/// holds it is noted. So the last records, as many as an object has properties, are its own.
@usableFromInline
final class PropertyRecorder {
  struct Record {
    let type: any PropertyValue.Type
    let options: PropertyOptions
    /// The value it was initialized with; null for models.
    let value: JSONValue

    func fits(_ other: Record, comparingValues: Bool) -> Bool {
      type == other.type && (!comparingValues || value == other.value)
    }
  }

  private let modelClass: ModelObject.Type
  private var records: [Record] = []
  private var isPrototypeDone = false

  init(for modelClass: ModelObject.Type) { self.modelClass = modelClass }

  /// Makes the prototype with this recorder in charge of the thread.
  func makePrototype() -> ModelObject {
    ThreadTracker.run(.recorder(self)) { modelClass.init() }
  }

  /// The records of the prototype, in the order of ``ModelSchema/properties``, which `fields`
  /// describes: a superclass's properties stand before those of its subclasses there, but are
  /// initialized after them.
  func takeRecords(matching fields: [Record]) -> [Record] {
    guard records.count == fields.count else {
      SchemaReflection.trapForMissingReflection(modelClass)
    }
    var result: [Record] = []
    var end = records.count
    for count in PropertyRecorder.propertyCounts(of: modelClass) {
      let fields = Array(fields[result.count..<(result.count + count)])
      result += match(Array(records[(end - count)..<end]), to: fields)
      end -= count
    }
    return result
  }

  /// Brings one class's records into the order of declaration. Normally they are; but what `init()`
  /// assigns before `super.init` is initialized after everything that has a default.
  private func match(_ records: [Record], to fields: [Record]) -> [Record] {
    for comparingValues in [true, false] {
      if zip(records, fields).allSatisfy({ $0.fits($1, comparingValues: comparingValues) }) {
        return records
      }
      var rest = records
      let matched = fields.compactMap { field in
        rest.firstIndex { $0.fits(field, comparingValues: comparingValues) }.map {
          rest.remove(at: $0)
        }
      }
      if matched.count == fields.count { return matched }
    }
    preconditionFailure("\(modelClass).init() initializes a property more than once.")
  }

  /// How many properties each class of the inheritance chain declares, from the root down.
  private static func propertyCounts(of modelClass: ModelObject.Type) -> [Int] {
    var chain: [ModelObject.Type] = []
    var current: AnyClass? = modelClass
    while let next = current as? ModelObject.Type, next != ModelObject.self {
      chain.append(next)
      current = superclassOf(next)
    }
    var counts: [Int] = []
    var inherited = 0
    for ancestor in chain.reversed() {
      var total = 0
      for index in 0..<fieldCount(ancestor) {
        var metadata = FieldMetadata()
        let type = fieldType(ancestor, index: index, metadata: &metadata)
        metadata.freeName?(metadata.name)
        if type is any StoredProperty.Type { total += 1 }
      }
      counts.append(total - inherited)
      inherited = total
    }
    return counts
  }

  /// Whether `model`, which has just been initialized as a `ModelObject`, is the prototype. What is
  /// initialized after it, in the rest of its class's `init()`, is none of the recorder's business.
  func isPrototype(_ model: ModelObject) -> Bool {
    guard !isPrototypeDone, type(of: model) == modelClass else { return false }
    isPrototypeDone = true
    return true
  }

  /// An object other than the prototype is complete: its records are not the prototype's.
  func objectIsComplete(propertyCount: Int) {
    guard !isPrototypeDone else { return }
    records.removeLast(min(propertyCount, records.count))
  }

  @usableFromInline
  static func record<Value: PropertyValue>(_ value: Value, options: PropertyOptions) {
    guard case .recorder(let recorder) = ThreadTracker.current, !recorder.isPrototypeDone else {
      return
    }
    let json = Value._storageKind == .plain ? value.jsonValue : .null
    recorder.records.append(Record(type: Value.self, options: options, value: json))
  }
}

/// Reaches the value of a `@Property` of unknown type through its address.
protocol StoredProperty: SendableMetatype {
  static var valueType: any PropertyValue.Type { get }
  static func json(at address: UnsafeRawPointer) -> JSONValue
  /// The value, null if it holds models.
  static func plainJSON(at address: UnsafeRawPointer) -> JSONValue
  static func model(at address: UnsafeRawPointer) -> ModelObject?
  static func list(at address: UnsafeRawPointer) -> ModelList
  /// Writes a plain value that was read from JSON, and notifies; false if the JSON does not fit.
  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool
  /// Writes a reference, and notifies; false if the model's class does not fit.
  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool
  /// Writes a collection, and notifies; false if an element's class does not fit.
  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool
  /// Takes `child` out of a collection, and notifies.
  static func remove(_ child: ModelObject, from model: ModelObject, at offset: Int)
  /// Empties a property that holds models, without notifying.
  static func clear(at address: UnsafeMutableRawPointer)
  /// Whether the value is the one that the JSON describes.
  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool
  /// A list as a value of the property's type.
  static func wrap(_ list: ModelList) -> Any
  /// Whether a plain property could take the JSON.
  static func accepts(_ json: JSONValue) -> Bool
  /// Whether two JSON values are read as the same plain value.
  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool
  /// Stores a reference or a list again that was there before, without notifying.
  static func restore(_ value: Any, in model: ModelObject, at offset: Int)
}

/// Sound because the offset comes from the runtime's own description of the class and the type from
/// the same field, the object is alive while its address is used, and no access to the property is
/// open: fragments are applied and read by the scope, outside of every accessor.
extension Property: StoredProperty {
  static var valueType: any PropertyValue.Type { Value.self }

  private static func pointer(_ address: UnsafeRawPointer) -> UnsafePointer<Property<Value>> {
    address.assumingMemoryBound(to: Property<Value>.self)
  }

  static func json(at address: UnsafeRawPointer) -> JSONValue {
    pointer(address).pointee.value.jsonValue
  }

  static func plainJSON(at address: UnsafeRawPointer) -> JSONValue {
    Value._storageKind == .plain ? json(at: address) : .null
  }

  static func model(at address: UnsafeRawPointer) -> ModelObject? {
    Value._model(of: pointer(address).pointee.value)
  }

  static func list(at address: UnsafeRawPointer) -> ModelList {
    Value._list(of: pointer(address).pointee.value) ?? ModelList()
  }

  static func accepts(_ json: JSONValue) -> Bool { Value.decode(json) != nil }

  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    guard let a = Value.decode(a), let b = Value.decode(b) else { return false }
    return Value.isSame(a, b)
  }

  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    let value = pointer(address).pointee.value
    if Value._storageKind != .plain { return value.jsonValue == json }
    return Value.decode(json).map { Value.isSame($0, value) } ?? false
  }

  static func wrap(_ list: ModelList) -> Any { Value._value(of: list) ?? [] }

  static func clear(at address: UnsafeMutableRawPointer) {
    let storage = address.assumingMemoryBound(to: Property<Value>.self)
    let empty =
      Value._storageKind == .collection
      ? Value._value(of: ModelList()) : Value._value(of: nil as ModelObject?)
    if let empty { storage.pointee.value = empty }
  }

  static func remove(_ child: ModelObject, from model: ModelObject, at offset: Int) {
    let storage = (Unmanaged.passUnretained(model).toOpaque() + offset)
      .assumingMemoryBound(to: Property<Value>.self)
    let lease = Value._openLease(at: storage)
    Value._changeList(at: storage) { list in
      if let position = list.index(of: child) { list.remove(at: position) }
    }
    if let lease {
      model.didModifyCollection(at: offset, lease: lease, value: storage.pointee.value)
    }
  }

  static func restore(_ value: Any, in model: ModelObject, at offset: Int) {
    if let list = value as? ModelList {
      if let array = Value._value(of: list) { _ = exchange(array, in: model, at: offset) }
    } else if let value = value as? Value {
      _ = exchange(value, in: model, at: offset)
    }
  }

  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool {
    guard let value = Value.decode(json) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.record?.didWrite(at: offset, old: old, new: value)
    return true
  }

  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool {
    guard let value = Value._value(of: child) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.didReplaceReference(at: offset, old: old, new: value)
    return true
  }

  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool {
    guard let value = Value._value(of: list) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.didReplaceCollection(at: offset, old: old, new: value)
    return true
  }

  /// Stores `value` and gives the old one; nil if they are the same.
  private static func exchange(_ value: Value, in model: ModelObject, at offset: Int) -> Value? {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: Property<Value>.self)
    let old = storage.pointee.value
    if Value.isSame(old, value) { return nil }
    storage.pointee.value = value
    return old
  }
}

// MARK: The runtime's entry points

private struct FieldMetadata {
  var name: UnsafePointer<CChar>?
  var freeName: (@convention(c) (UnsafePointer<CChar>?) -> Void)?
  var isStrong = false
  var isVar = false
}

@_silgen_name("swift_reflectionMirror_recursiveCount")
private func fieldCount(_ type: Any.Type) -> Int

@_silgen_name("swift_reflectionMirror_recursiveChildMetadata")
private func fieldType(
  _ type: Any.Type, index: Int, metadata: UnsafeMutablePointer<FieldMetadata>
) -> Any.Type

@_silgen_name("swift_reflectionMirror_recursiveChildOffset")
private func fieldOffset(_ type: Any.Type, index: Int) -> Int

private func superclassOf(_ type: AnyClass) -> AnyClass? { _getSuperclass(type) }
