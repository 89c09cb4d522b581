import Foundation
import Jetstream

/// A model that a change set is about, as it is and as it would be.
final class TentativeModel {
  /// The changes of one property by a change set.
  struct Write {
    let property: PropertySchema
    /// The fragments that change the property.
    fileprivate(set) var fragments: FragmentIndices
    /// The value that was named last; nil if operations alone change the property.
    fileprivate(set) var assigned: JSONValue?
    /// The operations that come behind it.
    fileprivate(set) var operations: [PropertyOperation] = []
    /// The value that a plain property gets, from the first time that it was asked for.
    fileprivate var value: JSONValue?

    fileprivate init(_ property: PropertySchema, at index: Int) {
      (self.property, fragments) = (property, FragmentIndices(index))
    }

    fileprivate func isOf(_ other: PropertySchema) -> Bool {
      // Entries of dictionaries are made each time that they are looked up.
      property === other
        || (property.index == other.index && property.entryKey == other.entryKey)
    }
  }

  /// A property that begins to hold the model, or ceases to, and the fragments by which it does.
  struct Holding {
    let holder: PropertyKey
    let fragments: FragmentIndices
  }

  /// The presence of a model in a collection on which there are operations.
  struct Stay {
    /// True if the collection holds the model before them.
    let isBefore: Bool
    /// True if it holds the model after them.
    var isAfter: Bool
    var isMoved = false
  }

  let uuid: UUID
  let schema: ClassSchema
  /// The model that there is: in the scope, or gone and not forgotten; nil for a new one.
  let current: (any HostedModel)?
  /// True if clients have the model now.
  let isShared: Bool
  /// The fragment that adds the model; nil if there is none.
  private(set) var addition: Int?

  // No access to these is open while other code runs: they are replaced or appended to, and the closures that change a
  // write are of this file.
  /// The first write. Mostly it is the only one: then there is no array.
  @exclusivity(unchecked) private var first: Write?
  @exclusivity(unchecked) private var others: [Write] = []
  /// The indices of the writes; empty while these are few. A fragment may write any number of entries of a dictionary.
  @exclusivity(unchecked) private var places: [Place: Int] = [:]

  // Notes that the scope and the search for differences make about the model.
  /// The properties that hold the model now, from the first time that they were looked up.
  @exclusivity(unchecked) var holders: [PropertyKey]?
  /// The same as a set, if there are many.
  @exclusivity(unchecked) var holderSet: Set<PropertyKey>?
  /// The properties that begin to hold the model, and those that cease to.
  @exclusivity(unchecked) var gained: [Holding] = []
  @exclusivity(unchecked) var lost: [Holding] = []
  /// The model's presence in the collection that is looked at; nil at all other times.
  @exclusivity(unchecked) var stay: Stay?
  /// True if the model is known to come in, or to leave.
  @exclusivity(unchecked) var isArriving = false
  @exclusivity(unchecked) var isLeaving = false
  /// True if the root would lead to the model; nil as long as that was not asked.
  @exclusivity(unchecked) var isReachable: Bool?

  private struct Place: Hashable {
    let index: Int
    let entryKey: String?

    init(_ property: PropertySchema) { (index, entryKey) = (property.index, property.entryKey) }
  }

  init(_ uuid: UUID, _ schema: ClassSchema, current: (any HostedModel)?, isShared: Bool) {
    (self.uuid, self.schema) = (uuid, schema)
    (self.current, self.isShared) = (current, isShared)
  }

  /// Notes what the fragment at an index writes.
  ///
  /// - Returns: false if it names a property that the class does not have.
  func take(_ index: Int, of fragments: [SyncFragment]) -> Bool {
    var isKnown = true
    if fragments[index].kind == .add { addition = index }
    for member in fragments[index].properties.members {
      guard let property = schema[wireName: member.key], property.isSynced else {
        isKnown = false
        continue
      }
      write(property, at: index) {
        $0.assigned = member.value
        $0.operations = []
      }
    }
    for entry in fragments[index].operations {
      guard let property = schema[wireName: entry.key], property.isSynced else {
        isKnown = false
        continue
      }
      write(property, at: index) {
        // An empty array would be filled with a copy.
        if $0.operations.isEmpty {
          $0.operations = entry.operations
        } else {
          $0.operations += entry.operations
        }
      }
    }
    return isKnown
  }

  // MARK: Writes

  /// The number of writes that are compared one by one.
  private static let fewWrites = 8

