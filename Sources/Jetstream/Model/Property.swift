import CJetstream

/// Declares an observed property of a ``ModelObject`` subclass.
///
/// ```swift
/// final class Shape: ModelObject {
///   @Property var x: Float = 0
///   @Property(.local) var isSelected = false
/// }
/// ```
///
/// The value is stored inline in the object. Reading it costs little more than reading a plain
/// stored property. Writing an equal value does nothing. Changing a value in place (`+=`, `append`,
/// an inout argument) notifies observers once, after the change has ended; until then, reads return
/// the old value. The exception is a ``ModelArray``: it is not copied, so the property must not be
/// read while it is changed in place, for example in the closure of `removeAll(where:)`, or in an
/// observer that the closure sets off. Such a read is a conflicting access, for which Swift traps.
/// Read the property into a constant before.
///
/// In-place changes of an array or dictionary of plain values cost O(n), because the old value is
/// kept for comparison. The exception is a model that has no parent, children, scope or observer
/// and whose UUID was never read. A ``ModelArray`` that is changed in place records its steps
/// instead, and a copy of a ``ModelDictionary`` shares nearly everything.
@propertyWrapper
@frozen
public struct Property<Value: PropertyValue> {
  @usableFromInline var value: Value

  /// Declares a property with a default value.
  ///
  /// The compiler fills in the place of the declaration, which identifies the property within its
  /// class when the schema is made.
  @inlinable
  public init(
    wrappedValue: Value, line: UInt = #line, column: UInt = #column,
    function: StaticString = #function
  ) {
    value = wrappedValue
    if jetstream_gate() != 0 {
      PropertyRecorder.record(Value.self, line, column, function) { [] }
    }
  }

  /// Declares a property with a default value and options. The options are evaluated once for the
  /// class, not for each model.
  @inlinable
  public init(
    wrappedValue: Value, _ options: @autoclosure () -> PropertyOptions, line: UInt = #line,
    column: UInt = #column, function: StaticString = #function
  ) {
    value = wrappedValue
    if jetstream_gate() != 0 {
      PropertyRecorder.record(Value.self, line, column, function, options: options)
    }
  }

  /// Declares an optional property with options. Its default value is nil.
  @inlinable
  public init(
    _ options: @autoclosure () -> PropertyOptions, line: UInt = #line, column: UInt = #column,
    function: StaticString = #function
  ) where Value: ExpressibleByNilLiteral {
    self.init(
      wrappedValue: nil, options(), line: line, column: column, function: function)
  }

  /// Unavailable. The compiler requires this declaration; properties are accessed through their
  /// object.
  @available(*, unavailable, message: "@Property belongs in a class that inherits ModelObject")
  public var wrappedValue: Value {
    get { preconditionFailure("A @Property was read outside of a ModelObject.") }
    set { preconditionFailure("A @Property was written outside of a ModelObject.") }
  }

  /// The value of the property of `owner`.
  @inlinable
  public static subscript<Owner: ModelObject>(
    _enclosingInstance owner: Owner,
    wrapped wrappedKeyPath: ReferenceWritableKeyPath<Owner, Value>,
    storage storageKeyPath: ReferenceWritableKeyPath<Owner, Property<Value>>
  ) -> Value {
    @inline(__always) get {
      if owner.readsAreNoted {
        owner.propertyIsRead(at: offset(of: &owner[keyPath: storageKeyPath], in: owner))
      }
      return owner[keyPath: storageKeyPath].value
    }
    @inline(__always) set { assign(newValue, to: owner, storageKeyPath) }
    @inline(__always) _modify {
      if Value._storageKind == .collection {
        let slot = offset(of: &owner[keyPath: storageKeyPath], in: owner)
        let lease = withUnsafeMutablePointer(to: &owner[keyPath: storageKeyPath].value) {
          Value.openLease(at: $0)
        }
        owner.willModifyCollection(at: slot, lease: lease!)
        defer {
          owner.didModifyCollection(
            at: slot, lease: lease!, value: owner[keyPath: storageKeyPath].value)
        }
        yield &owner[keyPath: storageKeyPath].value
      } else if Value._isBuffer, owner.record == nil {
        yield &owner[keyPath: storageKeyPath].value
      } else {
        // A copy is lent, so that the property can be read while this change goes on: by observers
        // of another property that is changed at once, as with `swap(&a.x, &b.x)`.
        //
        // For a type, all but one `yield` of this accessor are constantly left out, and what follows it names no key
        // path: otherwise the compiler keeps the key path, and checks the exclusivity of each access to the property
        // in the app, which makes a read ten times slower.
        let slot = offset(of: &owner[keyPath: storageKeyPath], in: owner)
        let lent = owner[keyPath: storageKeyPath].value
        var new = lent
        defer { takeBack(new, lent: lent, to: owner, at: slot) }
        yield &new
      }
    }
  }

