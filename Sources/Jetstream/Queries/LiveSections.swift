/// The position of a row: the offset of its section, and its offset in the section.
public struct RowPath: Hashable, Comparable, Sendable {
  /// The offset of the section.
  public var section: Int
  /// The offset of the row in its section.
  public var item: Int

  /// Makes a path.
  public init(section: Int, item: Int) {
    self.section = section
    self.item = item
  }

  /// Returns true if `a` comes before `b`.
  public static func < (a: RowPath, b: RowPath) -> Bool {
    a.section != b.section ? a.section < b.section : a.item < b.item
  }
}

/// The rows of a query in sections, kept up to date.
///
/// ```swift
/// let tasks = scope.query(Task.self).sorted(by: \.title).sections(by: \.project?.name).live()
/// for section in tasks.sections { print(section.key ?? "none", section.map(\.title)) }
/// ```
///
/// A section has the rows with an equal key; there are no empty sections. Everything else is as in ``LiveQuery``.
public final class LiveSections<Key, Model: ModelObject> {
  private let engine: QueryEngine
  private let index: SectionIndex<Key>
  private let signal = Signal<QueryChange>()

  init(_ engine: QueryEngine, _ index: SectionIndex<Key>) {
    self.engine = engine
    self.index = index
    engine.wantsChanges = { [signal] in signal.hasListeners }
    engine.onChange = { [signal] in signal.fire($0) }
  }

  deinit { engine.stop() }

  /// The sections in order. Cost: O(1); see ``LiveRows`` about keeping them.
  public var sections: SectionList<Key, Model> {
    SectionList(rows: rows, tree: index.tree, keys: index.keys)
  }

  /// The rows of all sections, one section after the other.
  public var rows: LiveRows<Model> { LiveRows(table: engine.table) }

  /// The number of rows in all sections. Cost: O(1).
  public var count: Int { engine.table.shown.count }

  /// True if there are no rows. Cost: O(1).
  public var isEmpty: Bool { count == 0 }

  /// The row at `path`. Cost: O(log n).
  public subscript(path: RowPath) -> Model { sections[path.section][path.item] }

  /// Returns the path of `model`; nil if it is not shown. Cost: O(log n).
  public func path(of model: Model) -> RowPath? {
    guard let slot = engine.table.slot(of: model), let rank = rows.index(of: model) else {
      return nil
    }
    return index.path(rank: rank, in: index.section(of: slot))
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed.
  ///
  /// Changes that the handler makes belong to the next tick. The observer is held weakly.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveSectionsUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveSectionsUpdate($1)) }
  }

  /// Calls `handler` once in each tick in which the rows, or properties that the query has read of them, have
  /// changed, until the token is cancelled.
  @discardableResult
  public func observe(
    _ handler: @escaping (LiveSectionsUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveSectionsUpdate($0)) }
  }

  /// Ends the query: the rows stay as they are, and observers are no longer called.
  public func stop() { engine.stop() }
}

/// The changes of a ``LiveSections`` in one tick, in the terms of a list view.
///
/// Applied in this order to the old sections, it gives the new sections:
/// 1. remove the rows at `deleted` and at the `from` of `moved`, by their old paths;
/// 2. remove the sections at `deletedSections`, by their old offsets, with the rows in them;
/// 3. insert the sections at `insertedSections`, by their new offsets, with all their rows;
/// 4. insert the rows at `inserted` and at the `to` of `moved`, by their new paths;
/// 5. reload the rows at `updated`, by their new paths.
///
/// The batch updates of list views do the same, whatever the order of the calls. Step 1 names no row of a section
/// that is removed, and step 4 none of a section that is inserted. So a row that moves out of a removed section is
/// in `inserted`, a row that moves into an inserted section is in `deleted`, and a row that does both is not named.
/// ``difference`` has all of them as moves.
public struct LiveSectionsUpdate<Model: ModelObject> {
  /// The old offsets of removed sections. Ascending.
  public let deletedSections: [Int]
  /// The new offsets of inserted sections. Ascending.
  public let insertedSections: [Int]
  /// The old paths of rows that have left a section that still exists. Ascending.
  public let deleted: [RowPath]
  /// The new paths of rows that have entered a section that existed before. Ascending.
  public let inserted: [RowPath]
  /// The old and new paths of rows that have moved within or between sections that existed before and still exist.
  public let moved: [(from: RowPath, to: RowPath)]
  /// The new paths of rows that have not moved and of which a property that the query has read was written.
  /// Ascending.
  public let updated: [RowPath]
  /// The difference between all rows before and after the tick, as ``LiveUpdate/difference``.
  public var difference: CollectionDifference<Model> { change.difference(as: Model.self) }

  private let change: QueryChange

  init(_ change: QueryChange) {
    deletedSections = change.deletedSections
    insertedSections = change.insertedSections
    deleted = change.deleted
    inserted = change.inserted
    moved = change.moved
    updated = change.updatedPaths
    self.change = change
  }
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
