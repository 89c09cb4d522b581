import Observation

/// One value that is made of the rows of a query, kept up to date.
///
/// ```swift
/// let open = scope.query(Todo.self).filter { !$0.isDone }
/// let total = open.sum(of: \.minutes)
/// total.observe(self) { me, minutes in me.label.text = "\(minutes) minutes to go" }
/// ```
///
/// Made by ``Query/count(isolation:)``, ``Query/min(of:isolation:)``, ``Query/max(of:isolation:)``,
/// `Query.sum(of:)` and ``Query/distinct(_:isolation:)``. It is of the rows that the query shows: its
/// filters count, and so does its limit, for which alone its order matters.
///
/// The value is that of the last tick, as in ``LiveQuery``, and only rows that have changed are looked at again. It is
/// `Observable`: a tracking that has read it is called in the first tick that has changed it. It ends with the last
/// reference to it, or with ``stop()``, and keeps the models in its source alive.
///
/// Isolation: that of its scope or collection.
public final class LiveValue<Value>: Observable {
  private let engine: QueryEngine
  private let content: Content
  private let signal = Signal<QueryChange>()
  private let tracking = ResultTracking()

  /// The part that the engine keeps up to date. It must not retain its owner.
  private final class Content {
    var value: Value
    init(_ value: Value) { self.value = value }
  }

  /// Makes a value that `update` brings up to date, which returns true if that has changed it.
  init(_ engine: QueryEngine, _ initial: Value, update: @escaping (inout Value) -> Bool) {
    self.engine = engine
    let content = Content(initial)
    self.content = content
    _ = update(&content.value)
    engine.outlet = .value(signal, tracking, refresh: { update(&content.value) })
  }

  deinit { engine.stop() }

  /// The value, as of the last tick. Cost: O(1).
  public var value: Value {
    tracking.read()
    return content.value
  }

  /// Calls `handler` with the new value, once in each tick that has changed it.
  ///
  /// Changes that the handler makes belong to the next tick. The observer is held weakly.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Value) -> Void
  ) -> ObservationToken {
    let content = content
    return signal.listen(observer, filter: engine.isLater()) { me, _ in handler(me, content.value) }
  }

  /// Calls `handler` with the new value, once in each tick that has changed it, until the token is cancelled.
  @discardableResult
  public func observe(_ handler: @escaping (Value) -> Void) -> ObservationToken {
    let content = content
    return signal.listen(filter: engine.isLater()) { _ in handler(content.value) }
  }

  /// Ends the observation of the rows: the value stays as it is, and no observer is called any more.
  public func stop() { engine.stop() }
}