  private func write(
    _ property: PropertySchema, at index: Int, _ change: (inout Write) -> Void
  ) {
    guard let place = place(of: property) else {
      var write = Write(property, at: index)
      change(&write)
      return append(consume write)
    }
    if place == 0 {
      first!.note(index)
      change(&first!)
    } else {
      others[place - 1].note(index)
      change(&others[place - 1])
    }
  }

  private func append(_ write: consuming Write) {
    if first == nil {
      first = write
      return
    }
    others.append(write)
    if others.count == Self.fewWrites {
      for place in 0..<writeCount { places[Place(property(at: place))] = place }
    } else if others.count > Self.fewWrites {
      places[Place(property(at: others.count))] = others.count
    }
  }

  private func place(of property: PropertySchema) -> Int? {
    guard let first else { return nil }
    if first.isOf(property) { return 0 }
    if others.isEmpty { return nil }
    if !places.isEmpty { return places[Place(property)] }
    return others.firstIndex { $0.isOf(property) }.map { $0 + 1 }
  }

  /// The number of properties, and of entries of dictionaries, that change.
  var writeCount: Int { first == nil ? 0 : 1 + others.count }

  /// Returns the property that was written as the first, the second and so on.
  func property(at place: Int) -> PropertySchema {
    place == 0 ? first!.property : others[place - 1].property
  }

  /// Returns the index of that property in the class.
  func propertyIndex(at place: Int) -> Int {
    place == 0 ? first!.property.index : others[place - 1].property.index
  }

  /// Returns the fragments that write it.
  func fragments(at place: Int) -> FragmentIndices {
    place == 0 ? first!.fragments : others[place - 1].fragments
  }

  /// Returns all changes of it.
  func write(at place: Int) -> Write { place == 0 ? first! : others[place - 1] }

  // MARK: Values

  /// Returns the value that a property has now; of a new model, its default.
  func oldValue(of property: PropertySchema) -> JSONValue {
    current?.currentJSON(of: property) ?? property.defaultValue
  }

  /// Returns the value that a property would have.
  func newValue(of property: PropertySchema) -> JSONValue {
    guard let place = place(of: property) else { return oldValue(of: property) }
    return newValue(at: place)
  }

  /// Returns the value to which the writes of a property lead.
  func newValue(at place: Int) -> JSONValue {
    if let known = place == 0 ? first!.value : others[place - 1].value { return known }
    // Field by field: a copy of all of the write would be retained for nothing.
    let property = property(at: place)
    let operations = place == 0 ? first!.operations : others[place - 1].operations
    let assigned = place == 0 ? first!.assigned : others[place - 1].assigned
    let value =
      operations.isEmpty
      ? assigned.map { Self.normal($0, of: property) } ?? oldValue(of: property)
      : Self.value(of: property, after: operations, on: assigned ?? oldValue(of: property))
    // A rule may read it any number of times. Collections are not kept, since each may be large.
    if case .plain = property.kind {
      if place == 0 { first!.value = value } else { others[place - 1].value = value }
    }
    return value
  }

  /// Returns a value as its property writes it.
  private static func normal(_ value: JSONValue, of property: PropertySchema) -> JSONValue {
    // Whole numbers are written in one way only.
    if property.counterRange != nil, case .integer = value { return value }
    return property.normalized(value) ?? value
  }

  /// Returns true if the write at a place changes a value without models, as its type writes it.
  func changesValue(at place: Int) -> Bool {
    let property = property(at: place)
    let (old, new) = (oldValue(of: property), newValue(at: place))
    // Whole numbers are written in one way only.
    if property.counterRange != nil, case (.integer(let old), .integer(let new)) = (old, new) {
      return old != new
    }
    return !property.areSame(old, new)
  }

  /// True if the model is one of the scope, and is given nothing but values without models.
  var getsOnlyValues: Bool {
    guard isShared, addition == nil else { return false }
    return (0..<writeCount).allSatisfy { place in
      if case .plain = property(at: place).kind { true } else { false }
    }
  }

  private static func value(
    of property: PropertySchema, after operations: [PropertyOperation], on start: JSONValue
  ) -> JSONValue {
    if property.isCollection {
      var list = CollectionContent(start) ?? CollectionContent()
      list.apply(operations)
      return list.json
    }
    guard let range = property.counterRange else { return start }
    return PropertyOperation.apply(
      operations.filter { $0.model == nil }, to: start, within: range)
  }
}

extension TentativeModel.Write {
  fileprivate mutating func note(_ index: Int) {
    if fragments.last != index { fragments.append(index) }
  }
}
