import Foundation

/// One step in the life of a property, which says what was done instead of what came of it.
///
/// It costs its own size, whatever the size of the property, and what several people did at the same
/// time can all be done, one after the other.
public enum PropertyOperation: Sendable, Hashable {
  /// Puts a model into a collection. One that is in it already is moved.
  case insert(UUID, Place)
  /// Takes a model out of a collection, if it is in it.
  case remove(UUID)
  /// Puts a model of a collection elsewhere in it, if it is in it.
  case move(UUID, Place)
  /// Adds to a whole number. The result stays within what the property's type can hold.
  case add(Int64)

  /// Where a model goes.
  public enum Place: Sendable, Hashable {
    /// In front of all others.
    case start
    /// Behind all others.
    case end
    /// Behind the first of these models that is in the collection, nearest first; behind all others if
    /// none is.
    case after([UUID])
  }

  /// The model that is put, moved or taken out.
  package var model: UUID? {
    switch self {
    case .insert(let uuid, _), .remove(let uuid), .move(let uuid, _): uuid
    case .add: nil
    }
  }

  /// The models that the operation names: its own and those that say where it goes.
  var named: [UUID] {
    switch self {
    case .insert(let uuid, .after(let others)), .move(let uuid, .after(let others)):
      [uuid] + others
    default: model.map { [$0] } ?? []
    }
  }

  /// The operation with `new` in place of `old` wherever it is named.
  func renaming(_ old: UUID, to new: UUID) -> PropertyOperation {
    func name(_ uuid: UUID) -> UUID { uuid == old ? new : uuid }
    func place(_ place: Place) -> Place {
      if case .after(let others) = place { .after(others.map(name)) } else { place }
    }
    return switch self {
    case .insert(let uuid, let at): .insert(name(uuid), place(at))
    case .remove(let uuid): .remove(name(uuid))
    case .move(let uuid, let at): .move(name(uuid), place(at))
    case .add: self
    }
  }
}

/// The operations of a fragment by the names of the properties, in the order in which the properties
/// were changed.
public struct PropertyOperations: Sendable, Hashable {
  /// The operations of one property, in the order in which they are done.
  public struct Entry: Sendable, Hashable {
    /// What the property is called on the wire.
    public let key: String
    /// What is done, one after the other.
    public internal(set) var operations: [PropertyOperation]
  }

  private var entries: [Entry] = []

  /// Makes an empty one.
  package init() {}

  /// The operations of a property; empty if there are none. Setting none removes the property.
  public subscript(key: String) -> [PropertyOperation] {
    get { entries.first { $0.key == key }?.operations ?? [] }
    set {
      let place = entries.firstIndex { $0.key == key }
      switch (place, newValue.isEmpty) {
      case (let place?, false): entries[place].operations = newValue
      case (let place?, true): entries.remove(at: place)
      case (nil, false): entries.append(Entry(key: key, operations: newValue))
      case (nil, true): break
      }
    }
  }

  /// Adds the operations of a property that has none yet.
  mutating func append(newKey key: String, _ operations: [PropertyOperation]) {
    entries.append(Entry(key: key, operations: operations))
  }

  /// The operations with `new` in place of `old` wherever it is named.
  func renaming(_ old: UUID, to new: UUID) -> PropertyOperations {
    var result = self
    for place in result.entries.indices {
      result.entries[place].operations = entries[place].operations.map {
        $0.renaming(old, to: new)
      }
    }
    return result
  }
}

extension PropertyOperations: RandomAccessCollection {
  /// The place of the first property.
  public var startIndex: Int { 0 }
  /// The number of properties.
  public var endIndex: Int { entries.count }
  /// The property at a place.
  public subscript(position: Int) -> Entry { entries[position] }
}

extension PropertyOperations: ExpressibleByDictionaryLiteral {
  /// Makes one of the literal's pairs.
  public init(dictionaryLiteral elements: (String, [PropertyOperation])...) {
    for (key, operations) in elements { self[key] = operations }
  }
}
