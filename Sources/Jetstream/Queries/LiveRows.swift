/// The models that a live query shows, in order.
///
/// A value: it stays what it is when the query goes on. Cost: O(log n) for each access by index,
/// O(n) to iterate over all. While somebody holds it, the next tick that changes the query copies it
/// in O(n), so keep it for no longer than it is looked at.
public struct LiveRows<Model: ModelObject>: RandomAccessCollection {
  let table: RowTable

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of rows.
  public var endIndex: Int { table.shown.count }
  /// The number of rows.
  public var count: Int { table.shown.count }

  /// The model of the row at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model { Self.row(table.model(table.shown[position])) }

  /// Sound because a query of `Model` has only models of this class: its source was asked for them.
  fileprivate static func row(_ model: ModelObject) -> Model {
    unsafeDowncast(model, to: Model.self)
  }

  /// Where `model` stands; nil if it is not shown. Cost: O(log n).
  public func index(of model: Model) -> Int? {
    guard let slot = table.slot(of: model), table.shown.contains(slot) else { return nil }
    return table.shown.rank(of: slot)
  }

  /// Where `model` stands; nil if it is not shown. Cost: O(log n).
  public func firstIndex(of model: Model) -> Int? { index(of: model) }

  /// Whether `model` is shown. Cost: O(1).
  public func contains(_ model: Model) -> Bool {
    table.slot(of: model).map { table.shown.contains($0) } ?? false
  }

  /// Iterates over the rows.
  public func makeIterator() -> Iterator { Iterator(table: table, slot: table.shown.first) }

  /// Iterates over ``LiveRows``.
  public struct Iterator: IteratorProtocol {
    let table: RowTable
    var slot: Int?

    /// The next model.
    public mutating func next() -> Model? {
      guard let here = slot else { return nil }
      slot = table.shown.next(after: here)
      return LiveRows.row(table.model(here))
    }
  }
}
