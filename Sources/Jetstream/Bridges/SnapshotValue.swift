import Foundation

/// The value of one property in a snapshot.
enum SnapshotValue: Sendable {
  /// A plain value of a type that may be shared between isolation domains.
  case value(SharedValue)
  /// A plain value of any other type, as JSON.
  case json(JSONValue)
  /// The place of a model among the snapshot's nodes.
  case model(Int?)
  /// The places of a collection's models.
  case models([Int])
  /// The places of a dictionary's models, in the order of their keys.
  case entries([Entry])

  /// An entry of a dictionary.
  struct Entry: Sendable {
    /// The text of the key.
    let key: String
    let place: Int
  }

  /// Returns true if both are the same plain value.
  func isSamePlain(as other: SnapshotValue) -> Bool {
    switch (self, other) {
    case (.value(let a), .value(let b)): Self.isSame(a.value, b.value)
    case (.json(let a), .json(let b)): a.isWritten(as: b)
    default: false
    }
  }

  private static func isSame<Value: PropertyValue>(_ a: Value, _ b: any PropertyValue) -> Bool {
    (b as? Value).map { Value._isSame(a, $0) } ?? false
  }
}

/// Carries a plain value from one isolation domain to others.
///
/// Safe although `PropertyValue` does not require Sendable: it is made only for types that
/// ``Property/isShareable`` has found to be Sendable or trivially copyable.
struct SharedValue: @unchecked Sendable {
  let value: any PropertyValue

  fileprivate init(_ value: any PropertyValue) { self.value = value }
}

/// Types whose values a snapshot stores directly. JSON would round a `Date`, for example.
private protocol ShareableValue: Sendable {}

extension String: ShareableValue {}
extension Date: ShareableValue {}
extension UUID: ShareableValue {}
extension URL: ShareableValue {}
extension Data: ShareableValue {}
extension Bool: ShareableValue {}
extension Int: ShareableValue {}
extension Int8: ShareableValue {}
extension Int16: ShareableValue {}
extension Int32: ShareableValue {}
extension Int64: ShareableValue {}
extension UInt: ShareableValue {}
extension UInt8: ShareableValue {}
extension UInt16: ShareableValue {}
extension UInt32: ShareableValue {}
extension UInt64: ShareableValue {}
extension Float: ShareableValue {}
extension Double: ShareableValue {}
extension RGBAColor: ShareableValue {}
extension Decimal: ShareableValue {}
extension JSONValue: ShareableValue {}

/// Containers whose values can be shared if their elements can.
private protocol ShareableContainer {
  static var holdsShareable: Bool { get }
}

extension Array: ShareableContainer {
  static var holdsShareable: Bool { isShareable(Element.self) }
}
extension Set: ShareableContainer {
  static var holdsShareable: Bool { isShareable(Element.self) }
}
extension Optional: ShareableContainer {
  static var holdsShareable: Bool { isShareable(Wrapped.self) }
}
extension Dictionary: ShareableContainer {
  static var holdsShareable: Bool { isShareable(Key.self) && isShareable(Value.self) }
}

func isShareable<Value>(_ type: Value.Type) -> Bool {
  if _isPOD(type) || type is any ShareableValue.Type || type is any CodableValue.Type {
    return true
  }
  return (type as? any ShareableContainer.Type)?.holdsShareable ?? false
}

/// Reads and writes the values of a `@Property` whose type is not known statically.
protocol SnapshotSource: SendableMetatype {
  /// True if a snapshot can store the values directly rather than as JSON.
  static var isShareable: Bool { get }
  /// True for a weak reference, which does not hold its target.
  static var isWeak: Bool { get }
  /// Returns the plain value at `address`.
  static func shared(at address: UnsafeRawPointer) -> SharedValue
  /// Stores a plain value without notifying observers.
  static func put(_ value: SnapshotValue, at address: UnsafeMutableRawPointer)
  /// Points a weak reference at the model that `find` returns for its UUID.
  static func relink(at address: UnsafeMutableRawPointer, _ find: (UUID) -> ModelObject?)
}

extension SnapshotSource {
  static var isWeak: Bool { false }

  static func relink(at address: UnsafeMutableRawPointer, _ find: (UUID) -> ModelObject?) {}
}

/// Safe for the reasons given at `StoredProperty`: type and offset come from the class's own
/// description, the object is alive, and no access to the property is open. The object that is
/// written to is private to the code that made it.
extension Property: SnapshotSource {
  static var isShareable: Bool { Jetstream.isShareable(Value.self) }

  private static func at(_ address: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Property> {
    address.assumingMemoryBound(to: Property.self)
  }

  static func shared(at address: UnsafeRawPointer) -> SharedValue {
    SharedValue(address.assumingMemoryBound(to: Property.self).pointee.value)
  }

  static func put(_ value: SnapshotValue, at address: UnsafeMutableRawPointer) {
    switch value {
    case .value(let shared):
      if let value = shared.value as? Value { at(address).pointee.value = value }
    case .json(let json):
      if let value = Value._decode(json) { at(address).pointee.value = value }
    case .model, .models, .entries: break
    }
  }
}

/// A weak reference is stored as the UUID of its target. Safe for the same reasons.
extension WeakReference: SnapshotSource {
  static var isWeak: Bool { true }
  static var isShareable: Bool { false }

  static func shared(at address: UnsafeRawPointer) -> SharedValue {
    preconditionFailure("A weak reference is not shared between isolation domains.")
  }

  static func put(_ value: SnapshotValue, at address: UnsafeMutableRawPointer) {
    guard case .json(let json) = value, let link = WeakLink<Target>._decode(json) else { return }
    address.assumingMemoryBound(to: WeakReference.self).pointee.link = link
  }

  static func relink(at address: UnsafeMutableRawPointer, _ find: (UUID) -> ModelObject?) {
    let reference = address.assumingMemoryBound(to: WeakReference.self)
    guard let uuid = reference.pointee.link.uuid, let target = find(uuid) as? Target else { return }
    reference.pointee.link = WeakLink(target)
  }
}
