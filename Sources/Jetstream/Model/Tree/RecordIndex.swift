import Foundation

/// The records of a scope's models by UUID. A hash table of its own, because every model that enters or leaves
/// passes through it, and a dictionary spends more on hashing a UUID than everything else costs.
///
/// It has two arrays: 32 bits of hash for each slot, which are searched, and the records, which are read only if
/// the hashes agree. Linear probing; removing an entry moves the following ones back. An object, because reading a
/// structure of two arrays copies both.
final class RecordIndex {
  // No access to these is open while other code runs: `forEach` and `removeAll` call their closures with a copy.
  @exclusivity(unchecked) private(set) var count = 0
  /// The low bits name the slot where the entry belongs; the top bit is set. 0 is an empty slot.
  @exclusivity(unchecked) private var hashes: ContiguousArray<UInt32> = []
  /// The records, unowned: a record is removed before it is deallocated.
  @exclusivity(unchecked) private var records: ContiguousArray<Unmanaged<ModelRecord>?> = []
  private let hash = UUIDHash()

  /// Returns the record of the model with this UUID. Cost: O(1).
  func record(of uuid: UUID) -> ModelRecord? {
    slot(of: uuid, mark(uuid)).flatMap { records[$0]?.takeUnretainedValue() }
  }

  /// Adds a record. Returns false, and changes nothing, if there is one with the same UUID. Cost: O(1) on average.
  func insert(_ record: ModelRecord) -> Bool {
    let uuid = record.uuid
    let hash = mark(uuid)
    if slot(of: uuid, hash) != nil { return false }
    if (count + 1) * 4 > hashes.count * 3 { grow() }
    place(Unmanaged.passUnretained(record), hash)
    count += 1
    return true
  }

  /// Removes the record of the model with this UUID, if there is one. Cost: O(1).
  func remove(_ uuid: UUID) {
    guard var hole = slot(of: uuid, mark(uuid)) else { return }
    count -= 1
    let mask = hashes.count - 1
    var next = hole
    while true {
      next = (next + 1) & mask
      let hash = hashes[next]
      if hash == 0 { break }
      // An entry may fill the hole if that is not in front of the slot where it belongs.
      let home = Int(hash) & mask
      if (next - home) & mask < (next - hole) & mask { continue }
      hashes[hole] = hash
      records[hole] = records[next]
      hole = next
    }
    hashes[hole] = 0
    records[hole] = nil
  }

  /// Removes all records, and calls `body` with each of them afterwards.
  func removeAll(_ body: (ModelRecord) -> Void) {
    let all = records
    (count, hashes, records) = (0, [], [])
    for case .some(let record) in all { body(record.takeUnretainedValue()) }
  }

  /// Calls `body` with each record, in no particular order.
  func forEach(_ body: (ModelRecord) -> Void) {
    for case .some(let record) in records { body(record.takeUnretainedValue()) }
  }

  @inline(__always)
  private func slot(of uuid: UUID, _ hash: UInt32) -> Int? {
    guard count > 0 else { return nil }
    let mask = hashes.count - 1
    var slot = Int(hash) & mask
    while hashes[slot] != 0 {
      if hashes[slot] == hash,
        records[slot]!._withUnsafeGuaranteedRef({ $0.uuidIfMade == uuid })
      {
        return slot
      }
      slot = (slot + 1) & mask
    }
    return nil
  }

  @inline(__always)
  private func place(_ record: Unmanaged<ModelRecord>, _ hash: UInt32) {
    let mask = hashes.count - 1
    var slot = Int(hash) & mask
    while hashes[slot] != 0 { slot = (slot + 1) & mask }
    hashes[slot] = hash
    records[slot] = record
  }

  private func grow() {
    let old = (hashes, records)
    let size = max(16, hashes.count * 2)
    precondition(size < 1 << 31, "A scope cannot hold more than a billion models.")
    hashes = ContiguousArray(repeating: 0, count: size)
    records = ContiguousArray(repeating: nil, count: size)
    for (slot, hash) in old.0.enumerated() where hash != 0 { place(old.1[slot]!, hash) }
  }

  /// Returns the hash of a UUID as it is kept, which is never 0.
  @inline(__always)
  private func mark(_ uuid: UUID) -> UInt32 { hash(uuid) | 1 << 31 }
}
