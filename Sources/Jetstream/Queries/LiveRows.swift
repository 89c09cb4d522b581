/// The models that a live query shows, in order.
///
/// A value: it stays as it is when the query goes on. Cost: O(log n) for each access by index and for `firstIndex(of:)`,
/// O(1) for `contains(_:)`, O(n) to iterate over all. While a copy is kept, the next tick that changes the query copies
/// it in O(n), so keep it for no longer than it is looked at.
public struct LiveRows<Model: ModelObject>: RandomAccessCollection {
  let table: RowTable

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of rows.
  public var endIndex: Int { table.shown.count }

  /// The model at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model { Self.row(table.model(table.shown[position])) }

  /// Sound because a query of `Model` has only models of this class: its source was asked for them.
  fileprivate static func row(_ model: ModelObject) -> Model {
    unsafeDowncast(model, to: Model.self)
  }

  /// Answers `firstIndex(of:)`, which asks here before it looks at all rows. Cost: O(log n).
  public func _customIndexOfEquatableElement(_ model: Model) -> Int?? {
    guard let slot = table.slot(of: model), table.shown.contains(slot) else { return .some(nil) }
    return table.shown.rank(of: slot)
  }
  /// Answers `contains(_:)`, which asks here before it looks at all rows. Cost: O(1).
  public func _customContainsEquatableElement(_ model: Model) -> Bool? {
    table.slot(of: model).map { table.shown.contains($0) } ?? false
  }

  /// Iterates over the rows from one to the next, which is quicker than by index.
  public func makeIterator() -> some IteratorProtocol<Model> {
    RowIterator<Model>(table: table, slot: table.shown.first)
  }
}

private struct RowIterator<Model: ModelObject>: IteratorProtocol {
  let table: RowTable
  var slot: Int?

  mutating func next() -> Model? {
    guard let here = slot else { return nil }
    slot = table.shown.next(after: here)
    return LiveRows.row(table.model(here))
  }
}
