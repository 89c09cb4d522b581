/// A description of a live query: models of a scope or of a collection, filtered and sorted.
///
/// ```swift
/// let open = scope.query(Task.self)
///   .filter { !$0.isDone && $0.priority > 1 }
///   .sorted(by: \.due, .descending).then(by: \.title)
///   .live()
/// ```
///
/// A query does nothing by itself; ``live(isolation:)`` runs it and keeps the result up to date. Its closures may
/// read any property of a model and of other models that it leads to, also through computed properties. The query
/// depends on everything that they read through `@Property`, and on nothing else: it does not notice a change of a
/// global variable, for instance. The closures must not write to models.
public struct Query<Model: ModelObject> {
  let source: QueryOrigin
  // From here on the class of the models is not known any more: nothing has to be specialized for it.
  var filters: [(ModelObject) -> Bool] = []
  /// Makes the columns of the sort keys, the most significant one first.
  var columns: [() -> KeyColumn] = []

  init(_ source: QueryOrigin) { self.source = source }

  /// Returns the query without the models for which `isIncluded` is false.
  public func filter(_ isIncluded: @escaping (Model) -> Bool) -> Query {
    var result = self
    result.filters.append { isIncluded(Self.row($0)) }
    return result
  }

  /// Returns the query sorted by `key`: a key path or a closure, evaluated once for each change of what it reads.
  ///
  /// As with an array that is sorted again, the last call of `sorted` is the most significant one, and earlier sort
  /// keys order equal rows. `then(by:)` reads more naturally: it adds the least significant key. Rows for which all
  /// keys are equal are in the order of the collection or, in a query of a scope, of their UUIDs, which is the same
  /// at all replicas. A key that is not equal to itself, such as not-a-number, comes first in ascending order.
  public func sorted<Key: Comparable>(
    by key: @escaping (Model) -> Key, _ direction: SortDirection = .ascending
  ) -> Query {
    adding(key, direction, { KeyOrder.compare($0, $1) }, atFront: true)
  }

  /// Returns the query sorted by `key`. Nil comes first in ascending order and last in descending order.
  public func sorted<Key: Comparable>(
    by key: @escaping (Model) -> Key?, _ direction: SortDirection = .ascending
  ) -> Query {
    adding(key, direction, { KeyOrder.compare($0, $1) }, atFront: true)
  }

