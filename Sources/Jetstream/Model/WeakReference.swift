import CJetstream
import Foundation

/// Declares a property of a ``ModelObject`` subclass that refers to a model without holding it.
///
/// ```swift
/// final class Arrow: ModelObject {
///   @WeakReference var source: Shape?
///   @WeakReference(.wireName("to")) var target: Shape?
/// }
/// ```
///
/// A weak reference neither keeps its target alive nor brings it into a scope. It stores and sends
/// the UUID of the target, so it may name a model that does not exist yet or no longer exists.
/// Reading it returns the target while that is in the same scope as the referring model. If the
/// referring model is in no scope, reading returns the target while it is alive. Otherwise the
/// result is nil, and `$target` tells why:
///
/// ```swift
/// switch arrow.$target {
/// case .none: break
/// case .loaded(let shape): draw(to: shape)
/// case .missing(let uuid): drawStub(uuid)
/// }
/// ```
///
/// It is observed like any property. The reference does not change when its target enters or leaves
/// the scope; observe the target's attach and detach for that. Reading costs as much as a weak
/// variable, or a look-up by UUID if the reference was received from a peer.
@propertyWrapper
public struct WeakReference<Target: ModelObject> {
  /// The target of a weak reference.
  public enum State {
    /// The reference is nil.
    case none
    /// The target is available.
    case loaded(Target)
    /// The reference names a model that does not exist here or is of another class.
    case missing(UUID)
  }

  @usableFromInline var link: WeakLink<Target>

  /// Declares a weak reference with options. Its default value is nil.
  public init(
    _ options: @autoclosure () -> PropertyOptions, line: UInt = #line, column: UInt = #column,
    function: StaticString = #function
  ) {
    self.init(wrappedValue: nil, options(), line: line, column: column, function: function)
  }

  /// Declares a weak reference with a default value and options. The compiler fills in the place of
  /// the declaration, as for ``Property``.
  public init(
    wrappedValue: Target?, _ options: @autoclosure () -> PropertyOptions = [], line: UInt = #line,
    column: UInt = #column, function: StaticString = #function
  ) {
    link = WeakLink(wrappedValue)
    if jetstream_gate() != 0 {
      PropertyRecorder.record(
        WeakLink<Target>.self, line, column, function, options: options)
    }
  }

  /// Unavailable. The compiler requires this declaration; properties are accessed through their
  /// object.
  @available(*, unavailable, message: "@WeakReference belongs in a class that inherits ModelObject")
  public var wrappedValue: Target? {
    get { preconditionFailure("A @WeakReference was read outside of a ModelObject.") }
    set { preconditionFailure("A @WeakReference was written outside of a ModelObject.") }
  }

  /// Unavailable. The compiler requires this declaration; properties are accessed through their
  /// object.
  @available(*, unavailable, message: "@WeakReference belongs in a class that inherits ModelObject")
  public var projectedValue: State {
    preconditionFailure("A @WeakReference was read outside of a ModelObject.")
  }

  /// The target of the property of `owner`; nil if it is not available.
  @inlinable
  public static subscript<Owner: ModelObject>(
    _enclosingInstance owner: Owner,
    wrapped wrappedKeyPath: ReferenceWritableKeyPath<Owner, Target?>,
    storage storageKeyPath: ReferenceWritableKeyPath<Owner, WeakReference<Target>>
  ) -> Target? {
    get {
      if owner.readsAreNoted {
        owner.propertyIsRead(at: offset(of: &owner[keyPath: storageKeyPath], in: owner))
      }
      return owner[keyPath: storageKeyPath].link.target(of: owner)
    }
    set {
      let old = owner[keyPath: storageKeyPath].link
      let new = WeakLink(newValue)
      // Setting the same UUID is no change, but it may bring an object that was unknown before.
      owner[keyPath: storageKeyPath].link = new
      if WeakLink._isSame(old, new) {
        owner.didExchangeTarget(
          at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old)
        return
      }
      owner.didReplaceLink(
        at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old, new: new)
    }
  }

  /// The state of the property of `owner`.
  @inlinable
  public static subscript<Owner: ModelObject>(
    _enclosingInstance owner: Owner,
    projected projectedKeyPath: KeyPath<Owner, State>,
    storage storageKeyPath: ReferenceWritableKeyPath<Owner, WeakReference<Target>>
  ) -> State {
    get {
      if owner.readsAreNoted {
        owner.propertyIsRead(at: offset(of: &owner[keyPath: storageKeyPath], in: owner))
      }
      return owner[keyPath: storageKeyPath].link.state(of: owner)
    }
  }

  /// Returns the offset of the storage, as for ``Property``. Safe for the same reason.
  @inlinable @inline(__always)
  static func offset(of storage: inout WeakReference, in owner: ModelObject) -> Int {
    withUnsafeMutablePointer(to: &storage) {
      UnsafeRawPointer($0) - UnsafeRawPointer(Unmanaged.passUnretained(owner).toOpaque())
    }
  }
}

/// The value of a weak reference. Change sets, snapshots and messages treat it as a plain value.
@usableFromInline
struct WeakLink<Target: ModelObject> {
  private var knownUUID: UUID?
  /// Caches the target while it is alive, to save look-ups.
  private weak var model: Target?

  @usableFromInline
  init(_ model: Target?) {
    self.model = model
    knownUUID = model?.uuid
  }

  private init(uuid: UUID?) { knownUUID = uuid }

  /// The target's current UUID, which may differ from the stored one: a scope's root can get
  /// another UUID.
  var uuid: UUID? { knownUUID == nil ? nil : model?.uuid ?? knownUUID }

