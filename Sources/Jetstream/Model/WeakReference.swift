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
/// A weak reference neither keeps its target alive nor brings it into a scope. What it stores, and what
/// goes over the wire, is the target's UUID: so it may name a model that is not there yet, or not any
/// more. Reading it gives the target while that is in the scope of the model that refers to it, or, if
/// that one is in no scope, while the target is alive; nil otherwise. `$target` tells why:
///
/// ```swift
/// switch arrow.$target {
/// case .none: break
/// case .loaded(let shape): draw(to: shape)
/// case .missing(let uuid): drawStub(uuid)
/// }
/// ```
///
/// It is observed like any property. A target that comes or goes does not change the reference and
/// notifies nobody; observe its attach and detach for that. Cost of reading: a weak reference's, or a
/// look-up by UUID where the reference came from elsewhere.
@propertyWrapper
public struct WeakReference<Target: ModelObject> {
  /// What a weak reference leads to.
  public enum State {
    /// It is nil.
    case none
    /// To a model that is there.
    case loaded(Target)
    /// To a model that is not there, or is none of the target's class.
    case missing(UUID)
  }

  @usableFromInline var link: WeakLink<Target>

  /// Declares a weak reference. Where it is declared is filled in by the compiler, as for ``Property``.
  public init(
    wrappedValue: Target?, line: UInt = #line, column: UInt = #column,
    function: StaticString = #function
  ) {
    self.init(
      wrappedValue: wrappedValue, PropertyOptions(), line: line, column: column,
      function: function)
  }

  /// Declares a weak reference with options, nil at first.
  public init(
    _ options: @autoclosure () -> PropertyOptions, line: UInt = #line, column: UInt = #column,
    function: StaticString = #function
  ) {
    self.init(wrappedValue: nil, options(), line: line, column: column, function: function)
  }

  /// Declares a weak reference with options.
  public init(
    wrappedValue: Target?, _ options: @autoclosure () -> PropertyOptions, line: UInt = #line,
    column: UInt = #column, function: StaticString = #function
  ) {
    link = WeakLink(wrappedValue)
    if jetstream_gate() != 0 {
      PropertyRecorder.record(
        WeakLink<Target>.self, line, column, function, options: options)
    }
  }

  /// Only there because the compiler asks for it; properties are reached through their object.
  @available(*, unavailable, message: "@WeakReference belongs in a class that inherits ModelObject")
  public var wrappedValue: Target? {
    get { preconditionFailure("A @WeakReference was read outside of a ModelObject.") }
    set { preconditionFailure("A @WeakReference was written outside of a ModelObject.") }
  }

  /// Only there because the compiler asks for it; properties are reached through their object.
  @available(*, unavailable, message: "@WeakReference belongs in a class that inherits ModelObject")
  public var projectedValue: State {
    preconditionFailure("A @WeakReference was read outside of a ModelObject.")
  }

  /// Reads and writes the property of `owner`.
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
      // The same UUID again is no change, but may bring the object that was not known before.
      owner[keyPath: storageKeyPath].link = new
      if WeakLink.isSame(old, new) {
        owner.didExchangeTarget(
          at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old)
        return
      }
      owner.didReplaceLink(
        at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old, new: new)
    }
  }

  /// Tells where the property of `owner` leads.
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

  /// As for ``Property``, and sound for the same reason.
  @inlinable @inline(__always)
  static func offset(of storage: inout WeakReference, in owner: ModelObject) -> Int {
    withUnsafeMutablePointer(to: &storage) {
      UnsafeRawPointer($0) - UnsafeRawPointer(Unmanaged.passUnretained(owner).toOpaque())
    }
  }
}

/// The value of a weak reference: a plain value towards everything that collects, stores and sends.
@usableFromInline
struct WeakLink<Target: ModelObject> {
  private var knownUUID: UUID?
  /// Saves looking the target up, while it is alive.
  private weak var model: Target?

  @usableFromInline
  init(_ model: Target?) {
    self.model = model
    knownUUID = model?.uuid
  }

  private init(uuid: UUID?) { knownUUID = uuid }

  /// The target's UUID; a scope's root may have got another one since.
  var uuid: UUID? { knownUUID == nil ? nil : model?.uuid ?? knownUUID }

  /// The target, if `owner` can see it.
  @usableFromInline
  func target(of owner: ModelObject) -> Target? {
    guard let knownUUID else { return nil }
    let model = model
    guard let scope = owner.scope else { return model }
    if let model, model.scope === scope { return model }
    return scope.model(knownUUID) as? Target
  }

  @usableFromInline
  func state(of owner: ModelObject) -> WeakReference<Target>.State {
    if let target = target(of: owner) { return .loaded(target) }
    return uuid.map { .missing($0) } ?? .none
  }
}

extension WeakLink: PropertyValue {
  @usableFromInline static var propertyType: PropertyType { .weakReference(Target.wireName) }

  @usableFromInline var jsonValue: JSONValue { uuid.map { .string($0.wireText) } ?? .null }