  /// Returns the query sorted by `key`, whose values `areInIncreasingOrder` compares.
  ///
  /// ```swift
  /// query.sorted(by: \.title) { $0.lowercased() < $1.lowercased() }
  /// ```
  ///
  /// The closure compares keys and not models, because the query keeps keys: a model that changes while others are
  /// compared with it would spoil the order. It must be a strict weak order that depends on the two keys only.
  public func sorted<Key>(
    by key: @escaping (Model) -> Key, using areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> Query {
    adding(key, .ascending, Self.compare(areInIncreasingOrder), atFront: true)
  }

  /// Returns the query with rows that are equal by all keys so far sorted by `key`.
  public func then<Key: Comparable>(
    by key: @escaping (Model) -> Key, _ direction: SortDirection = .ascending
  ) -> Query {
    adding(key, direction, { KeyOrder.compare($0, $1) }, atFront: false)
  }

  /// Returns the query with rows that are equal by all keys so far sorted by `key`. Nil comes first in ascending
  /// order.
  public func then<Key: Comparable>(
    by key: @escaping (Model) -> Key?, _ direction: SortDirection = .ascending
  ) -> Query {
    adding(key, direction, { KeyOrder.compare($0, $1) }, atFront: false)
  }

  /// Returns the query with rows that are equal by all keys so far sorted by `key`, whose values
  /// `areInIncreasingOrder` compares.
  public func then<Key>(
    by key: @escaping (Model) -> Key, using areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> Query {
    adding(key, .ascending, Self.compare(areInIncreasingOrder), atFront: false)
  }

  /// Divides the rows into sections of equal `key`, in the order of the key. Within a section the rows keep the
  /// order of the query.
  public func sections<Key: Comparable>(
    by key: @escaping (Model) -> Key, _ direction: SortDirection = .ascending
  ) -> SectionedQuery<Key, Model> {
    SectionedQuery(
      query: self, key: key, order: Self.directed({ KeyOrder.compare($0, $1) }, direction))
  }

  /// Divides the rows into sections of equal `key`, in the order of the key. The section of nil comes first in
  /// ascending order.
  public func sections<Key: Comparable>(
    by key: @escaping (Model) -> Key?, _ direction: SortDirection = .ascending
  ) -> SectionedQuery<Key?, Model> {
    SectionedQuery(
      query: self, key: key, order: Self.directed({ KeyOrder.compare($0, $1) }, direction))
  }

  /// Runs the query, and keeps the result up to date while the returned object exists.
  ///
  /// Cost: O(n log n), and one evaluation of the closures for each model.
  ///
  /// - Parameter isolation: the caller's actor, whose ticker serves models that are in no scope.
  public func live(isolation: (any Actor)? = #isolation) -> LiveQuery<Model> {
    LiveQuery(engine(sections: nil, isolation))
  }

  func engine(sections: SectionRows?, _ isolation: (any Actor)?) -> QueryEngine {
    QueryEngine(
      source, filters: filters, columns: columns.map { $0() }, sections: sections,
      ticker: isolation.map { Ticker.on($0) })
  }

  /// Casts a model to the class of the query. Sound because the sources have only models of this class.
  static func row(_ model: ModelObject) -> Model { unsafeDowncast(model, to: Model.self) }

  private func adding<Key>(
    _ key: @escaping (Model) -> Key, _ direction: SortDirection,
    _ order: @escaping (Key, Key) -> Int, atFront: Bool
  ) -> Query {
    var result = self
    let order = Self.directed(order, direction)
    result.columns.insert(
      { TypedColumn(key: { key(Self.row($0)) }, order: order) },
      at: atFront ? 0 : result.columns.count)
    return result
  }

  private static func directed<Key>(
    _ order: @escaping (Key, Key) -> Int, _ direction: SortDirection
  ) -> (Key, Key) -> Int {
    direction == .ascending ? order : { order($1, $0) }
  }

  private static func compare<Key>(
    _ areInIncreasingOrder: @escaping (Key, Key) -> Bool
  ) -> (Key, Key) -> Int {
    { areInIncreasingOrder($0, $1) ? -1 : areInIncreasingOrder($1, $0) ? 1 : 0 }
  }
}

/// The scope or the collection that a query is of.
enum QueryOrigin {
  case scope(Scope, includes: (ModelObject) -> Bool)
  case collection(ModelRecord, property: Int)
}

/// The direction of a sort order.
public enum SortDirection: Sendable {
  /// The smallest key comes first.
  case ascending
  /// The greatest key comes first.
  case descending
}

/// A query whose rows are divided into sections. Made by `Query.sections(by:)`.
public struct SectionedQuery<Key, Model: ModelObject> {
  let query: Query<Model>
  let key: (Model) -> Key
  let order: (Key, Key) -> Int

  /// Runs the query, and keeps the result up to date while the returned object exists.
  ///
  /// Cost: O(n log n), and one evaluation of the closures for each model.
  ///
  /// - Parameter isolation: the caller's actor, whose ticker serves models that are in no scope.
  public func live(isolation: (any Actor)? = #isolation) -> LiveSections<Key, Model> {
    let key = key
    let index = SectionIndex(TypedColumn(key: { key(Query<Model>.row($0)) }, order: order))
    return LiveSections(query.engine(sections: index, isolation), index)
  }
}

extension Scope {
  /// Returns a query of every model of a class in the scope, subclasses included.
  public func query<Model: ModelObject>(_ model: Model.Type) -> Query<Model> {
    Query(.scope(self, includes: { $0 is Model }))
  }
}

extension ObservableModel {
  /// Returns a query of the models in a collection, in its order unless the query is sorted.
  ///
  /// - Precondition: the key path names a collection `@Property` of this model's class.
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
