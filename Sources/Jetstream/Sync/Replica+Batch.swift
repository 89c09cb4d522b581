import Foundation

/// Batches, which apply the messages of one frame as one change.
extension Replica {
  /// Begins a batch, if none is open. Seals local changes first, because the overlay covers only what is in a change
  /// set. Changes that observers make during the batch stay in front of what it writes; the scope takes care of
  /// that.
  func beginBatch() {
    guard batch.isEmpty else { return }
    scope.sealChanges()
    // At the end of a batch, observers may have made changes again.
    clearGraveyard()
    batch.isEmpty = false
  }

  /// Ends a batch: writes the visible differences into the scope.
  ///
  /// All messages of one frame form one batch, so that a reply and the correction that follows it appear as one
  /// change, and so do a full state and the change sets behind it.
  func finishBatch() {
    guard !batch.isEmpty else { return }
    keepConfirmed()
    var done = batch
    batch = ReplicaBatch()
    losses.beginWriting()
    for (at, addition) in done.additions.enumerated() where !overlay.keys.isEmpty {
      for (key, _) in addition.properties {
        let visible = overlay.visible(PropertyKey(uuid: addition.uuid, name: key))
        if let visible { done.additions[at].properties[key] = visible.json }
      }
    }
    var noted = done.direct
    for (name, before) in done.seen {
      let now = overlay.visible(name) ?? before
      overlay.dropIfSettled(name)
      if let at = done.place(of: name.uuid) {
        done.additions[at].properties[name.name] = now.json
      } else if !now.isWritten(as: before), isKnown(name.uuid) {
        noted[name.uuid, default: .init()].set(name.name, to: now.json)
      }
    }
    var fragments = done.additions
    fragments += done.changes(noted)
    if !fragments.isEmpty {
      for fragment in fragments { graveyard.update(fragment) }
      let report: ApplyReport
      if let root = done.stateRoot {
        report = scope.write(
          state: fragments, count: done.additions.count, rootUUID: root, keepingOrphans: true,
          alsoKnown: { [self] in graveyard.find($0) })
        scope.conflicts.noteState()
        scope.countersBeneathPending = [:]
        // The models of the state have its values by now. Models that only pending change sets add below them do not.
        graveyard.noteState(done.additions)
      } else {
        report = scope.apply(
          fragments, keepingOrphans: true, alsoKnown: { [self] in graveyard.find($0) })
      }
      updateBuried(fragments)
      for model in report.orphans { graveyard.insert(model) }
      restoreRevived()
    }
    clearGraveyard()
    let conflicts = conflicts(losses.endWriting())
    if journal.isRestoring {
      scope.conflicts.restore(conflicts)
    } else {
      scope.conflicts.add(conflicts)
    }
    for complete in done.completions { complete(.success(())) }
    for (set, replies, outcome) in done.decided {
      scope.pendingChangeSets.finish(set) { $0.decide(by: replies, outcome) }
    }
    for rejected in done.rejected {
      delegate?.report(
        .rejected(scope, rejected.fragment, rejected.error, consequences: rejected.consequences))
    }
    if let models = done.repaired { delegate?.report(.repaired(scope, models)) }
    for changes in done.remote { scope.onRemoteChanges.fire(changes) }
  }

  /// Notes remote changes, to be reported once they are visible.
  func noteRemote(_ changes: @autoclosure () -> RemoteChanges) {
    if scope.onRemoteChanges.hasListeners, !journal.isRestoring { batch.remote.append(changes()) }
  }

  /// Drops models that have left, unless they may come back: because a change set is rejected, or because other replicas,
  /// which do not know of it yet, move them.
  func clearGraveyard() {
    // A batch may still be about to write a reference to a model whose change set it has decided itself. And of models
    // that the app has just removed, no pending change set says so yet.
    guard batch.isEmpty, scope.isSettled, !scope.isDelivering else { return }
    if pending.isEmpty {
      graveyard.removeAll()
    } else {
      graveyard.prune { overlay.references }
    }
  }