  @usableFromInline
  static func decode(_ json: JSONValue) -> WeakLink? {
    switch json {
    case .null: WeakLink(uuid: nil)
    case .string(let text): UUID(wireText: text).map { WeakLink(uuid: $0) }
    default: nil
    }
  }

  @usableFromInline
  static func isSame(_ a: WeakLink, _ b: WeakLink) -> Bool { a.uuid == b.uuid }
}

extension ModelObject {
  /// A weak reference was written; its access has ended.
  @usableFromInline
  final func didReplaceLink<Target>(
    at offset: Int, old: WeakLink<Target>, new: WeakLink<Target>
  ) {
    guard let record else { return }
    let index = record.schema.index(atOffset: offset)
    if record.needsBase(index) { keep(old, of: index, at: offset, record) }
    record.noteChange(index)
    if let bridge = record.observers?.bridge { record.fire { bridge.didChange(index) } }
    guard let signal = record.observers?.propertyChange, signal.hasListeners else { return }
    let change = PropertyChange(
      key: record.schema.properties[index].name, old: old.target(of: self) as Target? as Any,
      new: new.target(of: self) as Target? as Any)
    record.fire { signal.fire(change) }
  }
}

extension ModelObject {
  /// A weak reference leads to another model with the same UUID, which is no change; but a call of `modify`
  /// that is taken back has to lead to the one from before.
  @usableFromInline
  final func didExchangeTarget<Target>(at offset: Int, old: WeakLink<Target>) {
    guard let record, record.modification != nil else { return }
    let index = record.schema.index(atOffset: offset)
    if record.needsBase(index) { keep(old, of: index, at: offset, record) }
  }

  private final func keep<Target>(
    _ old: WeakLink<Target>, of index: Int, at offset: Int, _ record: ModelRecord
  ) {
    record.keepBase(index, .json(old.jsonValue))
    guard let modification = record.modification else { return }
    let write = { WeakReference<Target>.restore(old, to: $0, at: offset) }
    modification.keep(.plain(write), of: index, in: record)
  }
}

/// Sound for the same reasons as ``Property``'s.
extension WeakReference: StoredProperty {
  static var valueType: any PropertyValue.Type { WeakLink<Target>.self }
  static var declaredType: Any.Type { Target?.self }
  static var targetClass: ModelObject.Type? { Target.self }

  private static func link(_ address: UnsafeRawPointer) -> WeakLink<Target> {
    address.assumingMemoryBound(to: WeakReference<Target>.self).pointee.link
  }

  static func json(at address: UnsafeRawPointer) -> JSONValue { link(address).jsonValue }

  static func isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    WeakLink<Target>.decode(json).map { WeakLink.isSame($0, link(address)) } ?? false
  }

  static func problem(with json: JSONValue) -> String? { nil }

  static func accepts(_ json: JSONValue) -> Bool { WeakLink<Target>.decode(json) != nil }

  static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    guard let a = WeakLink<Target>.decode(a), let b = WeakLink<Target>.decode(b) else {
      return false
    }
    return WeakLink.isSame(a, b)
  }

  static func normalized(_ json: JSONValue) -> JSONValue? { json }

  static func assign(_ json: JSONValue, to model: ModelObject, at offset: Int) -> Bool {
    guard let new = WeakLink<Target>.decode(json) else { return false }
    assign(new, to: model, at: offset)
    return true
  }

  /// Writes a link, and notifies.
  fileprivate static func assign(_ new: WeakLink<Target>, to model: ModelObject, at offset: Int) {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: WeakReference<Target>.self)
    let old = storage.pointee.link
    if WeakLink.isSame(old, new) { return }
    storage.pointee.link = new
    model.didReplaceLink(at: offset, old: old, new: new)
  }

  /// Writes a link with the very model that it has known, and notifies if it has another UUID.
  fileprivate static func restore(_ link: WeakLink<Target>, to model: ModelObject, at offset: Int) {
    let address = Unmanaged.passUnretained(model).toOpaque() + offset
    let storage = address.assumingMemoryBound(to: WeakReference<Target>.self)
    let old = storage.pointee.link
    storage.pointee.link = link
    if !WeakLink.isSame(old, link) { model.didReplaceLink(at: offset, old: old, new: link) }
  }

  // It holds no models.
  static func model(at address: UnsafeRawPointer) -> ModelObject? { nil }
  static func list(at address: UnsafeRawPointer) -> ModelList { ModelList() }
  static func assign(_ child: ModelObject?, to model: ModelObject, at offset: Int) -> Bool { false }
  static func assign(_ list: ModelList, to model: ModelObject, at offset: Int) -> Bool { false }
  static func edit(
    _ model: ModelObject, at offset: Int, _ change: (inout ModelList) -> Void
  ) {}
  static func add(_ delta: Int64, to model: ModelObject, at offset: Int) -> Bool { false }
  static func clear(at address: UnsafeMutableRawPointer) {}
  static func wrap(_ list: ModelList) -> Any { [] }
  static func restore(_ value: Any, in model: ModelObject, at offset: Int) {}
}
