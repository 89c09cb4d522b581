import Foundation

/// A description of models in a scope or in a collection, filtered and sorted.
///
/// ```swift
/// let open = scope.query(Todo.self)
///   .filter { !$0.isDone && $0.priority > 1 }
///   .sorted(by: \.due, order: .reverse).then(by: \.title)
///   .live()
/// ```
///
/// A query is a description and does nothing; ``live(isolation:)`` runs it and keeps the result up to
/// date. Its closures may read what they like of a model and of other models that it leads to, also
/// through computed properties: what they have read through `@Property` is what they depend on.
/// They must not write, and they get no notice of anything else, such as a global variable.
public struct Query<Model: ModelObject> {
  let source: QueryOrigin
  // From here on the class of the models is not known any more: nothing has to be specialized for it.
  var filters: [(ModelObject) -> Bool] = []
  /// Makes the columns of the sort keys, the most significant one first.
  var columns: [() -> KeyColumn] = []
  var limit: (count: Int, offset: Int)?

  init(_ source: QueryOrigin) { self.source = source }

  /// Returns a query of those rows for which `isIncluded` is true.
  public func filter(_ isIncluded: @escaping (Model) -> Bool) -> Query {
    var result = self
    result.filters.append { isIncluded(Self.row($0)) }
    return result
  }

  /// Orders the rows by `key`: a key path or a closure, evaluated once for each change of what it reads.
  ///
  /// Nil comes first in forward order and last in reverse order. A key that is not equal to itself, such as
  /// not-a-number, comes next to nil.
  ///
  /// As with an array that is sorted again, the last call of `sorted` decides first and what was
  /// sorted by before decides between equals. `then(by:)` reads more naturally: it adds a
  /// key that decides last. What all keys find equal stands in the order of the collection; in a
  /// query of a scope, in the order of the UUIDs, which is the same in all replicas.
  public func sorted<Key: Comparable>(
    by key: @escaping (Model) -> Key?, order: SortOrder = .forward
  ) -> Query {
    adding(atFront: true) { ComparableColumn<Key>.make({ key(Self.row($0)) }, order) }
  }

