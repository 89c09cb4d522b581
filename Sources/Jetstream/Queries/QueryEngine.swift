/// Keeps the rows of a query up to date, for ``LiveQuery`` and ``LiveSections``.
///
/// A tick evaluates only rows that have entered the source, that have another position in it, or of which a
/// property that their closures have read has changed. They are removed from the order, by slot and without a
/// comparison, and inserted again by their new keys among rows whose keys are those by which they were inserted. So
/// k changes cost O(k log n), and nothing in between can spoil the order.
///
/// A tick has two phases: `evaluate()` changes the rows, then `deliver()` calls the observers with the change. A
/// handler may run another tick in the second phase. Then the query is not evaluated before all its observers have
/// been called, because the change that they receive has to fit the rows that they see.
final class QueryEngine: TickEvaluation {
  private enum Phase {
    case idle
    /// The closures of the query are running.
    case evaluating
    /// The observers were not told of a change yet.
    case undelivered(QueryChange)
    /// The observers are being called, and these calls are left.
    case delivering(QueryCalls)
  }

  private let filters: [(ModelObject) -> Bool]
  /// The order of the rows that are shown.
  private let columns: [KeyColumn]
  /// The keys that are evaluated for each row that passes the filters.
  private let keys: [KeyColumn]
  private let window: RowWindow?
  private let aggregate: RowAggregate?
  let sections: SectionRows?
  let source: QuerySource
  let dependencies: DependencyTable
  private(set) var table = RowTable()
  var reasons: ContiguousArray<RowReasons> = []
  private(set) var isStopped = false
  /// The destination of changes; nil before there is one, and once the engine has stopped.
  var outlet: QueryOutlet? {
    didSet { outlet?.signal.callDue = { [weak self] in self?.complete() } }
  }
  /// The number of evaluations that may have changed the rows.
  private(set) var version = 0
  private var phase = Phase.idle
  /// True if a tick was to evaluate the query before the change of an earlier tick was delivered.
  private var isPostponed = false

  init(
    _ origin: QueryOrigin, filters: [(ModelObject) -> Bool], columns: [KeyColumn],
    window: RowWindow?, sections: SectionRows? = nil, aggregate: RowAggregate? = nil,
    ticker: Ticker
  ) {
    self.filters = filters
    self.window = window
    self.sections = sections
    self.columns = (sections.map { [$0.column] } ?? []) + columns
    // The columns of the query are among those that are shown, unless something is made of the rows.
    let others = window?.columns.filter { [columns] column in !columns.contains { $0 === column } }
    keys = self.columns + (others ?? [])
    self.aggregate = aggregate
    dependencies = DependencyTable(ticker: ticker)
    switch origin {
    case .scope(let scope, let includes):
      source = .scope(ScopeSource(scope, includes: includes, dependencies))
    case .collection(let owner, let property):
      source = .collection(CollectionSource(owner, property))
    }
    dependencies.evaluation = self
    start()
  }

  deinit { stop() }

  /// Cancels all registrations; the rows stay as they are.
  func stop() {
    guard !isStopped else { return }
    isStopped = true
    source.stop()
    dependencies.stop()
    if case .undelivered = phase { phase = .idle }
    outlet = nil
  }

  private func start() {
    var rows: [Int] = []
    switch source {
    case .scope(let scope):
      scope.evaluation = self
      scope.start()
      for model in scope.models {
        rows.append(addRow(model))
        scope.place(rows[rows.count - 1], model)
      }
    case .collection(let collection):
      collection.start(dependencies)
      collection.list?.forEach { rows.append(addRow($0)) }
      collection.order.rebuild(rows) { _ in 0 }
    }
    var shown: [Int] = []
    for slot in rows where evaluate(slot).isIncluded { shown.append(slot) }
    if let window { shown = window.start(shown) { isBefore($0, $1, by: window.columns) } }
    enter(shown)
  }

  // MARK: Rows

  func addRow(_ model: ModelObject) -> Int {
    let slot = table.add(model)
    while reasons.count <= slot { reasons.append([]) }
    return slot
  }

  private func dropRow(_ slot: Int) {
    dependencies.forget(slot)
    for key in keys { key.clear(slot) }
    aggregate?.clear(slot)
    table.remove(slot)
  }

  /// Runs the closures for one row, and records which properties they read. Keys are not evaluated for rows that
  /// the filters leave out.
  private func evaluate(_ slot: Int) -> (isIncluded: Bool, isReordered: Bool) {
    let model = table.model(slot)
    let (result, reads) = ReadTracker.track { () -> (isIncluded: Bool, isReordered: Bool) in
      guard filters.allSatisfy({ $0(model) }) else { return (false, false) }
      var isReordered = false
      for key in keys where key.evaluate(model, at: slot) { isReordered = true }
      aggregate?.evaluate(model, at: slot)
      return (true, isReordered)
    }
    dependencies.follow(reads, for: slot)
    return result
  }

  // MARK: Order

  private func isBefore(_ a: Int, _ b: Int, by columns: [KeyColumn]) -> Bool {
    for column in columns {
      let order = column.compare(a, b)
      if order != 0 { return order < 0 }
    }
    switch source {
    case .scope(let scope): return scope.isBefore(a, b)
    case .collection(let collection):
      return collection.order.rank(of: a) < collection.order.rank(of: b)
    }
  }

  /// Removes a row from the rows that are shown.
  private func leave(_ slot: Int) {
    table.shown.remove(slot)
    sections?.remove(slot)
    aggregate?.remove(slot)
    if case .collection(let collection) = source, collection.order.contains(slot) {
      collection.order.setWeight(0, of: slot)
    }
  }

