/// The models that a live query shows, in order.
///
/// A value: it does not change when the query does. Cost: O(log n) for each access by index, O(n) to iterate over
/// all rows. While a copy of the rows exists, the next tick that changes the query copies them in O(n), so release
/// them soon.
public struct LiveRows<Model: ModelObject>: RandomAccessCollection {
  let table: RowTable

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of rows.
  public var endIndex: Int { table.shown.count }
  /// The number of rows.
  public var count: Int { table.shown.count }

  /// The model at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model { Self.row(table.model(table.shown[position])) }

  /// Sound because a query of `Model` has only models of this class: its source was asked for them.
  fileprivate static func row(_ model: ModelObject) -> Model {
    unsafeDowncast(model, to: Model.self)
  }

  /// Returns the index of `model`; nil if it is not shown. Cost: O(log n).
  public func index(of model: Model) -> Int? {
    guard let slot = table.slot(of: model), table.shown.contains(slot) else { return nil }
    return table.shown.rank(of: slot)
  }

  /// Returns the index of `model`; nil if it is not shown. Cost: O(log n).
  public func firstIndex(of model: Model) -> Int? { index(of: model) }

  /// Returns true if `model` is shown. Cost: O(1).
  public func contains(_ model: Model) -> Bool {
    table.slot(of: model).map { table.shown.contains($0) } ?? false
  }

  /// Returns an iterator over the rows.
  public func makeIterator() -> Iterator { Iterator(table: table, slot: table.shown.first) }

  /// An iterator over ``LiveRows``.
  public struct Iterator: IteratorProtocol {
    let table: RowTable
    var slot: Int?

    /// Returns the next model; nil at the end.
    public mutating func next() -> Model? {
      guard let here = slot else { return nil }
      slot = table.shown.next(after: here)
      return LiveRows.row(table.model(here))
    }
  }
}
