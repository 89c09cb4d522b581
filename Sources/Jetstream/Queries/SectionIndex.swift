/// The sections of a query: slots in the order of their keys, weighted with their number of rows.
class SectionRows {
  fileprivate(set) var tree = OrderTree()
  /// The section of each row, by the slots of both.
  fileprivate var sectionOfRow: ContiguousArray<Int> = []
  /// Sections that have lost their last row since the last ``dropEmpty()``, and may have another one by now.
  fileprivate var emptied: [Int] = []
  fileprivate var free: [Int] = []
  /// Sections that were made since the last ``forgetNews()``.
  fileprivate var made: Set<Int> = []

  var column: KeyColumn { preconditionFailure("A section index is abstract.") }

  /// Returns the section with the row's key; makes it if there is none.
  fileprivate func section(for row: Int) -> Int {
    preconditionFailure("A section index is abstract.")
  }

  fileprivate func forget(_ section: Int) {}

  func section(of row: Int) -> Int { sectionOfRow[row] }

  /// True if the section was made in the current tick.
  func isNew(_ section: Int) -> Bool { made.contains(section) }

  /// Forgets which sections are new, at the beginning of a tick.
  func forgetNews() { made = [] }

  /// Counts the row in its section.
  func add(_ row: Int) {
    let section = section(for: row)
    while sectionOfRow.count <= row { sectionOfRow.append(-1) }
    sectionOfRow[row] = section
    tree.setWeight(tree.weight(of: section) + 1, of: section)
  }

  func remove(_ row: Int) {
    let section = sectionOfRow[row]
    tree.setWeight(tree.weight(of: section) - 1, of: section)
    if tree.weight(of: section) == 0 { emptied.append(section) }
  }

  /// Removes the sections that have no rows, and returns them.
  func dropEmpty() -> Set<Int> {
    var result: Set<Int> = []
    for section in emptied where tree.weight(of: section) == 0 { result.insert(section) }
    emptied = []
    for section in result {
      tree.remove(section)
      forget(section)
      free.append(section)
    }
    return result
  }

  /// Returns the path of the row at `rank` in all rows, whose section is `section`.
  func path(rank: Int, in section: Int) -> RowPath {
    RowPath(section: tree.rank(of: section), item: rank - tree.weight(before: section))
  }
}

/// The sections with one type of key.
final class SectionIndex<Key>: SectionRows {
  private let typed: TypedColumn<Key>
  private(set) var keys: ContiguousArray<Key?> = []

  init(_ column: TypedColumn<Key>) { typed = column }

  override var column: KeyColumn { typed }

  override fileprivate func section(for row: Int) -> Int {
    func key(_ section: Int) -> Key {
      guard let key = keys[section] else { preconditionFailure("A section has no key.") }
      return key
    }
    if let known = tree.find({ typed.compare(row, with: key($0)) }) { return known }
    let slot = free.popLast() ?? keys.count
    if slot == keys.count { keys.append(.none) }
    keys[slot] = .some(typed.value(row))
    made.insert(slot)
    tree.insert(slot, weight: 0) { typed.compare(row, with: key($0)) < 0 }
    return slot
  }

  override fileprivate func forget(_ section: Int) { keys[section] = .none }
}
