/// The changes in the tree that observers are notified of once all links are updated.
struct StructureEvents {
  private struct Event {
    /// Kept alive until its observers have been called.
    let model: ModelObject
    let calls: any PendingCalls
  }

  private var events: ContiguousArray<Event> = []
  /// The index of the event that is to be delivered next.
  private var place = 0
  /// Models of one scope that have lost a parent in it. They are checked once everything is
  /// unlinked.
  var suspects: ContiguousArray<ModelObject> = []

  mutating func parentAdded(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    addReport(record)
    add(record, record.observers?.parentAdded) { ParentChange(parent, index) }
  }

  mutating func parentRemoved(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    addReport(record)
    add(record, record.observers?.parentRemoved) { ParentChange(parent, index) }
  }

  mutating func attached(_ record: ModelRecord, _ tree: ModelTree) {
    add(record, record.observers?.attach) { tree.keeper }
  }

  mutating func detached(_ record: ModelRecord, _ tree: ModelTree) {
    add(record, record.observers?.detach) { tree.keeper }
  }

  /// Adds the report of other parents to the Observation module.
  private mutating func addReport(_ record: ModelRecord) {
    guard let report = record.parentsReport, let model = record.model else { return }
    events.append(Event(model: model, calls: report))
  }

  @inline(__always)
  private mutating func add<Payload>(
    _ record: ModelRecord, _ signal: Signal<Payload>?, _ payload: () -> Payload?
  ) {
    guard let signal, signal.hasListeners, let model = record.model, let payload = payload() else {
      return
    }
    events.append(Event(model: model, calls: signal.calls(with: payload)))
  }

  var isEmpty: Bool { events.isEmpty }

  /// Calls the observers.
  func fire() {
    if !isEmpty { ImmediateDelivery.deliver(ImmediateEvents(self)) }
  }

  /// Takes the calls of the next event. Returns nil if there is none.
  mutating func next() -> (any PendingCalls)? {
    guard place < events.count else { return nil }
    defer { place += 1 }
    return events[place].calls
  }
}