  /// Returns the target if `owner` can see it.
  @usableFromInline
  func target(of owner: ModelObject) -> Target? {
    guard let knownUUID else { return nil }
    let model = model
    guard let tree = owner.record?.tree else { return model }
    if let model, model.record?.tree === tree { return model }
    return tree.record(of: knownUUID)?.model as? Target
  }

  @usableFromInline
  func state(of owner: ModelObject) -> WeakReference<Target>.State {
    if let target = target(of: owner) { return .loaded(target) }
    return uuid.map { .missing($0) } ?? .none
  }
}

extension WeakLink: PropertyValue {
  @usableFromInline static var _propertyType: _PropertyType { .weakReference(Target.wireName) }

  @usableFromInline var _jsonValue: JSONValue { uuid.map { .string($0.wireText) } ?? .null }

  @usableFromInline
  static func _decode(_ json: JSONValue) -> WeakLink? {
    switch json {
    case .null: WeakLink(uuid: nil)
    case .string(let text): UUID(wireText: text).map { WeakLink(uuid: $0) }
    default: nil
    }
  }

  @usableFromInline
  static func _isSame(_ a: WeakLink, _ b: WeakLink) -> Bool { a.uuid == b.uuid }
}

extension ModelObject {
  /// Notes that a weak reference was written. Called after the access to the property has ended.
  @usableFromInline
  final func didReplaceLink<Target>(
    at offset: Int, old: WeakLink<Target>, new: WeakLink<Target>
  ) {
    guard let record else { return }
    let index = record.schema.index(atOffset: offset)
    if record.needsBase(index) { keep(old, of: index, at: offset, record) }
    record.noteChange(index)
    record.fire(index) {
      $0.add {
        PropertyChange(
          key: record.schema.properties[index].name, old: old.target(of: self) as Target? as Any,
          new: new.target(of: self) as Target? as Any)
      }
    }
  }
}

extension ModelObject {
  /// Notes that a weak reference leads to another model with the same UUID. That is not a change,
  /// but rolling back a transaction must restore the earlier model.
  @usableFromInline
  final func didExchangeTarget<Target>(at offset: Int, old: WeakLink<Target>) {
    guard let record, record.isInTransaction else { return }
    let index = record.schema.index(atOffset: offset)
    if record.needsBase(index) { keep(old, of: index, at: offset, record) }
  }

  private final func keep<Target>(
    _ old: WeakLink<Target>, of index: Int, at offset: Int, _ record: ModelRecord
  ) {
    record.keepBase(
      index,
      record.isInTransaction
        ? .plain(old._jsonValue) { WeakReference<Target>.restore(old, to: $0, at: offset) }
        : .json(old._jsonValue))
  }
}

/// Safe for the same reasons as the conformance of ``Property``.
extension WeakReference: StoredProperty {
  static var valueType: any PropertyValue.Type { WeakLink<Target>.self }
  static var declaredType: Any.Type { Target?.self }
  static var targetClass: ModelObject.Type? { Target.self }

  private static func link(_ address: UnsafeRawPointer) -> WeakLink<Target> {
    address.assumingMemoryBound(to: WeakReference<Target>.self).pointee.link
  }

  static func json(at address: UnsafeRawPointer) -> JSONValue { link(address)._jsonValue }

  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    WeakLink<Target>._decode(json).map { WeakLink._isSame($0, link(address)) } ?? false
  }

  static func _problem(with json: JSONValue) -> String? { nil }

  static func accepts(_ json: JSONValue) -> Bool { WeakLink<Target>._decode(json) != nil }

  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    guard let a = WeakLink<Target>._decode(a), let b = WeakLink<Target>._decode(b) else {
      return false
    }
    return WeakLink._isSame(a, b)
  }

  static func normalized(_ json: JSONValue) -> JSONValue? {
    WeakLink<Target>._decode(json)?._jsonValue
  }

  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool {
    guard let new = WeakLink<Target>._decode(json) else { return false }
    assign(new, to: model, at: offset)
    return true
  }

  /// Writes a link, and notifies observers.
  fileprivate static func assign(_ new: WeakLink<Target>, to model: ModelObject, at offset: Int) {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: WeakReference<Target>.self)
    let old = storage.pointee.link
    if WeakLink._isSame(old, new) { return }
    storage.pointee.link = new
    model.didReplaceLink(at: offset, old: old, new: new)
  }

  /// Restores a link with its original model, and notifies observers if the UUID differs.
  fileprivate static func restore(_ link: WeakLink<Target>, to model: ModelObject, at offset: Int) {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: WeakReference<Target>.self)
    let old = storage.pointee.link
    storage.pointee.link = link
    if !WeakLink._isSame(old, link) { model.didReplaceLink(at: offset, old: old, new: link) }
  }

  // It holds no models.
  static func model(at address: UnsafeRawPointer) -> ModelObject? { nil }
  static func list(at address: UnsafeRawPointer) -> ModelList { ModelList() }
  static func table(at address: UnsafeRawPointer) -> ModelTable { ModelTable() }
  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool { false }
  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool { false }
  static func assign(_ table: ModelTable, to model: ModelObject, at offset: Int) -> Bool { false }
  static func edit(
    _ model: ModelObject, at offset: Int, _ change: (inout ModelList) -> Void
  ) {}
  static func add(_ delta: Int64, to model: ModelObject, at offset: Int) -> Bool { false }
  static func clear(at address: UnsafeMutableRawPointer) {}
  static func wrap(_ list: ModelList) -> Any { [] }
  static func restore(_ value: Any, in model: ModelObject, at offset: Int) {}
}
