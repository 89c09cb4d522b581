import Observation

/// The rows of a query, kept up to date.
///
/// ```swift
/// let open = scope.query(Todo.self).filter { !$0.isDone }.sorted(by: \.due).live()
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
    engine.outlet = .rows(signal, tracking)
  }

  deinit { engine.stop() }

  /// The models that the query shows, in order. Cost: O(1); see ``LiveRows`` about keeping it.
  public var rows: LiveRows<Model> {
    tracking.read()
    return LiveRows(table: engine.table)
  }

  /// The number of rows. Cost: O(1).
  package var count: Int {
    tracking.read()
    return engine.table.shown.count
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed.
  ///
  /// The update leads from the rows that the observer saw before to those that it sees now. Changes that the
  /// handler makes belong to the next tick. The observer is held weakly; a handler that captures the query has to
  /// do so weakly as well.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveUpdate<Model, Int>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveUpdate($1, .offsets)) }
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed, until the token is cancelled.
  @discardableResult
  public func observe(_ handler: @escaping (LiveUpdate<Model, Int>) -> Void) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveUpdate($0, .offsets)) }
  }

  /// Ends the query: the rows stay as they are, and no observer is called any more.
  public func stop() { engine.stop() }
}