  /// Stores a value, and notifies observers if it differs from the current one.
  @inlinable @inline(__always)
  static func assign<Owner: ModelObject>(
    _ newValue: Value, to owner: Owner,
    _ storageKeyPath: ReferenceWritableKeyPath<Owner, Property<Value>>
  ) {
    switch Value._storageKind {
    case .plain:
      guard let record = owner.record else {
        owner[keyPath: storageKeyPath].value = newValue
        return
      }
      let old = owner[keyPath: storageKeyPath].value
      if Value._isSame(old, newValue) { return }
      owner[keyPath: storageKeyPath].value = newValue
      let slot = offset(of: &owner[keyPath: storageKeyPath], in: owner)
      if !record.isNoted(at: slot) { record.didWrite(at: slot, old: old, new: newValue) }
    case .model, .reference:
      let old = owner[keyPath: storageKeyPath].value
      if Value._isSame(old, newValue) { return }
      owner[keyPath: storageKeyPath].value = newValue
      owner.didReplaceReference(
        at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old, new: newValue)
    case .collection:
      let old = owner[keyPath: storageKeyPath].value
      if Value._isSame(old, newValue) { return }
      owner[keyPath: storageKeyPath].value = newValue
      owner.didReplaceCollection(
        at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old, new: newValue)
    case .dictionary:
      let old = owner[keyPath: storageKeyPath].value
      owner[keyPath: storageKeyPath].value = newValue
      owner.didReplaceDictionary(
        at: offset(of: &owner[keyPath: storageKeyPath], in: owner), old: old, new: newValue)
    }
  }

  /// Ends a change in place: stores the changed copy, and notifies observers.
  ///
  /// Safe because the offset is that of a property of this type in the same object, which is alive,
  /// and because no access to the property is open: the property itself is lent only for a model
  /// that has no record.
  @inlinable @inline(never)
  static func takeBack(_ new: Value, lent: Value, to owner: ModelObject, at slot: Int) {
    // The difference of two dictionaries is looked for once, and by the object.
    let isDictionary = Value._storageKind == .dictionary
    if !isDictionary, Value._isSame(lent, new) { return }
    let storage = (Unmanaged.passUnretained(owner).toOpaque() + slot)
      .assumingMemoryBound(to: Property<Value>.self)
    let old = storage.pointee.value
    if !isDictionary, Value._isSame(old, new) { return }
    storage.pointee.value = new
    if isDictionary {
      owner.didReplaceDictionary(at: slot, old: old, new: new)
    } else if Value._storageKind != .plain {
      owner.didReplaceReference(at: slot, old: old, new: new)
    } else if let record = owner.record, !record.isNoted(at: slot) {
      record.didWrite(at: slot, old: old, new: new)
    }
  }

  /// Returns the offset of the storage within its object, which identifies the property.
  ///
  /// Safe because only the distance of two addresses is taken; nothing is read through them.
  @inlinable @inline(__always)
  static func offset(of storage: inout Property, in owner: ModelObject) -> Int {
    withUnsafeMutablePointer(to: &storage) {
      UnsafeRawPointer($0) - UnsafeRawPointer(Unmanaged.passUnretained(owner).toOpaque())
    }
  }
}