  /// Shows rows. Cost: O(log n) each, or O(n) for a large part of all rows.
  private func enter(_ slots: [Int]) {
    if let sections { for slot in slots { sections.add(slot) } }
    if let aggregate { for slot in slots { aggregate.add(slot) } }
    if case .collection(let collection) = source {
      for slot in slots { collection.order.setWeight(1, of: slot) }
      if columns.isEmpty { return enterInOrder(of: collection, slots) }
    }
    table.shown.insert(slots) { isBefore($0, $1, by: columns) }
  }

  /// Shows rows in the order of the collection, without comparing keys.
  private func enterInOrder(of collection: CollectionSource, _ slots: [Int]) {
    if slots.count > 32, slots.count > table.shown.count / 8 {
      return table.shown.rebuild(
        collection.order.slots.filter { collection.order.weight(of: $0) > 0 })
    }
    // From front to back: then all rows in front of one are in both orders when it is inserted.
    let places = slots.map { (slot: $0, place: collection.order.weight(before: $0)) }
    for (slot, place) in places.sorted(by: { $0.place < $1.place }) {
      table.shown.insert(slot, at: place)
    }
  }

  // MARK: Tick

  func evaluate() {
    // An observer has run the next tick. The change that the other observers receive has to fit the rows, so the
    // evaluation waits until all have been called.
    switch phase {
    case .undelivered, .delivering: isPostponed = true
    case .idle, .evaluating:
      dependencies.isTriggered = false
      guard !isStopped else { return }
      guard case .idle = phase else {
        preconditionFailure("A closure of a query had a tick delivered while it ran.")
      }
      phase = .evaluating
      phase = evaluateChanged().map(Phase.undelivered) ?? .idle
    }
  }

  /// Evaluates the rows that may have changed and moves them. Returns the change if there are observers.
  private func evaluateChanged() -> QueryChange? {
    var work: ContiguousArray<Int> = []
    func mark(_ slot: Int, _ reason: RowReasons) {
      if reasons[slot].isEmpty { work.append(slot) }
      reasons[slot].formUnion(reason)
    }
    let changed = dependencies.takeChangedRows()
    settle(mark)
    for slot in changed where slot != DependencyTable.sourceRow { mark(slot, .changed) }
    if work.isEmpty { return nil }

    var steps: [QueryStep] = []
    var changedInPlace: [Int] = []
    for slot in work {
      let reason = reasons[slot]
      // Of what the filters let through, until the window has been asked.
      let wasShown = window?.contains(slot) ?? table.shown.contains(slot)
      var isShown = wasShown
      var isReordered = reason.contains(.placed)
      if reason.contains(.gone) {
        isShown = false
      } else if !reason.isDisjoint(with: [.arrived, .changed]) {
        let result = evaluate(slot)
        isShown = result.isIncluded
        isReordered = isReordered || result.isReordered
      }
      if wasShown != isShown || wasShown && isReordered {
        steps.append(
          QueryStep(
            slot: slot, model: table.model(slot), wasShown: wasShown, isShown: isShown,
            isChanged: reason.contains(.changed)))
      } else if wasShown, reason.contains(.changed) {
        changedInPlace.append(slot)
      }
    }
    if let window { limit(&steps, &changedInPlace, to: window) }
    let change = perform(&steps, changedInPlace)
    for slot in work {
      if reasons[slot].contains(.gone) { dropRow(slot) }
      reasons[slot] = []
    }
    return change
  }

  /// Leaves the steps of rows that come into the window, leave it or are moved in it, and the changes of rows that stay.
  private func limit(
    _ steps: inout [QueryStep], _ changedInPlace: inout [Int], to window: RowWindow
  ) {
    steps = window.steps(
      for: steps, shown: table.shown, by: { isBefore($0, $1, by: window.columns) },
      step: { slot, wasShown in
        QueryStep(
          slot: slot, model: table.model(slot), wasShown: wasShown, isShown: !wasShown,
          isChanged: false)
      })
    let moving = Set(steps.map(\.slot))
    changedInPlace.removeAll { !table.shown.contains($0) || moving.contains($0) }
  }

  /// Moves the rows, and returns the difference if there are observers.
  private func perform(
    _ steps: inout [QueryStep], _ changedInPlace: [Int]
  ) -> QueryChange? {
    version += 1
    let isWanted = outlet?.wantsChanges ?? false
    var builder = QueryChangeBuilder()
    sections?.forgetNews()
    if isWanted { builder.noteOld(&steps, table.shown, sections) }
    for step in steps where step.wasShown { leave(step.slot) }
    enter(steps.compactMap { $0.isShown ? $0.slot : nil })
    if let aggregate {
      for slot in changedInPlace {
        aggregate.remove(slot)
        aggregate.add(slot)
      }
    }
    if case .value(_, _, let refresh) = outlet {
      return refresh() ? QueryChange(updated: [], version: version) : nil
    }
    let emptied = sections?.dropEmpty() ?? []
    guard isWanted else { return nil }
    var change = builder.change(&steps, changedInPlace, table.shown, sections, emptied: emptied)
    change?.version = version
    return change
  }

  func deliver() {
    while case .undelivered(let change) = phase, let outlet {
      phase = .delivering(outlet.calls(with: change))
      callOthers()
    }
  }

  /// Makes the calls that are left of a change, all of them: the rows go on to the next change only after that.
  private func complete() {
    callOthers()
    deliver()
  }

  /// Makes the calls that are left of the change that is being delivered. An observer may have that done within its
  /// own call: the delivery has ended then when control comes back.
  private func callOthers() {
    while case .delivering(var calls) = phase {
      let call = calls.takeNext()
      phase = call == nil ? .idle : .delivering(calls)
      if let call {
        call.make()
        continue
      }
      calls.audience.dropDead()
      guard isPostponed else { return }
      isPostponed = false
      evaluate()
    }
  }
}
