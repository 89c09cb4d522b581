/// Who observes one model. Made when the first observer comes.
final class ModelObservers: TokenHolder {
  var changes: [ChangeEntry] = []
  /// Owns the observations on this model, also those whose entries stand with other models.
  var observations: [ChangeObservation] = []
  var trees: [TreeObservation] = []
  /// What writes down how collections of the model change.
  var journals: [CollectionJournal] = []
  var propertyChange: Signal<PropertyChange>?
  var collectionChange: Signal<CollectionChange>?
  var attach: Signal<Scope>?
  var detach: Signal<Scope>?
  var parentAdded: Signal<ParentChange>?
  var parentRemoved: Signal<ParentChange>?
  /// Delivers while the model is in no scope.
  var ticker: Ticker?

  /// A coalesced observation of some properties, or of a composite that reads them.
  struct ChangeEntry {
    /// Nil for all properties.
    let properties: PropertySet?
    let target: Target

    enum Target {
      case observation(ChangeObservation)
      case composite(CompositeWatch)
      case dependency(any DependencyTarget)
    }

    var isLive: Bool {
      switch target {
      case .observation(let observation): observation.isLive
      case .composite(let watch): watch.isLive
      case .dependency: true
      }
    }
  }

  private var schedule = PruneSchedule()

  func tokenWasCancelled(_ token: ObservationToken) { dropDead() }

  func add(_ observation: ChangeObservation) {
    pruneIfDue()
    observation.holder = self
    observations.append(observation)
  }

  func add(_ tree: TreeObservation) {
    pruneIfDue()
    tree.holder = self
    trees.append(tree)
  }

  private func pruneIfDue() {
    guard schedule.isDue(at: observations.count + trees.count) else { return }
    dropDead()
    schedule.didPrune(to: observations.count + trees.count)
  }

  /// Drops what was cancelled or whose observer has gone. What the callbacks captured is released
  /// after all accesses have ended.
  func dropDead() {
    let all = (observations, trees, changes)
    if all.0.contains(where: { !$0.isLive }) { observations = all.0.filter { $0.isLive } }
    if all.1.contains(where: { !$0.isLive }) { trees = all.1.filter { $0.isLive } }
    if all.2.contains(where: { !$0.isLive }) { changes = all.2.filter { $0.isLive } }
    withExtendedLifetime(all) {}
  }

  func remove(_ observer: AnyObject) {
    for token in observations where token.observer === observer { token.cancel() }
    for token in trees where token.observer === observer { token.cancel() }
    propertyChange?.removeListeners(of: observer)
    collectionChange?.removeListeners(of: observer)
    attach?.removeListeners(of: observer)
    detach?.removeListeners(of: observer)
    parentAdded?.removeListeners(of: observer)
    parentRemoved?.removeListeners(of: observer)
  }
}

/// A callback that runs once a tick in which one of the things it observes has changed.
final class ChangeObservation: ObservationToken {
  var handler: (() -> Void)?
  var composites: [CompositeWatch] = []
  let madeAt = ObservationClock.next()
  /// Set while the callback waits for its turn in a tick.
  var isTriggered = false

  deinit { for composite in composites { composite.stop() } }

  override func forgetHandler() {
    handler = nil
    for composite in composites { composite.stop() }
    composites = []
  }
}

/// A callback that runs once a tick in which the model or one of its descendants has changed.
final class TreeObservation: ObservationToken {
  var handler: (() -> Void)?
  let madeAt = ObservationClock.next()
  /// Whether it was made on a model in no scope.
  private let isLoose: Bool

  init(observer: AnyObject?, isLoose: Bool) {
    self.isLoose = isLoose
    super.init(observer: observer)
    TreeObservers.count(1, isLoose: isLoose)
  }

  deinit { if !isCancelled { TreeObservers.count(-1, isLoose: isLoose) } }

  override func forgetHandler() {
    handler = nil
    TreeObservers.count(-1, isLoose: isLoose)
  }
}
