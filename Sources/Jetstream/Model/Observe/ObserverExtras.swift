/// The parts of a model's observers that are rarely used. Made on first use.
final class ObserverExtras {
  /// The class and properties that newer peers sent for the model and that this program does not
  /// know. They are not observed; they are stored here because they are as rare.
  var unknown: UnknownValues?
  private struct WeakJournal { weak var journal: StepJournal? }

  /// The journals of difference observers. Each lives as long as its observation.
  private var journals: ContiguousArray<WeakJournal> = []
  private(set) var composites: ContiguousArray<ImmediateComposite> = []
  private var schedule = PruneSchedule()
  private var treeChange: Signal<Void>?
  private weak var treeObservation: TreeObservation?

  /// Has the journals of a model that is gone forget their steps, which nothing can take any more and which retain
  /// models.
  deinit { for entry in journals { entry.journal?.forget() } }

  // MARK: Differences

  func add(_ journal: StepJournal) {
    journals.removeAll { $0.journal == nil }
    journals.append(WeakJournal(journal: journal))
  }

  /// Adds the steps of a changed collection to its journals. Called before any observer, so that
  /// the steps stay in order.
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

  /// Removes the observations that are cancelled or whose observer has been released. Objects that
  /// their callbacks captured are released after the access has ended.
  func dropDead() {
    let all = composites
    if all.contains(where: { !$0.isLive }) { composites = all.filter(\.isLive) }
    withExtendedLifetime(all) {}
  }

  // MARK: Tree changes

  /// Returns the signal that fires once in each tick in which the tree below `record` has changed.
  /// It costs nothing while it has no listeners.
  func treeChange(of record: ModelRecord) -> Signal<Void> {
    if let treeChange { return treeChange }
    let signal = Signal<Void>()
    treeChange = signal
    signal.whenListened = { [weak record, weak self] in
      if let record { self?.observeTree(of: record) }
    }
    signal.callDue = { [weak self] in self?.treeObservation?.callIfDue() }
    return signal
  }

  private func observeTree(of record: ModelRecord) {
    guard treeObservation == nil else { return }
    let observation = TreeObservation(observer: nil, isLoose: record.tree == nil)
    treeObservation = observation
    record.observeTree(observation) { [weak self] in
      guard let self, let signal = treeChange else { return }
      signal.fire(())
      guard !signal.hasListeners else { return }
      treeObservation?.cancel()
      treeObservation = nil
    }
  }

  /// Cancels all observations here that were registered with `observer`.
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
