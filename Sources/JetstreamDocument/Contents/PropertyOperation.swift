import Foundation

/// A change of a collection or a counter, described by what is done and not by the new value.
///
/// Its size does not depend on that of the property, and the operations of several replicas made at the same time
/// can all be applied, one after the other.
public enum PropertyOperation: Sendable, Hashable {
  /// Inserts a model into a collection. A model that is in it already is moved.
  case insert(UUID, Place)
  /// Removes a model from a collection, if it is in it.
  case remove(UUID)
  /// Moves a model within a collection, if it is in it.
  case move(UUID, Place)
  /// Adds to a whole number. The result stays within the range of the property's type.
  case add(Int64)

  /// The place of a model in a collection.
  public enum Place: Sendable, Hashable {
    /// In front of all other models.
    case start
    /// Behind all other models.
    case end
    /// Behind the first of these models that is in the collection, the nearest predecessor first; behind all other
    /// models if none is.
    case after([UUID])
  }

  /// The model that is inserted, moved or removed; nil for an addition to a number.
  package var model: UUID? {
    switch self {
    case .insert(let uuid, _), .remove(let uuid), .move(let uuid, _): uuid
    case .add: nil
    }
  }

  /// The models that the operation names: its own and the predecessors.
  var named: [UUID] {
    switch self {
    case .insert(let uuid, .after(let others)), .move(let uuid, .after(let others)):
      [uuid] + others
    default: model.map { [$0] } ?? []
    }
  }

  /// Returns the operation with the UUID `new` wherever it names `old`.
  package func renaming(_ old: UUID, to new: UUID) -> PropertyOperation {
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

/// The operations of a fragment by property name, in the order in which the properties were changed.
package struct PropertyOperations: Sendable, Hashable {
  /// The operations of one property, in order.
  package struct Entry: Sendable, Hashable {
    /// The name of the property on the wire.
    package let key: String
    /// The operations, in the order in which they are applied.
    package internal(set) var operations: [PropertyOperation]
  }

  @usableFromInline package private(set) var entries: [Entry] = []

  /// Makes a list without operations.
  package init() {}

  /// The operations of a property; empty if there are none. Setting an empty array removes the property.
  package subscript(key: String) -> [PropertyOperation] {
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
  package mutating func append(newKey key: String, _ operations: [PropertyOperation]) {
    entries.append(Entry(key: key, operations: operations))
  }

  /// Returns the operations with the UUID `new` wherever they name `old`.
  package func renaming(_ old: UUID, to new: UUID) -> PropertyOperations {
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
  // Said for this type itself, so that other targets need no witnesses.
  @inlinable package var isEmpty: Bool { entries.isEmpty }
  @inlinable package var count: Int { entries.count }
  @inlinable package func makeIterator() -> IndexingIterator<[Entry]> { entries.makeIterator() }

  /// The index of the first property.
  @inlinable package var startIndex: Int { 0 }
  /// The number of properties.
  @inlinable package var endIndex: Int { entries.count }
  /// The property at an index.
  @inlinable package subscript(position: Int) -> Entry { entries[position] }
}

extension PropertyOperations: ExpressibleByDictionaryLiteral {
  /// Makes a list of the literal's pairs.
  package init(dictionaryLiteral elements: (String, [PropertyOperation])...) {
    for (key, operations) in elements { self[key] = operations }
  }
}
