import Foundation

/// Collecting local changes and sealing them into change sets.
extension Scope {
  /// Called before the first change of a property since the last change set.
  func willCollect(from record: ModelRecord) {
    interval.changed.append(record)
    startCollecting()
  }

  var seat: TickSeat { schedule.seat(of: self) }

  func startCollecting() {
    guard schedule.request() else { return }
    ticker.request(self, after: changeInterval)
  }

  /// Delivers now what is due at the next tick and at the end of the change interval: calls observers first, then
  /// delivers the change set. Changes that observers make meanwhile are left for the next tick.
  ///
  /// The change set includes properties whose ``PropertyOptions/minSyncInterval(_:)`` has not passed: so an app can
  /// make sure that nothing waits before it goes to the background. Within ``modify(_:author:_:)`` this does
  /// nothing, and in an immediate observer of another replica's changes the change set waits until these are
  /// applied.
  public func flush() {
    if modification != nil { return }
    seal(includingHeldBack: true)
    ticker.deliverToObservers()
    tickDidDeliver()
  }

  /// Makes a change set of the collected changes and delivers it; coalesced observers wait for the tick. Properties
  /// held back by a minimal sync interval stay collected.
  package func sealChanges() {
    if hasNothingToSeal {
      interval.othersWrote = false
      return
    }
    tickWillDeliver()
    tickDidDeliver()
  }

  /// True if ``sealChanges()`` would make no change set, deliver none and call nothing. A server asks for each change set that
  /// comes in.
  private var hasNothingToSeal: Bool {
    modification == nil && schedule.isIdle && interval.isEmpty && sealed.isEmpty
      && unknown == nil && !incoming.opensLater && !onDelivery.hasListeners
  }

  /// Makes a change set of all collected changes and delivers it, as ``sealChanges()`` does, with those that are held back by
  /// a minimal sync interval.
  package func sealAllChanges() {
    seal(includingHeldBack: true)
    tickDidDeliver()
  }

  /// Makes a change set of the collected changes and returns its fragments, without firing ``onChanges``. A
  /// property whose ``PropertyOptions/minSyncInterval(_:)`` has not passed stays collected.
  ///
  /// - Precondition: this is not called within ``modify(_:author:_:)``.
  package func takeFragments() -> [SyncFragment] {
    precondition(
      modification == nil,
      "takeFragments() was called within modify of scope \(name), whose changes belong together.")
    let over = takeDeferred()
    defer { over.map(finishUnsealed) }
    return collect(for: over?.handle)?.set.fragments ?? []
  }

  /// True if local changes wait to become a change set. This includes changes that were undone since, and
  /// properties that wait for a minimal sync interval to pass.
  package var hasCollectedChanges: Bool { interval.hasChanges }

  /// True if all local changes have been delivered in change sets.
  package var isSettled: Bool { !hasCollectedChanges && sealed.isEmpty }

  /// True while change sets are being delivered. What is made meanwhile comes behind them.
  package var isDelivering: Bool { sealed.isDelivering }

  /// Makes change sets of all local changes and delivers them. Properties held back by a minimal sync interval stay
  /// collected.
  ///
  /// - Returns: false if that is not possible: within `modify`, while remote changes are being applied or a change
  ///   set is being delivered, or when listeners go on making changes.
  package func settle() -> Bool {
    guard modification == nil, !schedule.isApplying, !sealed.isDelivering else { return false }
    for _ in 0..<4 {
      seal()
      if sealed.isEmpty { return true }
      tickDidDeliver()
    }
    return false
  }

  func tickWillDeliver() { seal() }

  func seal(includingHeldBack: Bool = false) {
    // A call of `modify` is one change set. And remote changes that are about to be written may be of properties
    // with local changes, which must stay collected to stay visible in front of them.
    guard modification == nil, !schedule.isApplying else { return schedule.miss() }
    schedule.endInterval()
    sealDeferred(includingHeldBack: includingHeldBack)
  }

  /// Seals the collected changes. The change set is that of the finished calls of `modify` that have waited for it, if there
  /// are any.
  func sealDeferred(includingHeldBack: Bool) {
    let over = takeDeferred()
    let collected = collect(
      includingHeldBack: includingHeldBack || over != nil, for: over?.handle)
    guard let collected else {
      over.map(finishUnsealed)
      return
    }
    collected.withdrawn = over?.withdrawn ?? []
    sealed.append(collected)
    collected.gone = []
  }

  /// Ends finished calls of `modify` for which no change set comes.
  private func finishUnsealed(_ over: Modification) {
    over.handle.finish(.accepted, nil)
    conflicts.noteDiscarded(over.withdrawn)
  }

  /// Takes the finished calls of `modify` whose changes the next change set contains.
  private func takeDeferred() -> Modification? {
    guard let over = schedule.deferred else { return nil }
    schedule.deferred = nil
    forgetDeparted(over)
    return over
  }

