/// Who observes one model in other ways than through its ``ChangeChain``. Made when the first comes.
final class ModelObservers {
  var trees: [TreeObservation] = []
  var propertyChange: Signal<PropertyChange>?
  var collectionChange: Signal<CollectionChange>?
  var attach: Signal<Scope>?
  var detach: Signal<Scope>?
  var parentAdded: Signal<ParentChange>?
  var parentRemoved: Signal<ParentChange>?
  /// Reports to the Observation module, if the class adopts `Observable`.
  var bridge: ObservationBridge?
  /// What only some ways of observing need.
  var extras: ObserverExtras?
  private var schedule = PruneSchedule()

  /// Whether every write has to be told at once, not only the first in a tick.
  var wantsEveryWrite: Bool { propertyChange != nil || bridge != nil }

  func add(_ tree: TreeObservation) {
    if schedule.isDue(at: trees.count) {
      dropDead()
      schedule.didPrune(to: trees.count)
    }
    tree.holder = self
    trees.append(tree)
  }

  /// Drops what was cancelled or whose observer has gone. What the callbacks captured is released
  /// after all accesses have ended.
  func dropDead() {
    let all = trees
    if all.contains(where: { !$0.isLive }) { trees = all.filter { $0.isLive } }
    withExtendedLifetime(all) {}
  }

  func remove(_ observer: AnyObject) {
    for token in trees where token.observer === observer { token.cancel() }
    propertyChange?.removeListeners(of: observer)
    collectionChange?.removeListeners(of: observer)
    attach?.removeListeners(of: observer)
    detach?.removeListeners(of: observer)
    parentAdded?.removeListeners(of: observer)
    parentRemoved?.removeListeners(of: observer)
    extras?.remove(observer)
  }
}

/// A callback that runs once a tick in which the model or one of its descendants has changed.
final class TreeObservation: ObservationToken {
  var handler: (() -> Void)?
  /// Which changes count; nil for all.
  var pattern: TreePattern?
  let madeAt = ObservationClock.next()
  fileprivate weak var holder: ModelObservers?
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

  override func leaveHolder() { holder?.dropDead() }
}
