/// The rows of a query by the properties that they have read.
///
/// There is one registration for each model that was read, however many rows have read it. So a row that reads
/// other properties than before costs O(n) in those, even if all rows read the same model.
final class DependencyTable {
  /// The query. It owns the table.
  weak var evaluation: (any TickEvaluation)?
  /// Set while the query waits for its evaluation.
  var isTriggered = false
  /// The ticker for models that are in no scope.
  let ticker: Ticker
  private let madeAt = ObservationClock.next()
  private var watches: [ObjectIdentifier: ModelWatch] = [:]
  private var reads: ContiguousArray<ContiguousArray<Dependency>> = []
  private var changed: ContiguousArray<Int> = []
  private var isChanged: ContiguousArray<Bool> = []

  /// The row that stands for the dependencies of the query as a whole. Models have the rows after it.
  static let sourceRow = 0

  init(ticker: Ticker) { self.ticker = ticker }

  deinit { stop() }

  /// A property that a row has read.
  fileprivate struct Dependency: Hashable {
    let watch: ModelWatch
    let property: Int

    static func == (a: Dependency, b: Dependency) -> Bool {
      a.watch === b.watch && a.property == b.property
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(watch))
      hasher.combine(property)
    }
  }

  /// Replaces the dependencies of `row` by these properties. Cost: O(n) in their number.
  func follow(_ found: [ReadTracker.Read], for row: Int) {
    while reads.count <= row {
      reads.append([])
      isChanged.append(false)
    }
    if reads[row].count == found.count,
      reads[row].elementsEqual(
        found, by: { $0.watch.target === $1.model.record && $0.property == $1.index })
    {
      return
    }
    let old = reads[row]
    var new: ContiguousArray<Dependency> = []
    new.reserveCapacity(found.count)
    for read in found {
      new.append(Dependency(watch: watch(of: read.model.ensureRecord()), property: read.index))
    }
    reads[row] = new
    let (gone, come) = Self.difference(old, new)
    for dependency in come { dependency.watch.add(row, reading: dependency.property) }
    for dependency in gone { drop(dependency, of: row) }
  }

  /// Removes all dependencies of the row.
  func forget(_ row: Int) {
    // A row that came and went within a tick was never evaluated.
    guard row < reads.count else { return }
    let old = reads[row]
    reads[row] = []
    for dependency in old { drop(dependency, of: row) }
  }

  /// Returns the rows with a changed dependency since the last call, each once.
  func takeChangedRows() -> ContiguousArray<Int> {
    let result = changed
    changed = []
    for row in result { isChanged[row] = false }
    return result
  }

  /// Cancels all registrations.
  func stop() {
    for watch in watches.values { watch.cancel() }
    watches = [:]
    reads = []
    changed = []
  }

  private func watch(of record: ModelRecord) -> ModelWatch {
    if let known = watches[ObjectIdentifier(record)] { return known }
    let made = ModelWatch(record, table: self)
    watches[ObjectIdentifier(record)] = made
    return made
  }

  private func drop(_ dependency: Dependency, of row: Int) {
    dependency.watch.remove(row, reading: dependency.property)
    guard dependency.watch.isIdle else { return }
    dependency.watch.cancel()
    watches[ObjectIdentifier(dependency.watch.target)] = nil
  }

  private static func difference(
    _ old: ContiguousArray<Dependency>, _ new: ContiguousArray<Dependency>
  ) -> (gone: [Dependency], come: [Dependency]) {
    if old.isEmpty { return ([], Array(new)) }
    if old.count + new.count < 16 {
      return (old.filter { !new.contains($0) }, new.filter { !old.contains($0) })
    }
    let (oldSet, newSet) = (Set(old), Set(new))
    return (old.filter { !newSet.contains($0) }, new.filter { !oldSet.contains($0) })
  }

  fileprivate func rowHasChanged(_ row: Int) {
    if isChanged[row] { return }
    isChanged[row] = true
    changed.append(row)
  }

  fileprivate func hasSeen(_ changedAt: Int) -> Bool { changedAt < madeAt }

  /// Requests an evaluation of the query in this tick, once, if a dependency has changed.
  fileprivate func trigger(_ delivery: inout Delivery) {
    guard !isTriggered, !changed.isEmpty, let evaluation else { return }
    isTriggered = true
    delivery.trigger(evaluation)
  }
}

/// The registration of a query with one model that its rows have read. It waits for changes of all
/// properties, because it knows better than the model's chain which rows have read which of them.
private final class ModelWatch: ChangeNode {
  let target: ModelRecord
  private unowned let table: DependencyTable
  /// The properties and the rows that have read them; in `few` until there are many.
  private var few: ContiguousArray<(property: Int, row: Int)> = []
  private var many: [Int: Set<Int>] = [:]
  private static let limit = 16

  init(_ target: ModelRecord, table: DependencyTable) {
    self.target = target
    self.table = table
    super.init(observer: nil, properties: nil)
    let ticker = target.ticker ?? table.ticker
    if target.tree == nil, target.ownTicker == nil { target.ownTicker = ticker }
    target.add(self)
  }

  /// True if no row has read the model.
  var isIdle: Bool { few.isEmpty && many.isEmpty }

  func add(_ row: Int, reading property: Int) {
    if many.isEmpty, few.count < Self.limit { return few.append((property, row)) }
    for (property, row) in few { many[property, default: []].insert(row) }
    few = []
    many[property, default: []].insert(row)
  }

  func remove(_ row: Int, reading property: Int) {
    few.removeAll { $0.property == property && $0.row == row }
    if many[property]?.remove(row) != nil, many[property]!.isEmpty { many[property] = nil }
  }

  override func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {
    if isCancelled || table.hasSeen(moment) { return }
    for (property, row) in few where dirty.contains(property) { table.rowHasChanged(row) }
    for (property, rows) in many where dirty.contains(property) {
      for row in rows { table.rowHasChanged(row) }
    }
    table.trigger(&delivery)
  }
}
