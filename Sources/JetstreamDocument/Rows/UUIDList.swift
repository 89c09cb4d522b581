import Foundation

/// Different UUIDs in the order in which they were added, each found by its hash.
///
/// It takes the place of a set, or of a dictionary of indices, where one step is about many models: a set spends more
/// on hashing a UUID, and has no order. Few are compared one by one; many have a hash table, with linear probing.
package struct UUIDList {
  private struct Slot {
    /// The hash of the UUID. As a fraction of the table it says where the entry belongs.
    var hash: UInt32 = 0
    /// The index of the UUID; -1 in an empty slot.
    var index: Int32 = -1
  }

  /// The number of UUIDs that need no table.
  private static let few = 8
  private static let hash = UUIDHash()

  /// The UUIDs, in order.
  package private(set) var elements: ContiguousArray<UUID> = []
  /// The table; empty as long as there are few UUIDs.
  private var slots: ContiguousArray<Slot> = []

  /// Makes an empty list.
  package init() {}

  /// Makes a list with room for a number of UUIDs.
  package init(capacity: Int) { reserve(capacity) }

  /// Makes a list of UUIDs, each of them once.
  package init(_ uuids: [UUID]) {
    reserve(uuids.count)
    for uuid in uuids { insert(uuid) }
  }

  /// The number of UUIDs.
  package var count: Int { elements.count }

  /// True if there are none.
  package var isEmpty: Bool { elements.isEmpty }

  /// Returns true if a UUID was added. Cost: O(1) on average.
  package func contains(_ uuid: UUID) -> Bool { index(of: uuid) != nil }

  /// Returns the index of a UUID; nil if it was not added. Cost: O(1) on average.
  package func index(of uuid: UUID) -> Int? {
    if slots.isEmpty { return elements.firstIndex(of: uuid) }
    let hash = Self.hash(uuid)
    var at = home(of: hash)
    while slots[at].index >= 0 {
      let index = Int(slots[at].index)
      if slots[at].hash == hash, elements[index] == uuid { return index }
      at = slot(behind: at)
    }
    return nil
  }

  /// Adds a UUID to the end unless it is there. Cost: O(1) on average.
  @discardableResult
  package mutating func insert(_ uuid: UUID) -> (inserted: Bool, index: Int) {
    let last = elements.count
    if slots.isEmpty {
      if let index = elements.firstIndex(of: uuid) { return (false, index) }
      elements.append(uuid)
      if elements.count > Self.few { makeTable(for: 4 * Self.few) }
      return (true, last)
    }
    if (last + 1) * 4 > slots.count * 3 { makeTable(for: 2 * last) }
    let hash = Self.hash(uuid)
    var at = home(of: hash)
    while slots[at].index >= 0 {
      let index = Int(slots[at].index)
      if slots[at].hash == hash, elements[index] == uuid { return (false, index) }
      at = slot(behind: at)
    }
    slots[at] = Slot(hash: hash, index: Int32(last))
    elements.append(uuid)
    return (true, last)
  }

  /// Makes room for `count` UUIDs in all.
  package mutating func reserve(_ count: Int) {
    elements.reserveCapacity(count)
    if count > Self.few, count * 4 >= slots.count * 3 { makeTable(for: count) }
  }

  private mutating func makeTable(for capacity: Int) {
    let size = capacity * 4 / 3 + 2
    precondition(size < 1 << 31, "A list cannot have more than a billion UUIDs.")
    slots = ContiguousArray(repeating: Slot(), count: size)
    for index in elements.indices {
      let hash = Self.hash(elements[index])
      var at = home(of: hash)
      while slots[at].index >= 0 { at = slot(behind: at) }
      slots[at] = Slot(hash: hash, index: Int32(index))
    }
  }

  @inline(__always)
  private func home(of hash: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(hash) &* UInt64(truncatingIfNeeded: slots.count)) &>> 32)
  }

  @inline(__always)
  private func slot(behind slot: Int) -> Int { slot + 1 == slots.count ? 0 : slot + 1 }
}
