/// Accesses the value of a `@Property` whose type is not known statically, by its address.
protocol StoredProperty: SendableMetatype {
  /// The type of the stored value.
  static var valueType: any PropertyValue.Type { get }
  /// The type of the property in the source.
  static var declaredType: Any.Type { get }
  /// The class of the models that the property holds or refers to.
  static var targetClass: ModelObject.Type? { get }
  static func json(at address: UnsafeRawPointer) -> JSONValue
  static func model(at address: UnsafeRawPointer) -> ModelObject?
  static func list(at address: UnsafeRawPointer) -> ModelList
  static func table(at address: UnsafeRawPointer) -> ModelTable
  /// Decodes and writes a plain value, and notifies observers. Returns false if the JSON does not
  /// fit.
  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool
  /// Writes a reference, and notifies observers. Returns false if the model's class does not fit.
  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool
  /// Writes a collection, and notifies observers. Returns false if an element's class does not fit.
  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool
  /// Writes a dictionary, all of whose models fit, and notifies observers. Returns false for any other property.
  static func assign(_ table: ModelTable, to model: ModelObject, at offset: Int) -> Bool
  /// Changes a collection in place, and notifies observers.
  static func edit(
    _ model: ModelObject, at offset: Int, _ change: (inout ModelList) -> Void)
  /// Adds to an integer, clamped to the range of its type, and notifies observers. Returns false
  /// for any other type.
  static func add(_ delta: Int64, to model: ModelObject, at offset: Int) -> Bool
  /// Empties a property that holds models, without notifying observers.
  static func clear(at address: UnsafeMutableRawPointer)
  /// Returns true if the value is the one that the JSON describes.
  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool
  /// Returns a list, all of whose models fit, as a value of the property's type. Cost: O(1).
  static func wrap(_ list: ModelList) -> Any
  /// Returns true if a plain property can hold the JSON.
  static func accepts(_ json: JSONValue) -> Bool
  /// Describes why a plain property cannot hold the JSON, as its type puts it; nil if the type
  /// gives no reason.
  static func _problem(with json: JSONValue) -> String?
  /// Returns true if two JSON values decode to the same plain value.
  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool
  /// Returns the JSON as the property's type encodes it; nil if it cannot be decoded.
  static func normalized(_ json: JSONValue) -> JSONValue?
  /// Returns true if `read` returns the stored value for every value that is put at `address`; nil if there are too few
  /// values to say. The original value is restored.
  ///
  /// - Parameters:
  ///   - isThorough: true to try extreme values, too.
  ///   - read: Returns nil if it has read anything else.
  static func isIdentity(
    at address: UnsafeMutableRawPointer, isThorough: Bool, _ read: () -> Any?
  ) -> Bool?
  /// Stores an earlier reference, list or table again, without notifying observers.
  static func restore(_ value: Any, in model: ModelObject, at offset: Int)
}

/// Safe because the offset comes from the runtime's own description of the class and the type from
/// the same field, the object is alive while its address is used, and no access to the property is
/// open: the scope applies and reads fragments outside of every accessor.
extension Property: StoredProperty {
  static var valueType: any PropertyValue.Type { Value.self }
  static var declaredType: Any.Type { Value.self }
  static var targetClass: ModelObject.Type? { Value.heldClass }

  private static func pointer(_ address: UnsafeRawPointer) -> UnsafePointer<Property<Value>> {
    address.assumingMemoryBound(to: Property<Value>.self)
  }

  // A property stores nothing but its value, so both have the same address.
  // Code for any type looks up metadata at each call. Most values are of one of a few types.
  @_specialize(where Value == String)
  @_specialize(where Value == Int)
  @_specialize(where Value == Double)
  @_specialize(where Value == Bool)
  static func json(at address: UnsafeRawPointer) -> JSONValue { Value._json(at: address) }

  static func model(at address: UnsafeRawPointer) -> ModelObject? {
    Value.heldModel(pointer(address).pointee.value)
  }

  static func list(at address: UnsafeRawPointer) -> ModelList {
    Value.heldList(pointer(address).pointee.value) ?? ModelList()
  }

  static func table(at address: UnsafeRawPointer) -> ModelTable {
    Value.heldTable(pointer(address).pointee.value) ?? ModelTable()
  }

  @_specialize(where Value == String)
  @_specialize(where Value == Int)
  @_specialize(where Value == Double)
  @_specialize(where Value == Bool)
  static func accepts(_ json: JSONValue) -> Bool { Value._decode(json) != nil }

