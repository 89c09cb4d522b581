/// A type whose values hold models: a class of models, an optional one, a ``ModelArray`` or a ``ModelDictionary``.
protocol ModelHolder: PropertyValue {
  /// The class of the models; nil for an optional value that is none.
  static var modelClass: ModelObject.Type? { get }
  /// Returns the model that the reference of this type at `address` holds.
  static func model(at address: UnsafeRawPointer) -> ModelObject?
  /// Returns a reference to `model`; nil if its class does not fit.
  static func value(of model: ModelObject?) -> Self?
  /// Returns the list of models that the collection of this type at `address` holds.
  static func list(at address: UnsafeRawPointer) -> ModelList?
  /// Returns a collection of `list`, all of whose models fit; nil if this is no type of collections.
  static func value(of list: ModelList) -> Self?
  /// Returns the table of models that the dictionary of this type at `address` holds.
  static func table(at address: UnsafeRawPointer) -> ModelTable?
  /// Returns a dictionary of `table`, all of whose models fit; nil if this is no type of dictionaries.
  static func value(of table: ModelTable) -> Self?
  /// Returns true if a property of this type can hold `model`.
  static func canHold(_ model: ModelObject) -> Bool
  /// Opens a lease, which records changes of the collection of this type at `address`.
  static func openLease(at address: UnsafeMutableRawPointer) -> ListLease?
  /// Changes the list of the collection of this type at `address` in place.
  static func changeList(at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void)
}

extension ModelHolder {
  static func model(at address: UnsafeRawPointer) -> ModelObject? { nil }
  static func value(of model: ModelObject?) -> Self? { nil }
  static func list(at address: UnsafeRawPointer) -> ModelList? { nil }
  static func value(of list: ModelList) -> Self? { nil }
  static func table(at address: UnsafeRawPointer) -> ModelTable? { nil }
  static func value(of table: ModelTable) -> Self? { nil }
  static func openLease(at address: UnsafeMutableRawPointer) -> ListLease? { nil }
  static func changeList(at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void) {
  }
}

/// The framework's access to the models that values of a type hold. Public because ``PropertyValue``
/// names it; not meant to be used directly.
public struct _ModelHolding {
  let type: any ModelHolder.Type
}

extension ModelObject: ModelHolder {
  static var modelClass: ModelObject.Type? { Self.self }
  static func model(at address: UnsafeRawPointer) -> ModelObject? {
    address.assumingMemoryBound(to: ModelObject.self).pointee
  }

  static func value(of model: ModelObject?) -> Self? { model as? Self }
  static func canHold(_ model: ModelObject) -> Bool { model is Self }
}

extension Optional: ModelHolder where Wrapped: PropertyValue {
  static var modelClass: ModelObject.Type? { Wrapped.heldClass }

  static func model(at address: UnsafeRawPointer) -> ModelObject? {
    address.assumingMemoryBound(to: Wrapped?.self).pointee.flatMap(Wrapped.heldModel)
  }

  static func value(of model: ModelObject?) -> Wrapped?? {
    guard let model else { return .some(nil) }
    return Wrapped.holding(model).map { .some($0) }
  }

  static func canHold(_ model: ModelObject) -> Bool { Wrapped.canHoldModel(model) }
}

extension ModelArray: ModelHolder {
  static var modelClass: ModelObject.Type? { Element.self }

  static func list(at address: UnsafeRawPointer) -> ModelList? {
    address.assumingMemoryBound(to: ModelArray.self).pointee.list
  }

  /// The caller has checked each model with `canHold`, or has the list from an array of this type: looking at each would
  /// cost O(n) for every step of which a property observer is told.
  static func value(of list: ModelList) -> ModelArray? { ModelArray(list: list) }

  static func canHold(_ model: ModelObject) -> Bool { model is Element }

  static func openLease(at address: UnsafeMutableRawPointer) -> ListLease? {
    ListLease(&address.assumingMemoryBound(to: ModelArray.self).pointee.list)
  }

  static func changeList(at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void) {
    change(&address.assumingMemoryBound(to: ModelArray.self).pointee.list)
  }
}

/// The same for any value, which may hold no models.
///
/// Safe because the holder of a type is the type itself, as each ``PropertyValue/_holder`` says: a
/// value of the one is a value of the other.
extension PropertyValue {
  /// The class of the models that values hold; nil if they hold none.
  static var heldClass: ModelObject.Type? { _holder.flatMap { $0.type.modelClass } }

  /// Returns the model that a reference holds.
  static func heldModel(_ value: Self) -> ModelObject? {
    withUnsafePointer(to: value) { _holder?.type.model(at: $0) }
  }

  private static func same<Held>(_ value: Held?) -> Self? {
    value.map { unsafeBitCast($0, to: Self.self) }
  }

  /// Returns a reference to `model`; nil if its class does not fit.
  static func holding(_ model: ModelObject?) -> Self? {
    func make<Holder: ModelHolder>(_: Holder.Type) -> Self? { same(Holder.value(of: model)) }
    return _holder.flatMap { make($0.type) }
  }

  /// Returns the list of models that a collection holds.
  static func heldList(_ value: Self) -> ModelList? {
    withUnsafePointer(to: value) { _holder?.type.list(at: $0) }
  }

  /// Returns a collection of `list`, all of whose models fit; nil if this is no type of collections.
  static func holding(_ list: ModelList) -> Self? {
    func make<Holder: ModelHolder>(_: Holder.Type) -> Self? { same(Holder.value(of: list)) }
    return _holder.flatMap { make($0.type) }
  }

  /// Returns the table of models that a dictionary holds.
  static func heldTable(_ value: Self) -> ModelTable? {
    withUnsafePointer(to: value) { _holder?.type.table(at: $0) }
  }

  /// Returns a dictionary of `table`, all of whose models fit; nil if this is no type of dictionaries.
  static func holding(_ table: ModelTable) -> Self? {
    func make<Holder: ModelHolder>(_: Holder.Type) -> Self? { same(Holder.value(of: table)) }
    return _holder.flatMap { make($0.type) }
  }

  /// Returns true if a property of this type can hold `model`.
  static func canHoldModel(_ model: ModelObject) -> Bool { _holder?.type.canHold(model) ?? false }

  /// Returns true if a property of this type can hold each model of `list`. Cost: O(n).
  static func canHoldModels(of list: ModelList) -> Bool {
    guard let type = _holder?.type else { return false }
    var fits = true
    list.forEach { if !type.canHold($0) { fits = false } }
    return fits
  }

  /// Opens a lease, which records changes of the collection at `address`.
  @usableFromInline
  static func openLease(at address: UnsafeMutablePointer<Self>) -> ListLease? {
    _holder?.type.openLease(at: address)
  }

  /// Changes the list of the collection at `address` in place.
  static func changeList(
    at address: UnsafeMutablePointer<Self>, _ change: (inout ModelList) -> Void
  ) {
    _holder?.type.changeList(at: address, change)
  }
}
