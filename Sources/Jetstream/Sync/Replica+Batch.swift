import Foundation

/// What the messages of one frame do to the scope, as one change.
extension Replica {
  /// What one frame of messages has brought so far.
  struct Batch {
    var additions: [SyncFragment] = []
    var additionIndex: [UUID: Int] = [:]
    var direct: [UUID: Noted] = [:]
    var classNames: [UUID: String] = [:]
    var order: [UUID] = []
    /// What was visible of the touched covered properties before the batch.
    var seen: [PropertyKey: PropertyContent] = [:]
    var rejected: [Rejected] = []
    /// What does not count of sets that are decided.
    var lost: [Lost] = []
    /// Who has written properties since some of it was known, if they have said so.
    var authors: [PropertyKey: String?] = [:]
    /// Sets that the server has decided, with what it said of their fragments.
    var decided: [(ChangeSetHandle, [ChangeSetHandle.Outcome], causes: [Int?])] = []
    /// Models that were not what the server has.
    var repaired: [UUID]?
    /// What others have changed, for those who listen.
    var remote: [RemoteChanges] = []
    var isEmpty = true
  }

  /// A fragment that the server has rejected for itself, with those that it has rejected because of it.
  struct Rejected {
    let fragment: SyncFragment
    let error: WireError
    var consequences: [SyncFragment] = []
  }

  /// What others have done to the properties of a model, which nothing of ours stands in front of.
  struct Noted {
    var properties = JSONObject()
    var operations = PropertyOperations()

    mutating func set(_ key: String, to value: JSONValue) {
      properties[key] = value
      operations[key] = []
    }

    mutating func perform(
      _ more: [PropertyOperation], on key: String, within range: CounterRange
    ) {
      if let value = properties[key] {
        properties[key] = PropertyOperation.apply(more, to: value, within: range)
      } else {
        operations[key] += more
      }
    }

    /// What was done to one property; forgets it.
    mutating func take(_ key: String, within range: CounterRange) -> PendingChange? {
      let (value, done) = (properties[key], operations[key])
      properties[key] = nil
      operations[key] = []
      if let value { return .assign(PropertyContent(value)) }
      return done.isEmpty ? nil : .operations(done, value: nil, range: range)
    }
  }

  /// Before the first message of a batch, local changes become a set of their own: what is not in a
  /// set is not covered by the overlay. What observers change during the batch is handled by the
  /// scope, which keeps it in front of what is written under it.
  func beginBatch() {
    guard batch.isEmpty else { return }
    scope.sealChanges()
    batch.isEmpty = false
  }

  /// Ends a batch: writes what is visibly different into the scope.
  ///
  /// All messages of one frame make one batch, so that a reply and the correction that follows it are
  /// seen as one change.
  func finishBatch() {
    guard !batch.isEmpty else { return }
    var done = batch
    batch = Batch()
    for at in done.lost.indices where !done.authors.isEmpty {
      guard let name = done.lost[at].name, let author = done.authors[name] else { continue }
      done.lost[at].theirAuthor = author
    }
    unnoted.append(done.lost)
    for (at, addition) in done.additions.enumerated() {
      for (key, _) in addition.properties {
        let visible = overlay.visible(PropertyKey(uuid: addition.uuid, name: key))
        if let visible { done.additions[at].properties[key] = visible.json }
      }
    }
    var changes = done.direct
    for (name, before) in done.seen {
      let now = overlay.visible(name) ?? before
      overlay.dropIfSettled(name)
      if now != before, isKnown(name.uuid) {
        changes[name.uuid, default: Noted()].set(name.name, to: now.json)
      }
    }
    let fragments =
      done.additions
      + done.order.compactMap { uuid -> SyncFragment? in
        guard let noted = changes[uuid],
          !noted.properties.isEmpty || !noted.operations.isEmpty
        else { return nil }
        return SyncFragment(
          .change, uuid: uuid, className: done.classNames[uuid] ?? "",
          properties: noted.properties, operations: noted.operations)
      }
    if !fragments.isEmpty {
      for fragment in fragments { graveyard.update(fragment) }
      let report = scope.apply(
        fragments, keepingOrphans: true, alsoKnown: { [self] in graveyard.find($0) })
      updateBuried(fragments)
      for model in report.orphans { graveyard.insert(model) }
      restoreRevived()
    }
    clearGraveyard()
    let conflicts = conflicts(unnoted.removeLast())
    if isRestoring { scope.conflicts.restore(conflicts) } else { scope.conflicts.add(conflicts) }
    for (handle, outcomes, causes) in done.decided {
      scope.pendingChangeSets.finish(handle) { $0.decide(outcomes, causes: causes) }
    }
    for rejected in done.rejected { onRejected?(rejected) }
    if let models = done.repaired { onRepaired?(models) }
    for changes in done.remote { scope.onRemoteChanges.fire(changes) }
  }

