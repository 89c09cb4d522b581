/// The observers of one model other than those in its ``ChangeChain``. Made for the first such
/// observer.
final class ModelObservers {
  var trees: [TreeObservation] = []
  var propertyChange: Signal<PropertyChange>?
  var collectionChange: Signal<CollectionChange>?
  var attach: Signal<any TreeKeeper>?
  var detach: Signal<any TreeKeeper>?
  var parentAdded: Signal<ParentChange>?
  var parentRemoved: Signal<ParentChange>?
  /// Reports to the Observation module; nil unless the class adopts `Observable` and the model was
  /// read.
  var bridge: ObservationBridge?
  /// The parts that only rarely used observations need.
  var extras: ObserverExtras?
  private var schedule = PruneSchedule()

  /// True if every write must be reported at once, not only the first in a tick.
  var wantsEveryWrite: Bool { propertyChange != nil || bridge != nil }

  func add(_ tree: TreeObservation) {
    if schedule.isDue(at: trees.count) {
      dropDead()
      schedule.didPrune(to: trees.count)
    }
    tree.holder = self
    trees.append(tree)
  }

  /// Removes the observations that are cancelled or whose observer has been released. Objects that
  /// their callbacks captured are released after all accesses have ended.
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

/// A callback that runs once in each tick in which the model or one of its descendants has changed.
final class TreeObservation: ObservationToken {
  var handler: (() -> Void)?
  /// The changes that count; nil for all.
  var pattern: TreePattern?
  let madeAt = ObservationClock.next()
  /// True while a tick that runs has collected the observation and has not called it yet.
  @exclusivity(unchecked) var isTriggered = false
  fileprivate weak var holder: ModelObservers?
  /// True if the observation was made while the model was in no scope.
  private let isLoose: Bool

  init(observer: AnyObject?, isLoose: Bool) {
    self.isLoose = isLoose
    super.init(observer: observer)
    TreeObservers.count(1, isLoose: isLoose)
  }

  deinit { if !isCancelled { TreeObservers.count(-1, isLoose: isLoose) } }

  override func callIfDue() {
    guard isTriggered else { return }
    isTriggered = false
    if isLive { handler?() }
  }

  override func forgetHandler() {
    handler = nil
    TreeObservers.count(-1, isLoose: isLoose)
  }

  override func leaveHolder() { holder?.dropDead() }
}
