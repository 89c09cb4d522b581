import Foundation

/// The rows of a document by UUID. A hash table of its own, because a dictionary would keep each UUID a second time,
/// beside the row that has it, and spends more on hashing it.
///
/// It has two arrays: 32 bits of hash for each slot, which are searched, and the rows, which are read only if the hashes
/// agree. Linear probing; removing an entry moves the following ones back. It grows by a half, so that between one half
/// and three quarters of the slots are used, once there are a few and unless room was made for more: 16 to 24 bytes for each
/// row.
struct RowIndex {
  private(set) var count = 0
  /// The hashes of the entries; 0 is an empty slot.
  private var hashes: ContiguousArray<UInt32> = []
  private var rows: ContiguousArray<Row?> = []
  private static let hash = UUIDHash()

  /// Makes an empty table.
  init() {}

  /// Makes a table of one row.
  init(_ row: Row) { insert(row) }

  /// The row of the model with this UUID; nil if there is none. Cost: O(1).
  subscript(_ uuid: UUID) -> Row? {
    if count == 0 { return nil }
    return slot(of: uuid, mark(uuid)).flatMap { rows[$0] }
  }

  /// All rows, in no particular order, copied in O(n).
  var all: [Row] { rows.compactMap { $0 } }

  /// Adds a row, or replaces the one with the same UUID. Cost: O(1) on average.
  mutating func insert(_ row: Row) {
    let (uuid, mark) = (row.uuid, mark(row.uuid))
    if (count + 1) * 4 > hashes.count * 3 {
      if count > 0, let slot = slot(of: uuid, mark) {
        rows[slot] = row
        return
      }
      resize(to: max(16, hashes.count + hashes.count / 2))
    }
    var slot = home(of: mark)
    while hashes[slot] != 0 {
      if hashes[slot] == mark, rows[slot]!.uuid == uuid {
        rows[slot] = row
        return
      }
      slot = self.slot(behind: slot)
    }
    hashes[slot] = mark
    rows[slot] = row
    count += 1
  }

  /// Makes room for a number of rows more. A table that grows does so by a half at least: otherwise each call could cost O(n)
  /// in all rows.
  mutating func reserve(_ additional: Int) {
    let slots = (count + additional) * 4 / 3 + 1
    guard additional > 0, slots > hashes.count else { return }
    resize(to: max(16, slots, hashes.count + hashes.count / 2))
  }

  /// Removes the row of the model with this UUID. Returns false if there is none. Cost: O(1).
  @discardableResult
  mutating func remove(_ uuid: UUID) -> Bool {
    guard count > 0, var hole = slot(of: uuid, mark(uuid)) else { return false }
    count -= 1
    var next = hole
    while true {
      next = slot(behind: next)
      let mark = hashes[next]
      if mark == 0 { break }
      // An entry may fill the hole if that is not in front of the slot where it belongs.
      if distance(from: home(of: mark), to: next) < distance(from: hole, to: next) { continue }
      hashes[hole] = mark
      rows[hole] = rows[next]
      hole = next
    }
    hashes[hole] = 0
    rows[hole] = nil
    return true
  }

  /// Describes what must not be the case, a line for each; empty if all is well. Cost: O(n).
  func checkInvariants() -> [String] {
    var problems: [String] = []
    if hashes.count != rows.count { problems.append("the table has two sizes") }
    if rows.count(where: { $0 != nil }) != count { problems.append("the table counts other rows") }
    if count * 4 > hashes.count * 3 { problems.append("the table is too full") }
    for (at, row) in rows.enumerated() {
      guard let row else {
        if hashes[at] != 0 { problems.append("slot \(at) has a hash without a row") }
        continue
      }
      if hashes[at] != mark(row.uuid) {
        problems.append("slot \(at) has another hash than \(row.uuid.wireText)")
      } else if slot(of: row.uuid, hashes[at]) != at {
        problems.append("\(row.uuid.wireText) is not found where it is")
      }
    }
    return problems
  }

  /// The number of slots that are read to find a row, on average; for tests. About 2.5 if three quarters are used.
  var averageSearch: Double {
    let steps = hashes.indices.filter { hashes[$0] != 0 }
      .map { distance(from: home(of: hashes[$0]), to: $0) + 1 }
    return Double(steps.reduce(0, +)) / Double(max(count, 1))
  }

  // MARK: Slots

  /// Returns the hash of a UUID as it is kept, which is never 0. The top bits say where the entry belongs.
  @inline(__always)
  private func mark(_ uuid: UUID) -> UInt32 { Self.hash(uuid) | 1 }

  /// Returns the slot where an entry belongs: the hash as a fraction of the table.
  @inline(__always)
  private func home(of mark: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(mark) &* UInt64(truncatingIfNeeded: hashes.count)) &>> 32)
  }

  @inline(__always)
  private func slot(behind slot: Int) -> Int { slot + 1 == hashes.count ? 0 : slot + 1 }

  /// Returns the number of steps from one slot to another.
  @inline(__always)
  private func distance(from start: Int, to end: Int) -> Int {
    end >= start ? end - start : end - start + hashes.count
  }

  /// Returns the slot of a UUID in a table that has slots.
  @inline(__always)
  private func slot(of uuid: UUID, _ mark: UInt32) -> Int? {
    var slot = home(of: mark)
    while hashes[slot] != 0 {
      if hashes[slot] == mark, rows[slot]!.uuid == uuid { return slot }
      slot = self.slot(behind: slot)
    }
    return nil
  }

  @inline(__always)
  private mutating func place(_ row: Row, _ mark: UInt32) {
    var slot = home(of: mark)
    while hashes[slot] != 0 { slot = self.slot(behind: slot) }
    hashes[slot] = mark
    rows[slot] = row
  }

  private mutating func resize(to size: Int) {
    let old = (hashes, rows)
    precondition(size < 1 << 31, "A document cannot hold more than a billion models.")
    hashes = ContiguousArray(repeating: 0, count: size)
    rows = ContiguousArray(repeating: nil, count: size)
    for (slot, mark) in old.0.enumerated() where mark != 0 { place(old.1[slot]!, mark) }
  }
}
