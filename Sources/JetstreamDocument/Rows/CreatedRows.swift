import Foundation

/// The rows that a change set adds, by UUID, in the order in which it adds them.
struct CreatedRows {
  private var uuids = UUIDList()
  private var rows: [Row] = []
  /// True for the rows that a property has held.
  var isReferenced: [Bool] = []

  var count: Int { rows.count }

  /// The row with a UUID; nil if the change set adds none. Cost: O(1).
  subscript(uuid: UUID) -> Row? { uuids.index(of: uuid).map { rows[$0] } }

  /// The row at an index.
  subscript(index: Int) -> Row { rows[index] }

  /// Returns the index of the row with a UUID; nil if the change set adds none. Cost: O(1).
  func index(of uuid: UUID) -> Int? { uuids.index(of: uuid) }

  /// Makes room for `count` rows in all.
  mutating func reserve(_ count: Int) {
    uuids.reserve(count)
    rows.reserveCapacity(count)
    isReferenced.reserveCapacity(count)
  }

  /// Adds a row whose UUID no other one has.
  mutating func append(_ row: Row) {
    uuids.insert(row.uuid)
    rows.append(row)
    isReferenced.append(false)
  }

  /// Returns the row with a UUID if no property has held it.
  func unreferenced(_ uuid: UUID) -> Row? {
    uuids.index(of: uuid).flatMap { isReferenced[$0] ? nil : rows[$0] }
  }
}
