extension Query {
  /// Counts the rows, and keeps the number up to date.
  ///
  /// Cost: O(n) and one evaluation of the filters for each model; O(log n) for each row that comes or goes.
  public func count(isolation: any Actor = #isolation) -> LiveValue<Int> {
    let engine = valueEngine(isolation)
    return LiveValue(engine, 0) { [unowned engine] value in
      Self.assign(engine.table.shown.count, to: &value)
    }
  }

  /// Finds the least `key` of all rows, and keeps it up to date. Nil if there is none.
  ///
  /// Rows whose key is nil, or is not equal to itself as not-a-number is, do not count.
  /// Cost: O(n log n); O(log n) for each row that comes, goes, or has another key.
  public func min<Key: Comparable>(
    of key: @escaping (Model) -> Key?, isolation: any Actor = #isolation
  ) -> LiveValue<Key?> {
    first(of: key, isolation) { KeyOrder.compare($0, $1) }
  }

  /// Finds the greatest `key` of all rows, and keeps it up to date; see ``min(of:isolation:)``.
  public func max<Key: Comparable>(
    of key: @escaping (Model) -> Key?, isolation: any Actor = #isolation
  ) -> LiveValue<Key?> {
    first(of: key, isolation) { KeyOrder.compare($1, $0) }
  }

  /// Adds up the integers of all rows, and keeps the sum up to date. Rows whose key is nil do not count.
  ///
  /// The sum is kept in 128 bits and does not overflow, whatever the type of the key. While it is out of the range of
  /// `Int`, the value is the end of that range that is closer to it. Keys beyond 2^64 in magnitude count as 2^64.
  ///
  /// Cost: O(n); O(log n) for each row that comes, goes, or has another key.
  public func sum<Number: FixedWidthInteger>(
    of key: @escaping (Model) -> Number?, isolation: any Actor = #isolation
  ) -> LiveValue<Int> {
    let sum = IntegerSum { key(Self.row($0)).map { Int128(clamping: $0) } }
    return LiveValue(valueEngine(isolation, aggregate: sum), 0) {
      Self.assign(Int(clamping: sum.total), to: &$0)
    }
  }

  /// Adds up the floating-point numbers of all rows, and keeps the sum up to date. Rows whose key is nil do not count.
  ///
  /// The sum is exact and is rounded once, when it is read: it is the `Double` that is nearest to the true sum of the
  /// keys, in whatever order they have come and gone. So nothing of a large key stays behind when that goes, and all
  /// replicas have the same sum. It is not-a-number while a key is, or while keys are infinite in both directions.
  ///
  /// Cost: O(n); O(log n) for each row that comes, goes, or has another key.
  public func sum<Number: BinaryFloatingPoint>(
    of key: @escaping (Model) -> Number?, isolation: any Actor = #isolation
  ) -> LiveValue<Double> {
    let sum = FloatingPointSum { key(Self.row($0)).map { Double($0) } }
    return LiveValue(valueEngine(isolation, aggregate: sum), 0) { value in
      let new = sum.total.value
      let isSame = value == new || value.isNaN && new.isNaN
      value = new
      return !isSame
    }
  }

  /// Collects the different keys of all rows, and keeps the set up to date.
  ///
  /// A key that is not equal to itself, as not-a-number is, is left out.
  /// Cost: O(n); O(log n) for each row that comes, goes, or has another key. While a copy of the set is kept, the next
  /// tick that changes it copies it.
  public func distinct<Key: Hashable>(
    _ key: @escaping (Model) -> Key, isolation: any Actor = #isolation
  ) -> LiveValue<Set<Key>> {
    let keys = DistinctKeys { key(Self.row($0)) }
    return LiveValue(valueEngine(isolation, aggregate: keys), []) { keys.update(&$0) }
  }

  private func first<Key: Comparable>(
    of key: @escaping (Model) -> Key?, _ isolation: any Actor,
    _ order: @escaping (Key, Key) -> Int
  ) -> LiveValue<Key?> {
    let column = TypedColumn<Key?>(
      key: { model in key(Self.row(model)).flatMap { $0 == $0 ? $0 : nil } },
      order: { a, b in
        // Keys that do not count come last.
        if let a, let b { order(a, b) } else { a == nil ? b == nil ? 0 : 1 : -1 }
      })
    let engine = valueEngine(isolation, column: column)
    return LiveValue(engine, nil) { [unowned engine] value in
      Self.assign(engine.table.shown.first.flatMap { column.value($0) }, to: &value)
    }
  }

  private static func assign<Value: Equatable>(_ new: Value, to value: inout Value) -> Bool {
    if value == new { return false }
    value = new
    return true
  }

  /// Runs the query for something that is made of its rows. They are ordered by `column`; by the sort keys of the query
  /// only where a limit counts by them.
  private func valueEngine(
    _ isolation: any Actor, column: KeyColumn? = nil, aggregate: RowAggregate? = nil
  ) -> QueryEngine {
    let window = limit.map {
      RowWindow(limit: $0.count, offset: $0.offset, columns: columns.map { $0() })
    }
    return QueryEngine(
      source, filters: filters, columns: column.map { [$0] } ?? [], window: window,
      aggregate: aggregate, ticker: Ticker.on(isolation))
  }
}
