import Foundation

/// The operations of a fragment on a collection, as far as they can be applied, with the rows that they insert.
struct CollectionEdit {
  var operations: [PropertyOperation]
  var inserted: [Row] = []
  /// True if some operation removes a model.
  var removes = false
  /// The content to which the operations lead from another one, if they were applied before.
  var result: (before: CollectionContent, after: CollectionContent)?
}

/// The operations on collections.
extension RowWriter {
  /// The number of operations up to which they are not applied before ``link()``.
  private static let fewOperations = 32

  /// Looks for the rows that a change inserts into collections of a row that is there already, and applies its operations to
  /// what these have now.
  mutating func prepareEdits(_ at: Int) {
    let fragments = fragments
    guard fragments[at].kind == .change,
      fragments[at].operations.contains(where: { $0.operations.count > Self.fewOperations }),
      let row = created[fragments[at].uuid] ?? document[fragments[at].uuid]
    else { return }
    for entry in fragments[at].operations where entry.operations.count > Self.fewOperations {
      guard let property = row.schema[wireName: entry.key], property.isSynced,
        property.isCollection, case .collection(let before) = row[property]
      else { continue }
      var edit = edit(property, of: row, entry.operations, at)
      var after = before
      after.apply(edit.operations)
      edit.result = (before, after)
      edits[at, default: [:]][entry.key] = edit
    }
  }

  /// Returns the operations that can be applied to a collection, after noting the errors of the others.
  mutating func edit(
    _ property: PropertySchema, of row: Row, _ operations: [PropertyOperation], _ at: Int
  ) -> CollectionEdit {
    var edit = CollectionEdit(operations: operations)
    /// The places of the operations that are left out.
    var leftOut: [Int] = []
    for (place, operation) in operations.enumerated() {
      switch operation {
      case .insert(let uuid, _):
        guard let child = child(uuid, property, row, at) else {
          leftOut.append(place)
          continue
        }
        if edit.inserted.isEmpty { edit.inserted.reserveCapacity(operations.count - place) }
        edit.inserted.append(child)
      case .remove: edit.removes = true
      case .move: break
      case .add:
        fail(at, invalid(property, row))
        leftOut.append(place)
      }
    }
    if !leftOut.isEmpty {
      let leftOut = Set(leftOut)
      edit.operations = operations.indices.filter { !leftOut.contains($0) }.map { operations[$0] }
    }
    return edit
  }

  /// Applies operations to a collection.
  mutating func link(_ edit: CollectionEdit, _ property: PropertySchema, _ row: Row) {
    if let (before, after) = edit.result, row[property] == .collection(before) {
      row[property] = .collection(after)
    } else {
      row.apply(edit.operations, to: property)
    }
    guard isIn(row) else { return }
    let holder = RowHolders.Holder(row, property)
    if edit.removes, !edit.inserted.isEmpty {
      return noteMembers(after: edit.operations, of: holder)
    }
    for child in edit.inserted { hold(child, by: holder) }
    if !edit.removes { return }
    for case .remove(let uuid) in edit.operations {
      if let child = find(uuid) { release(child, from: holder) }
    }
  }
}