  /// Updates models in the graveyard, because an observer may have removed models while they were being written.
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

  /// Gives models that remote changes have brought back the values that other replicas have.
  func restoreRevived() {
    while let revived = graveyard.takeRevived() {
      let fragments = revived.compactMap { uuid, values -> SyncFragment? in
        guard let model = scope.model(uuid) else { return nil }
        var values = values
        // A listener may have made a change set since.
        for (key, _) in values {
          let visible = overlay.visible(PropertyKey(uuid: uuid, name: key))
          if let visible { values[key] = visible.json }
        }
        for key in model.ensureRecord().entryNames where values[key] == nil {
          values[key] = overlay.visible(PropertyKey(uuid: uuid, name: key))?.json ?? .null
        }
        return SyncFragment(
          .change, uuid: uuid, className: model.wireClassName, properties: values)
      }
      scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
    }
  }

  /// Adds one remote fragment to the batch; `author` is its author, if known.
  func note(_ fragment: SyncFragment, by author: String? = nil) {
    var fragment = fragment
    if fragment.kind == .add, scope.tree.hasDictionaries {
      for name in missingEntries(in: fragment) { fragment.properties[name] = .null }
    }
    // With a full state in the batch, the models of the scope that the state does not have are about to leave.
    let isKnown = batch.stateRoot == nil && scope.model(fragment.uuid) != nil
    if fragment.kind == .add, !isKnown, batch.place(of: fragment.uuid) == nil {
      batch.add(fragment.uuid, fragment.className)
    }
    if let at = batch.place(of: fragment.uuid) {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        // If the app has put the model back, it did so on the basis of the model's earlier state.
        coverIfAdded(name, confirmed: value)
        overlay.confirm(name, value: value, by: author)
        batch.additions[at].properties[key] = value
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        let range = scope.counterRange(of: entry, in: fragment)
        overlay.confirm(
          name, .operations(entry.operations, value: nil, range: range), by: author)
        batch.additions[at].properties[entry.key] = PropertyOperation.apply(
          entry.operations, to: noted(entry.key, at: at), within: range)
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
        batch.appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: .init()].set(key, to: value)
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
        batch.appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: .init()]
          .perform(entry.operations, on: entry.key, within: range)
      }
    }
  }

  /// Returns the value of a property of the addition at a position in the batch; nil if it is not known.
  func noted(_ key: String, at place: Int) -> JSONValue? {
    let addition = batch.additions[place]
    if let value = addition.properties[key] { return value }
    // A state leaves out a property that has its default value.
    return scope.schema(of: addition)?[wireName: key]?.defaultValue
  }

  /// Returns the names of the entries that a model has here and that an addition does not have. An addition has all that
  /// its model has.
  func missingEntries(in addition: SyncFragment) -> [String] {
    let uuid = addition.uuid
    // Nothing is known of most models that are added.
    guard isKnown(uuid) || batch.place(of: uuid) != nil || batch.direct[uuid] != nil,
      let schema = scope.schema(of: addition)?.data, schema.hasDictionaries
    else { return [] }
    var names = scope.model(uuid)?.ensureRecord().entryNames ?? []
    names += graveyard.values(of: uuid)?.map(\.key) ?? []
    names += overlay.keys.filter { $0.uuid == uuid }.map(\.name)
    if let at = batch.place(of: uuid) { names += batch.additions[at].properties.map(\.key) }
    names += batch.direct[uuid]?.properties.map(\.key) ?? []
    return names.filter {
      addition.properties[$0] == nil && schema[wireName: $0]?.entryKey != nil
    }
  }

  /// Remembers the visible value of a covered property before the batch changes it.
  func touch(_ name: PropertyKey, className: String) {
    batch.appear(name.uuid, className)
    if batch.seen[name] == nil, let visible = overlay.visible(name) { batch.seen[name] = visible }
  }
}
