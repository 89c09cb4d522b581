import Observation

/// Where a row stands: the offset of its section, and its offset in there.
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

  /// Whether `a` stands in front of `b`.
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
    engine.connect(signal, tracking)
  }

  deinit { engine.stop() }

  /// The sections in order. Cost: O(1); see ``LiveRows`` about keeping it.
  public var sections: SectionList<Key, Model> {
    SectionList(rows: rows, tree: index.tree, keys: index.keys)
  }

  /// The rows of all sections, one section after the other.
  public var rows: LiveRows<Model> {
    tracking.read()
    return LiveRows(table: engine.table)
  }

  /// The number of rows in all sections. Cost: O(1).
  public var count: Int {
    tracking.read()
    return engine.table.shown.count
  }

  /// Whether there are no rows. Cost: O(1).
  public var isEmpty: Bool { count == 0 }

  /// The row at `path`. Cost: O(log n).
  public subscript(path: RowPath) -> Model { sections[path.section][path.item] }

  /// Where `model` stands; nil if it is not shown. Cost: O(log n).
  public func path(of model: Model) -> RowPath? {
    guard let slot = engine.table.slot(of: model), let rank = rows.index(of: model) else {
      return nil
    }
    return index.path(rank: rank, in: index.section(of: slot))
  }

  /// Calls `handler` once in each tick that has changed the rows, or what the query has read of them.
  ///
  /// What the handler writes belongs to the next tick. The observer is held weakly.
  @discardableResult
  public func observe<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, LiveSectionsUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(observer, filter: engine.isLater()) { handler($0, LiveSectionsUpdate($1)) }
  }

  /// Calls `handler` once in each tick that has changed the rows, until the token is cancelled.
  @discardableResult
  public func observe(
    _ handler: @escaping (LiveSectionsUpdate<Model>) -> Void
  ) -> ObservationToken {
    signal.listen(filter: engine.isLater()) { handler(LiveSectionsUpdate($0)) }
  }

  /// Ends the query: the rows stay as they are, and nobody is told anything any more.
  public func stop() { engine.stop() }
}

/// What a tick has done to the rows of a ``LiveSections``, in the terms of a list view.
///
/// Applied in this order to the sections before, it gives the sections now:
/// 1. take out the rows at `deleted` and at the `from` of `moved`, by the paths that they had before;
/// 2. take out the sections at `deletedSections`, by their offsets before, with the rows in them;
/// 3. put in the sections at `insertedSections`, by their offsets now, with all their rows;
/// 4. put in the rows at `inserted` and at the `to` of `moved`, by their paths now;
/// 5. show the rows at `updated` again, by their paths now.
///
/// That is what the batch updates of list views do, whatever the order of the calls. No row of a
/// section that goes is named by 1, and none of a section that comes by 4: a row that moves out of the
/// one is in `inserted`, one that moves into the other is in `deleted`, and one that does both is
/// named by its sections alone. ``difference`` has all of them as moves.
public struct LiveSectionsUpdate<Model: ModelObject> {
  /// The offsets before of sections that have gone. Ascending.
  public let deletedSections: [Int]
  /// The offsets now of sections that have come. Ascending.
  public let insertedSections: [Int]
  /// The paths before of rows that have gone from a section that is still there. Ascending.
  public let deleted: [RowPath]
  /// The paths now of rows that have come into a section that was there. Ascending.
  public let inserted: [RowPath]
  /// The paths before and now of rows that have moved between sections that were and are there.
  public let moved: [(from: RowPath, to: RowPath)]
  /// The paths now of rows that have not moved and of which something was written that the query has
  /// read. Ascending.
  public let updated: [RowPath]
  /// Leads from the rows of all sections before to those now, as ``LiveUpdate/difference`` does.
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

/// The sections of a ``LiveSections``. A value: it stays what it is when the query goes on.
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

/// One section of a ``LiveSections``: the rows of equal key.
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