  func tickDidDeliver() {
    guard sealed.beginDelivery() else { return }
    while let collected = sealed.next() {
      if !collected.set.fragments.isEmpty { onChanges.fire(collected.set) }
      if onSealedChanges.hasListeners { onSealedChanges.fire(collected) }
      conflicts.noteDiscarded(collected.withdrawn)
      if let handle = collected.handle, collected.pending?.claims ?? 0 == 0 {
        handle.finish(.accepted, nil)
      }
    }
    if onDelivery.hasListeners { onDelivery.fire(()) }
    // The server's messages are applied neither within a call of `modify`, in which the app may tick the ticker itself,
    // nor in the middle of other messages.
    guard modification == nil, !schedule.isApplying else { return }
    for listener in incoming.takeOpening() { listener.onOpen() }
  }

  /// Seals the collected changes and returns the change set. Nil if there is no net change: values that returned to
  /// their base, and models that came and went, leave nothing.
  ///
  /// - Parameters:
  ///   - includingHeldBack: true if properties with a running minimal sync interval are included.
  ///   - withValues: true if the values around operations are needed although ``onSealedChanges`` has no listeners.
  ///   - handle: has an empty change set, whose id and labels the new one gets.
  func collect(
    includingHeldBack: Bool = false, withValues: Bool = false, for handle: ChangeSetHandle? = nil
  ) -> SealedChanges? {
    pruneUnknownIfDue()
    let now = ticker.now
    interval.throttle.forget(endedBy: now)
    // Properties that wait for an interval are collected when it has passed, if not before.
    defer {
      if !schedule.isRequested, let end = interval.throttle.nextEnd {
        ticker.request(self, after: end - now)
      }
      if !interval.departed.states.isEmpty { interval.departed.states = [:] }
      interval.othersWrote = false
    }
    guard hasCollectedChanges || !interval.unshared.isEmpty || !interval.loosened.isEmpty else {
      return nil
    }
    var fragments: [SyncFragment] = []
    var old: [JSONValue] = []
    var backward: [(model: UUID, operations: PropertyOperations)] = []
    let withValues = withValues || onSealedChanges.hasListeners
    var outcomes: [PropertyKey: SealedChanges.Outcome] = [:]
    holdBackUnshared()
    findTakenAway()
    // Closures of observers and classes that are released on the way may change models. Those changes are collected for the
    // next change set.
    var (entered, changed) = (interval.entered, interval.changed)
    (interval.entered, interval.changed) = ([], [])
    fragments.reserveCapacity(entered.count + changed.count)
    for record in entered where record.isNew && record.tree === tree {
      record.isNew = false
      record.dropBases()
      let fragment = record.addFragment()
      if !record.schema.throttledProperties.isEmpty {
        interval.throttle.note(.init(values: fragment.properties), of: record, at: now)
      }
      fragments.append(fragment)
    }
    var heldBack: ContiguousArray<ModelRecord> = []
    for record in changed where !record.bases.isEmpty && record.tree === tree {
      let differences = record.takeDifferences(withOutcomes: withValues) {
        [throttle = interval.throttle] in
        !includingHeldBack && throttle.holdsBack($0, of: record)
      }
      if !record.bases.isEmpty { heldBack.append(record) }
      guard !differences.now.isEmpty else { continue }
      if !record.schema.throttledProperties.isEmpty {
        interval.throttle.note(differences.now, of: record, at: now)
      }
      fragments.append(differences.now.fragment(of: record))
      if old.isEmpty { old = differences.before } else { old += differences.before }
      if !differences.backward.isEmpty { backward.append((record.uuid, differences.backward)) }
      for (key, outcome) in differences.outcomes {
        outcomes[PropertyKey(uuid: record.uuid, name: key)] = outcome
      }
    }
    var undo = ChangeSet.Undo.values(old)
    if !backward.isEmpty { undo = undo.adding(backward, to: fragments) }
    if keepsRemovedModels, !interval.departed.isEmpty {
      let changes = undo.changes(of: fragments)
      let departed = departedModels(namedBy: changes, addedBy: fragments)
      if !departed.isEmpty { undo = .fragments(departed + changes) }
    }
    // They are released last, when the change set has its place in front of what that leads to.
    var gone: ContiguousArray<ModelObject> = []
    if !interval.departed.models.isEmpty {
      gone = interval.departed.takeModels()
      for model in gone {
        if let record = model.record, hasLeft(record) { forget(record) }
      }
    }
    entered.clear()
    changed.clear()
    // The memory is needed again.
    if interval.entered.isEmpty { interval.entered = entered }
    if interval.changed.isEmpty {
      interval.changed = heldBack.isEmpty ? changed : heldBack
    } else {
      let new = Set(interval.changed.map(ObjectIdentifier.init))
      interval.changed.insert(
        contentsOf: heldBack.filter { !new.contains(ObjectIdentifier($0)) }, at: 0)
    }
    if fragments.isEmpty { return nil }
    let set = ChangeSet(fragments, undo: undo, like: handle?.changeSet)
    handle?.changeSet = set
    let collected = SealedChanges(set: set, outcomes: outcomes, handle: handle)
    collected.gone = gone
    return collected
  }
}
