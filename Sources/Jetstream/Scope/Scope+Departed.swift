import Foundation

/// What the others know of models that they have until the next change set, and this scope does not.
///
/// A model that has left is asked itself; see ``Scope/hasLeft(_:)``. Where that is not possible, what the
/// others know of it is in ``Scope/remembered``, and follows what they do.
extension Scope {
  /// Remembers what the others know of a model whose changes will not be collected any more.
  func remember(_ record: ModelRecord) {
    if keepsRemovedModels { remembered[record.uuid] = record.known() }
  }

  /// A model of this scope is about to be collected by another one.
  func giveAway(_ record: ModelRecord) {
    // Without a root there will be no set that is to be taken back.
    if !record.isNew, rootRecord != nil { remember(record) }
  }

  /// Others have put a model where only what has left holds it: it counts as having left, too.
  func keepAsLeft(_ record: ModelRecord) {
    guard let model = record.model, !record.isKeptAsLeft else { return }
    record.isNew = false
    record.captureScope = self
    record.isKeptAsLeft = true
    left.append(model)
    // Something unknown may refer to it as well.
    unknown?.keep(record)
  }

  /// The models that a set takes from the others, as they know them: those that the properties lead to
  /// that it changes, from one to the next, and those that it adds although they know them.
  ///
  /// - Parameters:
  ///   - changes: lead back to the old values.
  ///   - fragments: those of the set.
  func departedModels(
    namedBy changes: [SyncFragment], addedBy fragments: [SyncFragment]
  ) -> [SyncFragment] {
    guard keepsRemovedModels, !left.isEmpty || !remembered.isEmpty else { return [] }
    var result: [SyncFragment] = []
    var added: Set<UUID> = []
    for fragment in fragments where fragment.kind == .add { added.insert(fragment.uuid) }
    var seen: Set<UUID> = []
    var open: [UUID] = []
    func follow(_ first: SyncFragment) {
      let bottom = open.count
      forEachModel(namedBy: first) { open.append($0) }
      open[bottom...].reverse()
      while let uuid = open.popLast() {
        guard seen.insert(uuid).inserted, let known = departedModel(uuid, added) else { continue }
        result.append(known)
        let bottom = open.count
        forEachModel(namedBy: known) { open.append($0) }
        open[bottom...].reverse()
      }
    }
    for change in changes { follow(change) }
    for fragment in fragments where fragment.kind == .add {
      guard seen.insert(fragment.uuid).inserted, let known = departedModel(fragment.uuid, added)
      else { continue }
      result.append(known)
      follow(known)
    }
    return result
  }

  /// A model that the others know, unless it is still here and they go on knowing it.
  private func departedModel(_ uuid: UUID, _ added: Set<UUID>) -> SyncFragment? {
    if let record = record(of: uuid), !record.isNew, !added.contains(uuid) { return nil }
    return knownModel(uuid)
  }

  /// What the others know of a model that has left.
  func knownModel(_ uuid: UUID) -> SyncFragment? {
    modelThatLeft(uuid)?.record?.known() ?? remembered[uuid]
  }

  /// Calls `body` with each model that a fragment puts somewhere.
  func forEachModel(namedBy fragment: SyncFragment, _ body: (UUID) -> Void) {
    let schema = schema(of: fragment)
    for (key, value) in fragment.properties {
      if schema?[wireName: key]?.kind == .plain { continue }
      value.forEachUUID(body)
    }
    for entry in fragment.operations {
      for case .insert(let uuid, _) in entry.operations { body(uuid) }
    }
  }
}

/// Keeping what others know of models up to date, and of those that they put beside the visible tree.
extension FragmentWriter {
  /// Others have changed a model, which may not be in the tree, or not as they see it.
  mutating func noteKnown(_ fragment: SyncFragment) {
    if isLocal { return }
    if let known = scope.remembered[fragment.uuid] {
      scope.remembered[fragment.uuid] = known.updated(
        by: fragment, as: scope.schema(of: fragment), resetsMissing: resetsMissing)
    } else if let model = find(fragment.uuid), let record = model.record, record.scope === scope,
      !record.hasBases, modelThatLeft(behind: model) == nil
    {
      return
    }
    beside.append(fragment.uuid)
  }

  /// The model that the others mean, where another instance with its UUID has taken its place.
  func modelThatLeft(behind model: ModelObject) -> ModelObject? {
    if isLocal || scope.left.isEmpty || model.record?.scope !== scope { return nil }
    return scope.modelThatLeft(model.uuid)
  }

  /// Writes to a model that has left what was written, and reported, where another instance stands.
  mutating func keepUpToDate(
    _ left: ModelObject, _ fragment: SyncFragment, at position: Int
  ) {
    let (errors, kept) = (report.errors, report.kept)
    writtenBehind = left
    write(fragment, to: left, at: position)
    writtenBehind = nil
    (report.errors, report.kept) = (errors, kept)
  }

  /// What others have put below models that have left, or where a change of this replica hides it, is
  /// theirs until that is told.
  mutating func keepBeside() {
    if beside.isEmpty || scope.isRollingBack { return }
    var open = beside
    beside = []
    while let uuid = open.popLast() {
      guard
        let known = scope.knownModel(uuid)
          ?? scope.record(of: uuid).flatMap({ $0.isNew ? nil : $0.known() })
      else { continue }
      scope.forEachModel(namedBy: known) { child in
        guard scope.record(of: child) == nil, scope.knownModel(child) == nil,
          let model = created[child] ?? held[child], let record = model.record,
          record.scope == nil, record.captureScope == nil || record.captureScope === scope
        else { return }
        if record.parents.all.contains(where: { $0.parent.isKeptAsLeft && scope.hasLeft($0.parent) }
        ) {
          scope.keepAsLeft(record)
          kept.append(model)
        } else {
          scope.remember(record)
        }
        open.append(child)
      }
    }
  }
}

extension SyncFragment {
  /// A model as it is after what another fragment says of it; an addition says everything.
  ///
  /// - Parameter schema: that of the model; nil if its class is not known.
  func updated(
    by fragment: SyncFragment, as schema: ModelSchema?, resetsMissing: Bool
  ) -> SyncFragment {
    var result = self
    if fragment.kind == .add || resetsMissing {
      if fragment.className == className { result.properties = fragment.properties }
      return result
    }
    for (key, value) in fragment.properties { result.properties[key] = value }
    for entry in fragment.operations {
      result.properties[entry.key] = PropertyOperation.apply(
        entry.operations, to: result.properties[entry.key],
        within: schema?.counterRange(of: entry.key) ?? .unknown)
    }
    return result
  }
}
