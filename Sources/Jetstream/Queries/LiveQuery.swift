/// The rows of a query, kept up to date.
///
/// ```swift
/// let open = scope.query(Task.self).filter { !$0.isDone }.sorted(by: \.due).live()
/// open.observe(self) { me, update in me.list.apply(update) }
/// ```
///
/// The rows are those of the last tick. Each tick applies all changes since the one before, and does so before it
/// calls any observer. Cost of a tick: O(k log n) for k rows that have entered, left or moved, or of which a
/// property that the closures have read has changed; the closures run for these rows only.
///
/// A query ends when the last reference to it is released, or with ``stop()``. It retains the models in its source,
/// as an array of them would, but neither the scope nor the owner of the collection: when that is deallocated, no
/// model enters or leaves any more, and changes of the models still update the rows. A model that retains a query
/// in which it occurs keeps itself alive.
///
/// Isolation: that of its scope or collection.
public final class LiveQuery<Model: ModelObject> {
  private let engine: QueryEngine
  private let signal = Signal<QueryChange>()

  init(_ engine: QueryEngine) {
    self.engine = engine
    engine.wantsChanges = { [signal] in signal.hasListeners }
    engine.onChange = { [signal] in signal.fire($0) }
  }

  deinit { engine.stop() }

  /// The models that the query shows, in order. Cost: O(1); see ``LiveRows`` about keeping them.
  public var rows: LiveRows<Model> { LiveRows(table: engine.table) }

  /// The number of rows. Cost: O(1).
  public var count: Int { engine.table.shown.count }

  /// True if there are no rows. Cost: O(1).
  public var isEmpty: Bool { count == 0 }

  /// The first row; nil if there is none. Cost: O(log n).
  public var first: Model? { rows.first }

  /// The last row; nil if there is none. Cost: O(log n).
  public var last: Model? { rows.last }

  /// The row at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model { rows[position] }

  /// Returns the index of `model`; nil if it is not shown. Cost: O(log n).
  public func index(of model: Model) -> Int? { rows.index(of: model) }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed.
  ///
  /// The update leads from the rows that the observer saw before to those that it sees now. Changes that the
  /// handler makes belong to the next tick. The observer is held weakly; a handler that captures the query has to
  /// do so weakly as well.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveUpdate($1)) }
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed, until the token is cancelled.
  @discardableResult
  public func observe(_ handler: @escaping (LiveUpdate<Model>) -> Void) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveUpdate($0)) }
  }

  /// Ends the query: the rows stay as they are, and observers are no longer called.
  public func stop() { engine.stop() }
}

/// The changes of a ``LiveQuery`` in one tick.
///
/// Old offsets are those before the tick, new offsets those after it, as the batch updates of list views expect:
/// remove `deleted` and the `from` of `moved`, insert `inserted` and the `to` of `moved`, then reload `updated`.
public struct LiveUpdate<Model: ModelObject> {
  private let change: QueryChange

  init(_ change: QueryChange) { self.change = change }

  /// The old offsets of rows that have left. Ascending.
  public var deleted: [Int] { change.removals.filter { $0.other == nil }.map(\.offset).sorted() }

  /// The new offsets of rows that have entered. Ascending.
  public var inserted: [Int] { change.insertions.filter { $0.other == nil }.map(\.offset).sorted() }

  /// The old and new offsets of rows that have moved, ordered by the new offset. Rows that changed their offset
  /// only because of other rows are not included.
  public var moved: [(from: Int, to: Int)] {
    change.insertions.compactMap { step in step.other.map { ($0, step.offset) } }
      .sorted { $0.to < $1.to }
  }

  /// The new offsets of rows that have not moved and of which a property that the query has read was written.
  /// Ascending. A value that was changed and changed back is included.
  public var updated: [Int] { change.updated }

  /// The changes except ``updated`` as a difference: `Array(old).applying(difference)` equals the new rows. A row
  /// that has moved is a removal and an insertion that are associated with each other.
  ///
  /// Computed on each access. Cost: O(k log k) for k changes, which can be more than everything else that the tick
  /// does for them.
  public var difference: CollectionDifference<Model> { change.difference(as: Model.self) }
}