  static func _problem(with json: JSONValue) -> String? { Value._problem(with: json) }

  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    guard let a = Value._decode(a), let b = Value._decode(b) else { return false }
    return Value._isSame(a, b)
  }

  static func normalized(_ json: JSONValue) -> JSONValue? { Value._decode(json)?._jsonValue }

  @_specialize(where Value == String)
  @_specialize(where Value == Int)
  @_specialize(where Value == Double)
  @_specialize(where Value == Bool)
  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    Value._isSame(json, at: address)
  }

  static func wrap(_ list: ModelList) -> Any { Value.holding(list) ?? [] }

  static func clear(at address: UnsafeMutableRawPointer) {
    let storage = address.assumingMemoryBound(to: Property<Value>.self)
    let empty =
      switch Value._storageKind {
      case .collection: Value.holding(ModelList())
      case .dictionary: Value.holding(ModelTable())
      case .plain, .model, .reference: Value.holding(nil as ModelObject?)
      }
    if let empty { storage.pointee.value = empty }
  }

  static func edit(
    _ model: ModelObject, at offset: Int, _ change: (inout ModelList) -> Void
  ) {
    let storage = (Unmanaged.passUnretained(model).toOpaque() + offset)
      .assumingMemoryBound(to: Property<Value>.self)
    let lease = Value.openLease(at: &storage.pointee.value)
    Value.changeList(at: &storage.pointee.value, change)
    if let lease {
      model.didModifyCollection(at: offset, lease: lease, value: storage.pointee.value)
    }
  }

  static func add(_ delta: Int64, to model: ModelObject, at offset: Int) -> Bool {
    guard let type = Value.self as? any FixedWidthInteger.Type else { return false }
    func sum<Number: FixedWidthInteger>(_: Number.Type) -> Value? {
      let address = UnsafeRawPointer(Unmanaged.passUnretained(model).toOpaque()) + offset
      let value = pointer(address).pointee.value
      return (value as? Number)?.addingWithinRange(delta) as? Value
    }
    guard let value = sum(type) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.record?.didWrite(at: offset, old: old, new: value)
    return true
  }

  static func restore(_ value: Any, in model: ModelObject, at offset: Int) {
    if let list = value as? ModelList {
      if let array = Value.holding(list) { _ = exchange(array, in: model, at: offset) }
    } else if let table = value as? ModelTable {
      if let dictionary = Value.holding(table) { _ = exchange(dictionary, in: model, at: offset) }
    } else if let value = value as? Value {
      _ = exchange(value, in: model, at: offset)
    }
  }

  @_specialize(where Value == String)
  @_specialize(where Value == Int)
  @_specialize(where Value == Double)
  @_specialize(where Value == Bool)
  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool {
    assign(decoding: json, to: model, at: offset)
  }

  // Not inlined: code for any type would look up the metadata of its optional before it takes one of the ways above.
  @inline(never)
  private static func assign(
    decoding json: JSONValue, to model: ModelObject, at offset: Int
  ) -> Bool {
    guard let value = Value._decode(json) else { return false }
    assign(value: value, to: model, at: offset)
    return true
  }

  /// Writes a plain value, and notifies observers.
  @inline(__always)
  static func assign(value: Value, to model: ModelObject, at offset: Int) {
    guard let old = exchange(value, in: model, at: offset) else { return }
    model.record?.didWrite(at: offset, old: old, new: value)
  }

  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool {
    guard let value = Value.holding(child) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.didReplaceReference(at: offset, old: old, new: value)
    return true
  }

  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool {
    guard Value.canHoldModels(of: list), let value = Value.holding(list) else { return false }
    guard let old = exchange(value, in: model, at: offset) else { return true }
    model.didReplaceCollection(at: offset, old: old, new: value)
    return true
  }

  static func assign(_ table: ModelTable, to model: ModelObject, at offset: Int) -> Bool {
    guard let value = Value.holding(table) else { return false }
    let storage = (Unmanaged.passUnretained(model).toOpaque() + offset)
      .assumingMemoryBound(to: Property<Value>.self)
    let old = storage.pointee.value
    storage.pointee.value = value
    model.didReplaceDictionary(at: offset, old: old, new: value)
    return true
  }

  /// Stores `value` and returns the old one; nil if they are the same.
  @inline(__always)
  private static func exchange(_ value: Value, in model: ModelObject, at offset: Int) -> Value? {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: Property<Value>.self)
    let old = storage.pointee.value
    if Value._isSame(old, value) { return nil }
    storage.pointee.value = value
    return old
  }
}
