/// A set of property indices. Indices below 64 cost no allocation.
struct PropertySet: Equatable {
  private var low: UInt64 = 0
  private var high: [UInt64] = []

  init() {}

  init(_ indices: some Sequence<Int>) {
    for index in indices { insert(index) }
  }

  init(_ index: Int) { insert(index) }

  func inserting(_ index: Int) -> PropertySet {
    var result = self
    result.insert(index)
    return result
  }

  var isEmpty: Bool { low == 0 && high.allSatisfy { $0 == 0 } }

  @inline(__always)
  func contains(_ index: Int) -> Bool {
    if index < 64 { return low & (1 << UInt64(index)) != 0 }
    let word = index / 64 - 1
    return word < high.count && high[word] & (1 << UInt64(index % 64)) != 0
  }

  /// Returns true if `index` is in both sets.
  @inline(__always)
  func contains(_ index: Int, asDoes other: PropertySet) -> Bool {
    if index < 64 { return low & other.low & (1 << UInt64(index)) != 0 }
    return contains(index) && other.contains(index)
  }

  /// Adds `index`. Returns false if it was there already.
  @inline(__always) @discardableResult
  mutating func insert(_ index: Int) -> Bool {
    if index < 64 {
      let bit: UInt64 = 1 << UInt64(index)
      defer { low |= bit }
      return low & bit == 0
    }
    return insertHigh(index)
  }

  private mutating func insertHigh(_ index: Int) -> Bool {
    let word = index / 64 - 1
    while high.count <= word { high.append(0) }
    let bit: UInt64 = 1 << UInt64(index % 64)
    defer { high[word] |= bit }
    return high[word] & bit == 0
  }

  /// Takes `index` out, if it is there.
  mutating func remove(_ index: Int) {
    guard contains(index) else { return }
    if index < 64 {
      low &= ~(1 << UInt64(index))
    } else {
      high[index / 64 - 1] &= ~(1 << UInt64(index % 64))
    }
  }

  func intersects(_ other: PropertySet) -> Bool {
    low & other.low != 0 || zip(high, other.high).contains { $0 & $1 != 0 }
  }
}
