/// The changes in the tree that observers are notified of once all links are updated.
struct StructureEvents {
  private enum Event {
    case parentAdded(ModelObject, ParentChange)
    case parentRemoved(ModelObject, ParentChange)
    case attached(ModelObject, any TreeKeeper)
    case detached(ModelObject, any TreeKeeper)
  }

  private var events: ContiguousArray<Event> = []
  /// The index of the event that is to be delivered next.
  private var place = 0
  /// Models of one scope that have lost a parent in it. They are checked once everything is
  /// unlinked.
  var suspects: ContiguousArray<ModelObject> = []

  mutating func parentAdded(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    guard record.observers?.parentAdded != nil, let model = record.model,
      let change = ParentChange(parent, index)
    else { return }
    events.append(.parentAdded(model, change))
  }

  mutating func parentRemoved(_ record: ModelRecord, _ parent: ModelRecord, _ index: Int) {
    guard record.observers?.parentRemoved != nil, let model = record.model,
      let change = ParentChange(parent, index)
    else { return }
    events.append(.parentRemoved(model, change))
  }

  mutating func attached(_ record: ModelRecord, _ tree: ModelTree) {
    guard record.observers?.attach != nil, let model = record.model, let keeper = tree.keeper else {
      return
    }
    events.append(.attached(model, keeper))
  }

  mutating func detached(_ record: ModelRecord, _ tree: ModelTree) {
    guard record.observers?.detach != nil, let model = record.model, let keeper = tree.keeper else {
      return
    }
    events.append(.detached(model, keeper))
  }

  var isEmpty: Bool { events.isEmpty }

  /// Calls the observers.
  func fire() {
    if !isEmpty { ImmediateDelivery.deliver(ImmediateEvents(self)) }
  }

  /// Takes the calls of the next event. Returns nil if there is none.
  mutating func next() -> (any PendingCalls)? {
    while place < events.count {
      let event = events[place]
      place += 1
      let calls: (any PendingCalls)? =
        switch event {
        case .parentAdded(let model, let change):
          model.record?.observers?.parentAdded?.calls(with: change)
        case .parentRemoved(let model, let change):
          model.record?.observers?.parentRemoved?.calls(with: change)
        case .attached(let model, let keeper):
          model.record?.observers?.attach?.calls(with: keeper)
        case .detached(let model, let keeper):
          model.record?.observers?.detach?.calls(with: keeper)
        }
      if let calls { return calls }
    }
    return nil
  }
}
