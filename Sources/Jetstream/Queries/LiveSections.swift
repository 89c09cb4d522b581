import Foundation
import Observation

/// The rows of a query in sections, kept up to date.
///
/// ```swift
/// let todos = scope.query(Todo.self).sorted(by: \.title).sections(by: \.project?.name).live()
/// for section in todos.sections { print(section.key ?? "none", section.map(\.title)) }
/// ```
///
/// A section has the rows of equal key; there is none without rows. Everything else is as in
/// ``LiveQuery``.
public final class LiveSections<Key, Model: ModelObject>: Observable {
  let engine: QueryEngine
  private let index: SectionIndex<Key>
  private let signal = Signal<QueryChange>()
  private let tracking = ResultTracking()

  init(_ engine: QueryEngine, _ index: SectionIndex<Key>) {
    self.engine = engine
    self.index = index
    engine.outlet = .rows(signal, tracking)
  }

  deinit { engine.stop() }

  /// The sections in order. Cost: O(1); see ``LiveRows`` about keeping them.
  public var sections: SectionList<Key, Model> {
    SectionList(rows: rows, tree: index.tree, keys: index.keys)
  }

  /// The rows of all sections, one section after the other.
  public var rows: LiveRows<Model> {
    tracking.read()
    return LiveRows(table: engine.table)
  }

  /// The number of rows in all sections. Cost: O(1).
  package var count: Int {
    tracking.read()
    return engine.table.shown.count
  }

  /// The row at `path`: the offset of its section, and its offset in there. Cost: O(log n).
  public subscript(path: IndexPath) -> Model {
    precondition(
      path.count == 2,
      "The path of a row has two elements, its section and its place; \(path) has not.")
    return sections[path[0]][path[1]]
  }

  /// Finds the path of `model`: the offset of its section, and its offset in there. Nil if it is not shown.
  /// Cost: O(log n).
  public func path(of model: Model) -> IndexPath? {
    guard let slot = engine.table.slot(of: model), let rank = rows.firstIndex(of: model) else {
      return nil
    }
    return index.path(rank: rank, in: index.section(of: slot)).indexPath
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed.
  ///
  /// Changes that the handler makes belong to the next tick. The observer is held weakly.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveUpdate<Model, IndexPath>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveUpdate($1, .paths)) }
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed, until the token is cancelled.
  @discardableResult
  public func observe(
    _ handler: @escaping (LiveUpdate<Model, IndexPath>) -> Void
  ) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveUpdate($0, .paths)) }
  }

  /// Ends the query: the rows stay as they are, and no observer is called any more.
  public func stop() { engine.stop() }
}

/// The sections of a ``LiveSections``. A value: it does not change when the query does.
public struct SectionList<Key, Model: ModelObject>: RandomAccessCollection {
  let rows: LiveRows<Model>
  let tree: OrderTree
  let keys: ContiguousArray<Key?>

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of sections.
  public var endIndex: Int { tree.count }

  /// The section at `position`. Cost: O(log n).
  public subscript(position: Int) -> RowSection<Key, Model> {
    let slot = tree[position]
    guard let key = keys[slot] else { preconditionFailure("A section has no key.") }
    return RowSection(
      key: key, rows: rows, start: tree.weight(before: slot), endIndex: tree.weight(of: slot))
  }
}

/// One section of a ``LiveSections``: the rows with an equal key.
public struct RowSection<Key, Model: ModelObject>: RandomAccessCollection {
  /// The key of all rows in the section.
  public let key: Key
  let rows: LiveRows<Model>
  let start: Int

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of rows in the section.
  public let endIndex: Int

  init(key: Key, rows: LiveRows<Model>, start: Int, endIndex: Int) {
    self.key = key
    self.rows = rows
    self.start = start
    self.endIndex = endIndex
  }

  /// The row at `position`. Cost: O(log n).
  public subscript(position: Int) -> Model {
    precondition(
      position >= 0 && position < endIndex,
      "Index \(position) is out of range of a section of \(endIndex) rows.")
    return rows[start + position]
  }
}