  /// Orders the rows by `key`, of which `areInIncreasingOrder` tells which of two comes first.
  ///
  /// ```swift
  /// query.sorted(by: \.title) { $0.lowercased() < $1.lowercased() }
  /// ```
  ///
  /// It is given keys and not models, because keys are kept: a model that changes while others are
  /// compared with it would spoil the order. It must be a strict weak order of the keys alone.
  public func sorted<Key>(
    by key: @escaping (Model) -> Key, using areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> Query {
    adding(atFront: true) { Self.column(key, areInIncreasingOrder) }
  }

  /// Orders rows that all keys so far find equal by `key`; see ``sorted(by:order:)``.
  public func then<Key: Comparable>(
    by key: @escaping (Model) -> Key?, order: SortOrder = .forward
  ) -> Query {
    adding(atFront: false) { ComparableColumn<Key>.make({ key(Self.row($0)) }, order) }
  }

  /// Orders rows that all keys so far find equal by `key`; see ``sorted(by:using:)``.
  public func then<Key>(
    by key: @escaping (Model) -> Key, using areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> Query {
    adding(atFront: false) { Self.column(key, areInIncreasingOrder) }
  }

  /// Returns a query of at most `limit` rows, those behind the first `offset` ones.
  ///
  /// ```swift
  /// let page = scope.query(Message.self).sorted(by: \.date, order: .reverse).limit(20, offset: 40).live()
  /// ```
  ///
  /// The rows are counted in the order of the query, once it has filtered and sorted them, whatever the order of the
  /// calls; without a sort key that is the order of the collection, or that of the UUIDs. `sections(by:order:)`
  /// then puts these rows, and no others, into sections. Of several limits the last one holds.
  ///
  /// A live query tells only what happens to the rows that it shows: one that comes into the window because another one
  /// has left it is an insertion. Cost of a tick: O(log n) comparisons for each row that has changed, and as much for
  /// each that comes into the window or leaves it. All rows are kept in order, those that are not shown included.
  ///
  /// - Precondition: Neither argument is negative.
  public func limit(_ limit: Int, offset: Int = 0) -> Query {
    precondition(limit >= 0, "The limit of a query must not be negative; it is \(limit).")
    precondition(offset >= 0, "The offset of a query must not be negative; it is \(offset).")
    var result = self
    result.limit = (limit, offset)
    return result
  }

  /// Puts the rows into sections of equal `key`, which stand in the order of the key.
  ///
  /// Within a section the rows keep the order of the query.
  public func sections<Key: Comparable>(
    by key: @escaping (Model) -> Key, order: SortOrder = .forward
  ) -> SectionedQuery<Key, Model> {
    SectionedQuery(query: self, key: key, order: Self.directed({ KeyOrder.compare($0, $1) }, order))
  }

  /// Puts the rows into sections of equal `key`; the one of nil comes first in forward order.
  public func sections<Key: Comparable>(
    by key: @escaping (Model) -> Key?, order: SortOrder = .forward
  ) -> SectionedQuery<Key?, Model> {
    SectionedQuery(query: self, key: key, order: Self.directed({ KeyOrder.compare($0, $1) }, order))
  }

  /// Runs the query, and keeps the result up to date for as long as it is held.
  ///
  /// Cost: O(n log n), and one evaluation of the closures for each model.
  public func live(isolation: any Actor = #isolation) -> LiveQuery<Model> {
    LiveQuery(engine(sections: nil, isolation))
  }

  func engine(sections: SectionRows?, _ isolation: any Actor) -> QueryEngine {
    let columns = columns.map { $0() }
    return QueryEngine(
      source, filters: filters, columns: columns,
      window: limit.map { RowWindow(limit: $0.count, offset: $0.offset, columns: columns) },
      sections: sections, ticker: Ticker.on(isolation))
  }

  /// Casts a model to the class of the query. Sound because the sources have only models of this class.
  static func row(_ model: ModelObject) -> Model { unsafeDowncast(model, to: Model.self) }

  private func adding(atFront: Bool, _ column: @escaping () -> KeyColumn) -> Query {
    var result = self
    result.columns.insert(column, at: atFront ? 0 : result.columns.count)
    return result
  }

  private static func directed<Key>(
    _ compare: @escaping (Key, Key) -> Int, _ order: SortOrder
  ) -> (Key, Key) -> Int {
    order == .forward ? compare : { compare($1, $0) }
  }

  private static func column<Key>(
    _ key: @escaping (Model) -> Key, _ areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> KeyColumn {
    TypedColumn(
      key: { key(Self.row($0)) },
      order: { areInIncreasingOrder($0, $1) ? -1 : areInIncreasingOrder($1, $0) ? 1 : 0 })
  }
}

/// The scope or the collection that a query is of.
enum QueryOrigin {
  case scope(Scope, includes: (ModelObject) -> Bool)
  case collection(ModelRecord, property: Int)
}

/// A query whose rows are divided into sections. Made by `Query.sections(by:)`.
public struct SectionedQuery<Key, Model: ModelObject> {
  let query: Query<Model>
  let key: (Model) -> Key
  let order: (Key, Key) -> Int

  /// Runs the query, and keeps the result up to date for as long as it is held.
  public func live(isolation: any Actor = #isolation) -> LiveSections<Key, Model> {
    let key = key
    let index = SectionIndex(TypedColumn(key: { key(Query<Model>.row($0)) }, order: order))
    return LiveSections(query.engine(sections: index, isolation), index)
  }
}

extension Scope {
  /// Describes every model of a class in the scope, subclasses included.
  public func query<Model: ModelObject>(_ model: Model.Type) -> Query<Model> {
    Query(.scope(self, includes: { $0 is Model }))
  }
}

extension ObservableModel {
  /// Describes the models in a collection, in its order unless they are sorted.
  ///
  /// The key path must name a `@Property`.
  public func query<Element: ModelObject>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>
  ) -> Query<Element> {
    let (_, reads) = ReadTracker.track { self[keyPath: keyPath] }
    precondition(
      reads.count == 1 && reads[0].model === self
        && schema.properties[reads[0].index].access.valueType == ModelArray<Element>.self,
      "\(keyPath) is not a collection @Property of \(schema.wireName), so it cannot be queried.")
    return Query(.collection(ensureRecord(), property: reads[0].index))
  }
}
