/// What only some ways of observing a model need. Made when the first of these is used.
final class ObserverExtras {
  /// What newer peers say of the model. Not observed: it stands here since it is as rare.
  var unknown: UnknownValues?
  private struct WeakJournal { weak var journal: StepJournal? }

  /// The journals live as long as their observations.
  private var journals: ContiguousArray<WeakJournal> = []
  private(set) var composites: ContiguousArray<ImmediateComposite> = []
  private var schedule = PruneSchedule()
  private var treeChange: Signal<Void>?
  private weak var treeObservation: TreeObservation?

  // MARK: Differences

  func add(_ journal: StepJournal) {
    journals.removeAll { $0.journal == nil }
    journals.append(WeakJournal(journal: journal))
  }

  /// A collection has changed; called before any observer is, so that the steps stay in order.
  func note(_ steps: [ListOperation], of index: Int, now: @autoclosure () -> ModelList) {
    var isSomeGone = false
    for entry in journals {
      guard let journal = entry.journal else {
        isSomeGone = true
        continue
      }
      if journal.index == index { journal.note(steps, now: now()) }
    }
    if isSomeGone { journals.removeAll { $0.journal == nil } }
  }

  // MARK: Composites at once

  func add(_ composite: ImmediateComposite) {
    if schedule.isDue(at: composites.count) {
      dropDead()
      schedule.didPrune(to: composites.count)
    }
    composite.holder = self
    composites.append(composite)
  }

  /// What the callbacks captured is released after the access has ended.
  func dropDead() {
    let all = composites
    if all.contains(where: { !$0.isLive }) { composites = all.filter(\.isLive) }
    withExtendedLifetime(all) {}
  }

  // MARK: Tree changes

  /// The signal that fires once in each tick in which the tree below `record` has changed. While
  /// nobody listens to it, it costs nothing.
  func treeChange(of record: ModelRecord) -> Signal<Void> {
    if let treeChange { return treeChange }
    let signal = Signal<Void>()
    treeChange = signal
    signal.whenListened = { [weak record, weak self] in
      if let record { self?.observeTree(of: record) }
    }
    return signal
  }

  private func observeTree(of record: ModelRecord) {
    guard treeObservation == nil else { return }
    let observation = TreeObservation(observer: nil, isLoose: record.scope == nil)
    treeObservation = observation
    record.observeTree(observation) { [weak self] in
      guard let self, let signal = treeChange else { return }
      signal.fire(())
      guard !signal.hasListeners else { return }
      treeObservation?.cancel()
      treeObservation = nil
    }
  }

  /// Cancels everything that `observer` has here.
  func remove(_ observer: AnyObject) {
    for token in composites where token.observer === observer { token.cancel() }
    treeChange?.removeListeners(of: observer)
  }
}

extension ModelObservers {
  func ensureExtras() -> ObserverExtras {
    if let extras { return extras }
    let made = ObserverExtras()
    extras = made
    return made
  }
}
