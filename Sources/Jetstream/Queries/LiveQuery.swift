import Observation

/// The rows of a query, kept up to date.
///
/// ```swift
/// let open = scope.query(Task.self).filter { !$0.isDone }.sorted(by: \.due).live()
/// open.observe(self) { me, update in me.list.apply(update) }
/// ```
///
/// The rows are those of the last tick: what changes is taken in at the next one, together with
/// whatever else has changed until then, before any observer of that tick is called. Cost of a tick:
/// O(k log n) for k rows that have come, gone or been moved, or of which something has changed that
/// the closures have read; the closures run for these rows alone.
///
/// A query ends with the last reference to it, or with ``stop()``. It keeps the models in its source
/// alive, as an array of them would, and neither the scope nor the owner of the collection: when that
/// has gone, no model comes or goes any more, and the rest continues. A model that holds a query in
/// which it occurs keeps itself alive.
///
/// SwiftUI and `withObservationTracking` follow what is read here: a tracking is called once, in the first tick in
/// which a row has come, gone or moved. What the models themselves say, a view follows through models that are
/// `Observable`. A query that nothing tracks and nothing observes computes no difference.
///
/// Isolation: that of its scope or collection.
public final class LiveQuery<Model: ModelObject>: Observable {
  let engine: QueryEngine
  private let signal = Signal<QueryChange>()
  private let tracking = ResultTracking()

  init(_ engine: QueryEngine) {
    self.engine = engine
    engine.connect(signal, tracking)
  }

  deinit { engine.stop() }

  /// The models that the query shows, in order. Cost: O(1); see ``LiveRows`` about keeping it.
  public var rows: LiveRows<Model> {
    tracking.read()
    return LiveRows(table: engine.table)
  }

  /// The number of rows. Cost: O(1).
  public var count: Int {
    tracking.read()
    return engine.table.shown.count
  }

  /// Whether there are no rows. Cost: O(1).
  public var isEmpty: Bool { count == 0 }

  /// The first row. Cost: O(log n).
  public var first: Model? { rows.first }

  /// The last row. Cost: O(log n).
  public var last: Model? { rows.last }

  /// The row at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model { rows[position] }

  /// Where `model` stands; nil if it is not shown. Cost: O(log n).
  public func index(of model: Model) -> Int? { rows.index(of: model) }

  /// Calls `handler` once in each tick that has changed the rows, or what the query has read of them.
  ///
  /// The difference leads from the rows that the observer saw before to those that it sees now. What
  /// the handler writes belongs to the next tick. The observer is held weakly; a handler that captures
  /// the query itself has to do so weakly as well.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveUpdate($1)) }
  }

  /// Calls `handler` once in each tick that has changed the rows, until the token is cancelled.
  @discardableResult
  public func observe(_ handler: @escaping (LiveUpdate<Model>) -> Void) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveUpdate($0)) }
  }

  /// Ends the query: the rows stay as they are, and nobody is told anything any more.
  public func stop() { engine.stop() }
}

/// What a tick has done to the rows of a ``LiveQuery``.
///
/// Offsets before are those of the old rows, offsets now those of the new ones, as the batch updates of
/// list views want them: take out `deleted` and the `from` of `moved`, put in `inserted` and the `to` of
/// `moved`, then show `updated` again.
public struct LiveUpdate<Model: ModelObject> {
  private let change: QueryChange

  init(_ change: QueryChange) { self.change = change }

  /// The offsets before of rows that have gone. Ascending.
  public var deleted: [Int] { change.removals.filter { $0.other == nil }.map(\.offset).sorted() }

  /// The offsets now of rows that have come. Ascending.
  public var inserted: [Int] { change.insertions.filter { $0.other == nil }.map(\.offset).sorted() }

  /// The offsets before and now of rows that have moved, in the order of the latter. Rows that others
  /// have only pushed along are not among them.
  public var moved: [(from: Int, to: Int)] {
    change.insertions.compactMap { step in step.other.map { ($0, step.offset) } }
      .sorted { $0.to < $1.to }
  }

  /// The offsets now of rows that have not moved and of which something was written that the query has
  /// read. Ascending. A value that was changed and changed back counts.
  public var updated: [Int] { change.updated }

  /// All but ``updated`` as a difference: `Array(old).applying(difference)` equals the new rows. A row
  /// that has moved is a removal and an insertion that are associated with each other.
  ///
  /// Made anew each time. Cost: O(k log k) for k changes, which can be more than all else that the
  /// tick does for them.
  public var difference: CollectionDifference<Model> { change.difference(as: Model.self) }
}
