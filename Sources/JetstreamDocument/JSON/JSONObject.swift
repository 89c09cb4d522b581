/// The members of a JSON object, in the order in which they were written.
///
/// A collection of `(key, value)` pairs with unique keys. A new key goes to the end, a known one
/// keeps its place. Finding a key is a linear search in an object of fewer than 16 members and a
/// hashed lookup in a larger one; removing a key is O(n), and so is removing many at once.
///
/// Equality and hashing ignore the order. Keys are compared as Swift compares strings: canonically
/// equivalent ones are the same key.
public struct JSONObject: Sendable {
  /// One member as it is stored. Unlike a tuple, a structure is released by code that knows its type.
  @usableFromInline
  package struct Member: Sendable {
    @usableFromInline package internal(set) var key: String
    @usableFromInline package internal(set) var value: JSONValue

    init(key: String, value: JSONValue) { (self.key, self.value) = (key, value) }
  }

  /// All members in order. Where many fragments are read, going through them costs less than through the object: other
  /// targets see that this is an array.
  @usableFromInline package private(set) var members: [Member] = []

  /// The index of each key; nil while there are fewer than `indexedCount` members.
  private var positions: [String: Int]?

  /// From this number of members on, keys are looked up by their hash.
  static let indexedCount = 16

  /// Makes an object without members, which apps write as `[:]`.
  package init() {}

  /// Makes an object of members that are known to have different keys. `positions` may give the index of each key,
  /// if that is known already and there are many.
  init(unique members: [Member], positions: [String: Int]?) {
    self.members = members
    guard members.count >= Self.indexedCount else { return }
    if let positions { self.positions = positions } else { reindex() }
  }

  /// Makes an object of one member.
  init(only member: Member) { members = [member] }

  /// Makes an object of pairs; of two equal keys, the later value takes the earlier place.
  public init(_ pairs: some Sequence<(String, JSONValue)>) {
    members.reserveCapacity(pairs.underestimatedCount)
    for (key, value) in pairs { self[key] = value }
  }

  /// The value of a key; nil if the object does not have the key. A JSON `null` is `.null`, not nil.
  ///
  /// Setting nil removes the key.
  public subscript(key: String) -> JSONValue? {
    get { position(of: key).map { members[$0].value } }
    set {
      switch (position(of: key), newValue) {
      case (let position?, let value?): members[position].value = value
      case (nil, let value?): append(newKey: key, value)
      case (let position?, nil): remove(at: position)
      case (nil, nil): break
      }
    }
  }

  /// The keys in order, copied in O(n).
  package var keys: [String] { members.map(\.key) }

  /// Reserves memory for `count` members.
  package mutating func reserveCapacity(_ count: Int) {
    members.reserveCapacity(count)
  }

  @inline(__always)
  private func position(of key: String) -> Int? {
    guard members.count < Self.indexedCount else { return positions?[key] }
    return members.withUnsafeBufferPointer { members in
      members.firstIndex { $0.key == key }
    }
  }

  /// Adds a member whose key the object does not have.
  @inline(__always)
  package mutating func append(newKey key: consuming String, _ value: consuming JSONValue) {
    let position = members.count
    guard position >= Self.indexedCount - 1 else {
      return members.append(Member(key: key, value: value))
    }
    members.append(Member(key: copy key, value: value))
    if position >= Self.indexedCount { positions?[key] = position } else { reindex() }
  }

  /// True if the keys are in the order of their UTF-8 bytes.
  var isSortedByKey: Bool {
    members.indices.dropFirst().allSatisfy {
      members[$0 - 1].key.precedesInBytes(members[$0].key)
    }
  }

  /// Returns the object with its keys in the order of their UTF-8 bytes, and with the values that `transform` makes of
  /// its own; nil if there is one of which it makes none. Cost: O(n log n), or O(n) if that is the order of the keys.
  package func sortedByKey(transforming transform: (JSONValue) -> JSONValue?) -> JSONObject? {
    let order = isSortedByKey ? nil : ByteOrder.places(members.count) { members[$0].key }
    var result: [Member] = []
    result.reserveCapacity(members.count)
    for place in members.indices {
      let at = order?[place] ?? place
      guard let value = transform(members[at].value) else { return nil }
      result.append(Member(key: members[at].key, value: value))
    }
    guard let order else { return JSONObject(unique: result, positions: positions) }
    return JSONObject(unique: result, positions: positions(in: order))
  }

  /// Returns the index of each key when the members at the given indices stand in that order; nil while there are few. No
  /// key is hashed again: of many, that would be most of the work of ordering them. Cost: O(n).
  private func positions(in order: [Int]) -> [String: Int]? {
    guard let positions else { return nil }
    var places = Array(repeating: 0, count: order.count)
    for place in order.indices { places[order[place]] = place }
    return positions.mapValues { places[$0] }
  }

  /// Removes the members for which `isRemoved` returns true; the others keep their order. Cost: O(n).
  package mutating func removeAll(where isRemoved: (_ key: String, _ value: JSONValue) -> Bool) {
    let count = members.count
    members.removeAll { isRemoved($0.key, $0.value) }
    if members.count == count { return }
    if members.count < Self.indexedCount { positions = nil } else { reindex() }
  }

  private mutating func remove(at position: Int) {
    let key = members.remove(at: position).key
    if members.count < Self.indexedCount {
      positions = nil
    } else if position == members.count {
      positions?[key] = nil
    } else {
      reindex()
    }
  }

  private mutating func reindex() {
    var positions: [String: Int] = [:]
    positions.reserveCapacity(members.capacity)
    for (position, member) in members.enumerated() { positions[member.key] = position }
    self.positions = positions
  }
}

extension JSONObject: RandomAccessCollection {
  /// The index of the first member.
  @inlinable public var startIndex: Int { 0 }

  /// The number of members.
  @inlinable public var endIndex: Int { members.count }

  /// The member at an index.
  @inlinable public subscript(position: Int) -> (key: String, value: JSONValue) {
    let member = members[position]
    return (member.key, member.value)
  }
}

extension JSONObject: Hashable {
  /// Returns true if both objects have the same keys with equal values, in any order.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    guard left.members.count == right.members.count else { return false }
    for (position, member) in left.members.enumerated() {
      let candidate = right.members[position]
      if candidate.key == member.key {
        guard candidate.value == member.value else { return false }
      } else {
        guard right[member.key] == member.value else { return false }
      }
    }
    return true
  }

  /// Feeds the members to `hasher` in a way that does not depend on their order.
  public func hash(into hasher: inout Hasher) {
    var sum = 0
    for member in members {
      var memberHasher = Hasher()
      memberHasher.combine(member.key)
      memberHasher.combine(member.value)
      sum ^= memberHasher.finalize()
    }
    hasher.combine(members.count)
    hasher.combine(sum)
  }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  /// Makes an object of the literal's pairs; of two equal keys, the later value takes the earlier place.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init(elements)
  }
}

extension JSONObject: CustomStringConvertible {
  /// The compact JSON text.
  public var description: String { JSONValue.object(self).text }
}
