/// The properties that hold a model. Most models are held by one.
///
/// Only rows in the document hold others: a row that leaves is removed from the holders of all rows below it.
struct RowHolders {
  /// A property of a row in the document.
  struct Holder: Hashable {
    /// The row. Unowned, since rows may hold each other in a circle, and the document keeps it as long as it holds.
    unowned let row: Row
    /// The index of the property. With two bytes the holders leave room for the tags of ``RowSlots``.
    private let index: UInt16

    init(_ row: Row, _ property: PropertySchema) {
      self.row = row
      index = UInt16(property.index)
    }

    /// The property.
    var property: PropertySchema { row.schema.properties[Int(index)] }

    static func == (a: Holder, b: Holder) -> Bool { a.row === b.row && a.index == b.index }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(row))
      hasher.combine(index)
    }
  }

  private enum Storage {
    case none
    case one(Holder)
    case many(Set<Holder>)
  }

  private var storage = Storage.none

  var isEmpty: Bool { if case .none = storage { true } else { false } }

  var all: [Holder] {
    switch storage {
    case .none: []
    case .one(let holder): [holder]
    case .many(let holders): Array(holders)
    }
  }

  func contains(_ holder: Holder) -> Bool {
    switch storage {
    case .none: false
    case .one(let first): first == holder
    case .many(let holders): holders.contains(holder)
    }
  }

  mutating func insert(_ holder: Holder) {
    switch storage {
    case .none: storage = .one(holder)
    case .one(let first): if first != holder { storage = .many([first, holder]) }
    case .many(var holders):
      // The set is copied if it is still in the storage.
      storage = .none
      holders.insert(holder)
      storage = .many(holders)
    }
  }

  mutating func remove(_ holder: Holder) {
    switch storage {
    case .none: break
    case .one(let first): if first == holder { storage = .none }
    case .many(var holders):
      storage = .none
      holders.remove(holder)
      storage = holders.count > 1 ? .many(holders) : holders.first.map { .one($0) } ?? .none
    }
  }
}
