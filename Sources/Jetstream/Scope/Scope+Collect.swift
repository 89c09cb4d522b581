import Foundation

/// Collecting local changes, and making change sets of them.
extension Scope {
  /// The first change of a property since the last change set.
  func willCollect(from record: ModelRecord) {
    changed.append(record)
    startCollecting()
  }

  func startCollecting() {
    guard !isCollecting else { return }
    isCollecting = true
    ticker.request(self, after: changeInterval)
  }

  /// Delivers now what is due at the next tick and at the end of the change interval: observers
  /// first, then the change set. What observers change meanwhile is left for the next tick.
  ///
  /// The change set has everything that was collected, also properties whose
  /// ``PropertyOptions/minSyncInterval(_:)`` has not passed: so the app can make sure that nothing
  /// waits, before it goes to the background for instance. Within ``modify(_:author:_:)``, and in
  /// an observer that is told at once of what others did, there is no set before the end of that.
  public func flush() {
    if modification != nil { return }
    seal(includingHeldBack: true)
    ticker.deliverToObservers()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and delivers it; coalesced observers wait for the tick.
  /// What is held back for the sake of a minimal sync interval stays collected.
  package func sealChanges() {
    tickWillDeliver()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and gives its fragments, without firing ``onChanges``.
  /// A property whose ``PropertyOptions/minSyncInterval(_:)`` has not passed stays collected.
  package func takeFragments() -> [SyncFragment] {
    precondition(
      modification == nil,
      "takeFragments() was called within modify of scope \(name), whose changes belong together.")
    let handle = takeDeferred()
    defer { handle?.finish(.completed, nil) }
    return collect(for: handle)?.set.fragments ?? []
  }

  /// Whether local changes wait to become a change set. A change that was taken back since counts,
  /// and so does one that waits for a minimal sync interval to pass.
  package var hasCollectedChanges: Bool { !entered.isEmpty || !left.isEmpty || !changed.isEmpty }

  /// Whether everything that was changed here has been delivered in change sets.
  package var isSettled: Bool { !hasCollectedChanges && sealed.isEmpty }

  /// Makes change sets of everything that was changed here and delivers them. What is held back for the sake
  /// of a minimal sync interval stays collected.
  ///
  /// - Returns: false if that is not possible: within `modify`, while remote changes are applied or a change
  ///   set is delivered, or when listeners go on changing something.
  package func settle() -> Bool {
    guard modification == nil, applying == 0, !isDelivering else { return false }
    for _ in 0..<4 {
      seal()
      if sealed.isEmpty { return true }
      tickDidDeliver()
    }
    return false
  }

  func tickWillDeliver() { seal() }

  func seal(includingHeldBack: Bool = false) {
    // What belongs together is one set; and what others did and is written next may be of properties that
    // were changed here, which stay in front of it.
    guard modification == nil, applying == 0 else {
      isSealMissed = true
      return
    }
    isCollecting = false
    let handle = takeDeferred()
    let collected = collect(
      includingHeldBack: includingHeldBack || handle != nil, for: handle)
    if let collected { sealed.append(collected) } else { handle?.finish(.completed, nil) }
  }

  /// The handle of the calls of `modify` that the next set is of.
  func takeDeferred() -> ChangeSetHandle? {
    guard let over = deferred else { return nil }
    deferred = nil
    forgetDeparted(over)
    return over.handle
  }

  func tickDidDeliver() {
    // The sets that listeners make come out behind the one that they are told of.
    if isDelivering { return }
    isDelivering = true
    while !sealed.isEmpty {
      // Mostly there is one, which nothing has to make room for.
      let collected = sealed.count == 1 ? sealed.removeLast() : sealed.removeFirst()
      onChanges.fire(collected.set)
      if onSealedChanges.hasListeners {
        delivering = collected
        onSealedChanges.fire(collected)
        delivering = nil
      }
      if let handle = collected.handle, handle.claims == 0 { handle.finish(.completed, nil) }
    }
    isDelivering = false
    if incomingResumes { resumeNow() }
  }

  /// What becomes of the set that is being delivered: whoever asks decides about it. Nil outside of a
  /// delivery.
  func claimDelivered() -> ChangeSetHandle? {
    guard let delivering else { return nil }
    let handle = delivering.handle ?? ChangeSetHandle(delivering.set)
    handle.claims += 1
    delivering.handle = handle
    return handle
  }

  /// Ends the interval. Nil if everything is as it was: values that returned to their base, models
  /// that came and went, leave nothing.
  ///
  /// - Parameters:
  ///   - withValues: whether the values around operations are wanted although nobody listens for them.
  ///   - handle: has an empty set, whose id and labels the set gets.
  func collect(
    includingHeldBack: Bool = false, withValues: Bool = false, for handle: ChangeSetHandle? = nil
  ) -> SealedChanges? {
    let now = ticker.now
    throttle.forget(endedBy: now)
    // Whatever waits for an interval is looked at when the interval has passed, if not before.
    defer {
      if !isCollecting, let end = throttle.nextEnd { ticker.request(self, after: end - now) }
      if !remembered.isEmpty { remembered = [:] }
      othersWrote = false
    }
    guard hasCollectedChanges || !unshared.isEmpty || !loosened.isEmpty else { return nil }
    var fragments: [SyncFragment] = []
    var undo: [SyncFragment] = []
    let withValues = withValues || onSealedChanges.hasListeners
    var outcomes: [PropertyKey: SealedChanges.Outcome] = [:]
    holdBackUnshared()
    findTakenAway()
    fragments.reserveCapacity(entered.count + changed.count)
    undo.reserveCapacity(changed.count)
    for record in entered where record.isNew && record.scope === self {
      record.isNew = false
      record.dropBases()
      let fragment = record.addFragment()
      if !record.schema.throttledProperties.isEmpty {
        throttle.note(.init(values: fragment.properties), of: record, at: now)
      }
      fragments.append(fragment)
    }
    var heldBack: ContiguousArray<ModelRecord> = []
    for record in changed where !record.bases.isEmpty && record.scope === self {
      let differences = record.takeDifferences(withOutcomes: withValues) { [throttle] in
        !includingHeldBack && throttle.holdsBack($0, of: record)
      }
      if !record.bases.isEmpty { heldBack.append(record) }
      guard !differences.now.isEmpty else { continue }
      if !record.schema.throttledProperties.isEmpty {
        throttle.note(differences.now, of: record, at: now)
      }
      let fragment = differences.now.fragment(of: record)
      fragments.append(fragment)
      undo.append(differences.before.fragment(of: record))
      for (key, outcome) in differences.outcomes {
        outcomes[PropertyKey(uuid: record.uuid, name: key)] = outcome
      }
    }
    let departed = departedModels(namedBy: undo, addedBy: fragments)
    if !departed.isEmpty { undo = departed + undo }
    if !left.isEmpty {
      let gone = takeLeft()
      for model in gone {
        if let record = model.record, hasLeft(record) { forget(record) }
      }
      withExtendedLifetime(gone) {}
    }
    entered.clear()
    if heldBack.isEmpty { changed.clear() } else { changed = heldBack }
    if fragments.isEmpty { return nil }
    let set = handle?.set.with(fragments, undo: undo) ?? ChangeSet(fragments: fragments, undo: undo)
    handle?.set = set
    return SealedChanges(set: set, outcomes: outcomes, handle: handle)
  }
}

extension ContiguousArray {
  /// Empties a queue that is filled again soon; the room of an exceptionally long one is given back.
  mutating func clear() {
    if capacity > 4096 {
      self = []
    } else if count == 1 {
      removeLast()
    } else {
      removeAll(keepingCapacity: true)
    }
  }
}
