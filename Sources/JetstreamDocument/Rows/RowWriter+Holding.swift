import Foundation

/// The rows that come and go with what properties hold.
extension RowWriter {
  /// Lets a reference, or an entry of a dictionary, hold a row, or none.
  mutating func set(_ child: Row?, _ property: PropertySchema, _ row: Row) {
    let old = row[property]
    row[property] = .reference(child?.uuid)
    guard isIn(row), case .reference(let known) = old, known != child?.uuid else { return }
    let holder = RowHolders.Holder(row, property)
    // The dictionary is one holder, whatever the number of entries by which it holds the model.
    if let known, let gone = find(known),
      property.entryKey == nil || !row.hasEntry(known, in: property)
    {
      release(gone, from: holder)
    }
    if let child { hold(child, by: holder) }
  }

  /// Gives a collection its elements.
  mutating func set(_ list: CollectionContent, _ property: PropertySchema, _ row: Row) {
    let (old, new) = (row[property], RowContent.collection(list))
    row[property] = new
    guard isIn(row), old != new else { return }
    let holder = RowHolders.Holder(row, property)
    let (gone, come) = old.differences(to: new)
    for uuid in gone { if let child = find(uuid) { release(child, from: holder) } }
    for uuid in come { if let child = find(uuid) { hold(child, by: holder) } }
  }

  /// Takes in the rows that a collection of a row in the document holds after operations, and suspects those that it let
  /// go of. The holders tell which it held before: the other elements are not looked at.
  mutating func noteMembers(
    after operations: [PropertyOperation], of holder: RowHolders.Holder
  ) {
    var models = UUIDList(capacity: operations.count)
    var isMember: [Bool] = []
    for operation in operations {
      let isIn: Bool
      switch operation {
      case .insert: isIn = true
      case .remove: isIn = false
      case .move, .add: continue
      }
      let (isNew, index) = models.insert(operation.model!)
      if isNew { isMember.append(isIn) } else { isMember[index] = isIn }
    }
    // A model with several operations is not looked at again: its row is held as it is to be from the first time on.
    for operation in operations {
      guard let uuid = operation.model, let index = models.index(of: uuid),
        let child = find(uuid)
      else { continue }
      if isMember[index] { hold(child, by: holder) } else { release(child, from: holder) }
    }
  }

  /// Returns true if a row is in the document. There, each row is held, but for the root and, until ``letGo()``, those
  /// that a property has let go of. Elsewhere, none is.
  mutating func isIn(_ row: Row) -> Bool {
    if !row.holders.isEmpty || row === document.root { return true }
    return !suspects.isEmpty && document.has(row)
  }

  /// Notes that a property of a row in the document does not hold a row any more.
  mutating func release(_ child: Row, from holder: RowHolders.Holder) {
    guard child.holders.contains(holder) else { return }
    child.holders.remove(holder)
    suspects.append(child)
  }

  /// Notes that a property of a row in the document holds a row. It comes in at once, even if another fragment lets go
  /// of it again.
  mutating func hold(_ child: Row, by holder: RowHolders.Holder) {
    if child.holders.contains(holder) { return }
    let wasIn = isIn(child)
    child.holders.insert(holder)
    if !wasIn { takeIn(child) }
  }

  /// Takes in a row that the document holds now, with those below it, depth first.
  mutating func takeIn(_ top: Row) {
    document.insert(top)
    open.append(top)
    while let row = open.popLast() {
      outcome.entered.append(row)
      let bottom = open.count
      row.forEachChild { uuid, property in
        guard let child = find(uuid) else { return }
        let wasIn = isIn(child)
        child.holders.insert(.init(row, property))
        if wasIn { return }
        document.insert(child)
        open.append(child)
      }
      if open.count > bottom + 1 { open[bottom...].reverse() }
    }
  }

  /// Takes out the rows that the root no longer leads to.
  mutating func letGo() {
    var reach = RowReach(root: document.root)
    while let row = suspects.popLast() {
      // Nothing leads to a row that is not held. It may have left already.
      if row === document.root || (!row.holders.isEmpty && reach.leads(to: row)) { continue }
      guard document.remove(row) else { continue }
      // The root does not lead to those that hold it, either.
      row.holders = RowHolders()
      outcome.left.append(row)
      row.forEachChild { uuid, property in
        guard let child = document[uuid] else { return }
        child.holders.remove(.init(row, property))
        suspects.append(child)
      }
    }
  }
}