  /// Notes what others have changed, to be told of when it is visible.
  func noteRemote(_ changes: @autoclosure () -> RemoteChanges) {
    if scope.onRemoteChanges.hasListeners, !isRestoring { batch.remote.append(changes()) }
  }

  /// Forgets models that left, unless a set may be rejected that has taken them out. Observers may have taken
  /// out some that are in no set yet.
  func clearGraveyard() {
    if pending.isEmpty, !scope.hasCollectedChanges {
      graveyard.removeAll()
    } else {
      graveyard.prune { overlay.references }
    }
  }

  /// An observer may have taken models out while they were written.
  func updateBuried(_ fragments: [SyncFragment]) {
    for fragment in fragments where graveyard.find(fragment.uuid) != nil {
      var values = JSONObject()
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        let visible = overlay.visible(PropertyKey(uuid: fragment.uuid, name: key))?.json
        values[key] = visible ?? fragment.properties[key]
      }
      graveyard.update(fragment.uuid, values)
    }
  }

  /// Gives models that others have brought back the values that the others see.
  func restoreRevived() {
    while !revived.isEmpty {
      let fragments = revived.compactMap { uuid, values -> SyncFragment? in
        guard let model = scope.model(uuid) else { return nil }
        var values = values
        // A listener may have made a set since.
        for (key, _) in values {
          let visible = overlay.visible(PropertyKey(uuid: uuid, name: key))
          if let visible { values[key] = visible.json }
        }
        return SyncFragment(
          .change, uuid: uuid, className: model.wireClassName, properties: values)
      }
      revived = [:]
      scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
    }
  }

  func isKnown(_ uuid: UUID) -> Bool {
    scope.model(uuid) != nil || graveyard.find(uuid) != nil || scope.unknownModel(uuid) != nil
  }

  /// Sorts one remote fragment into the batch; `author` has made it, if anybody has said so.
  func note(_ fragment: SyncFragment, by author: String? = nil) {
    let isKnown = scope.model(fragment.uuid) != nil || batch.additionIndex[fragment.uuid] != nil
    if fragment.kind == .add, !isKnown {
      batch.additionIndex[fragment.uuid] = batch.additions.count
      // What was done to it before it left and came back is in what it comes with.
      let before = batch.direct.removeValue(forKey: fragment.uuid)?.properties
      batch.additions.append(
        SyncFragment(
          .add, uuid: fragment.uuid, className: fragment.className,
          properties: before ?? JSONObject()))
    }
    if let at = batch.additionIndex[fragment.uuid] {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        // The app put the model back when it was as before.
        coverIfAdded(name, confirmed: value)
        overlay.confirm(name, value: value)
        batch.additions[at].properties[key] = value
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        let range = scope.counterRange(of: entry, in: fragment)
        overlay.confirm(name, .operations(entry.operations, value: nil, range: range))
        batch.additions[at].properties[entry.key] = PropertyOperation.apply(
          entry.operations, to: batch.additions[at].properties[entry.key], within: range)
      }
      return
    }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      coverIfAdded(name)
      if overlay.covers(name) {
        touch(name, className: fragment.className)
        overlay.confirm(name, value: value, by: author)
      } else {
        appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: Noted()].set(key, to: value)
      }
    }
    for entry in fragment.operations {
      let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
      let range = scope.counterRange(of: entry, in: fragment)
      coverIfAdded(name)
      if overlay.covers(name) {
        touch(name, className: fragment.className)
        overlay.confirm(
          name, .operations(entry.operations, value: nil, range: range), by: author)
      } else {
        appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: Noted()]
          .perform(entry.operations, on: entry.key, within: range)
      }
    }
  }

  /// Remembers what was visible of a covered property before the batch changed it.
  func touch(_ name: PropertyKey, className: String) {
    appear(name.uuid, className)
    if batch.seen[name] == nil, let visible = overlay.visible(name) { batch.seen[name] = visible }
  }

  func appear(_ uuid: UUID, _ className: String) {
    if batch.classNames.updateValue(className, forKey: uuid) == nil { batch.order.append(uuid) }
  }
}
