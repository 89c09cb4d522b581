import Foundation

/// Models that have left this scope, but that other replicas have until they receive the next change set.
///
/// The last shared state of a model that has left comes from its object; see ``Scope/hasLeft(_:)``. If that object
/// can no longer be read, the last shared state is in ``DepartedModels/states``, and follows the changes of other
/// replicas.
extension Scope {
  /// Saves the last shared state of a model whose changes will not be collected any more.
  func remember(_ record: ModelRecord) {
    if keepsRemovedModels { interval.departed.states[record.uuid] = record.known() }
  }

  /// Called before another scope begins to collect the changes of a model of this scope.
  func giveAway(_ record: ModelRecord) {
    // Without a root there will be no change set to undo.
    if !record.isNew, tree.rootRecord != nil { remember(record) }
  }

  /// Keeps a model that another replica has put where only a model that has left holds it. It counts as having
  /// left, too.
  func keepAsLeft(_ record: ModelRecord) {
    guard let model = record.model, !record.isKeptAsLeft else { return }
    record.isNew = false
    record.captureTree = tree
    interval.departed.keep(model)
    // An unknown property may refer to it as well.
    unknown?.keep(record)
  }

  /// Returns the last shared state of the models that a change set removes from other replicas: those that the
  /// changed properties held, directly or through others, and those that it adds although other replicas know them.
  ///
  /// - Parameters:
  ///   - changes: the changes that restore the old values.
  ///   - fragments: the fragments of the change set.
  func departedModels(
    namedBy changes: [SyncFragment], addedBy fragments: [SyncFragment]
  ) -> [SyncFragment] {
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

  /// Returns the last shared state of a model; nil if the model is still in the scope and other replicas keep it.
  private func departedModel(_ uuid: UUID, _ added: Set<UUID>) -> SyncFragment? {
    if let record = tree.record(of: uuid), !record.isNew, !added.contains(uuid) { return nil }
    return knownModel(uuid)
  }

  /// Returns the last shared state of a model that has left.
  func knownModel(_ uuid: UUID) -> SyncFragment? {
    modelThatLeft(uuid)?.record?.known() ?? interval.departed.states[uuid]
  }

  /// Calls `body` with each model that a fragment puts into a property.
  func forEachModel(namedBy fragment: SyncFragment, _ body: (UUID) -> Void) {
    fragment.forEachModel(as: schema(of: fragment)?.data, body)
  }
}

extension SyncFragment {
  /// Calls `body` with each model that the fragment puts into a property of its class. In a property that the class does
  /// not have, or of a class that is not known, every UUID counts.
  package func forEachModel(as schema: ClassSchema?, _ body: (UUID) -> Void) {
    for (key, value) in properties {
      if schema?[wireName: key]?.kind == .plain { continue }
      value.forEachUUID(body)
    }
    for entry in operations {
      for case .insert(let uuid, _) in entry.operations { body(uuid) }
    }
  }
}

/// Applying changes of other replicas to models that are not in the visible tree.
extension FragmentWriter {
  /// Notes that another replica has changed a model that this scope may not have, or not as that replica sees it.
  mutating func noteKnown(_ fragment: SyncFragment, of model: ModelObject?) {
    if isLocal { return }
    if !scope.interval.departed.states.isEmpty,
      let known = scope.interval.departed.states[fragment.uuid]
    {
      scope.interval.departed.states[fragment.uuid] = known.updated(
        by: fragment, as: scope.schema(of: fragment), resetsMissing: resetsMissing)
    } else if let model, let record = model.record, record.tree === scope.tree, !record.hasBases,
      modelThatLeft(behind: model) == nil
    {
      return
    }
    beside.append(fragment.uuid)
  }

  /// Returns the model that other replicas mean, if another instance with its UUID has taken its place here.
  func modelThatLeft(behind model: ModelObject) -> ModelObject? {
    if isLocal || scope.interval.departed.models.isEmpty || model.record?.tree !== scope.tree {
      return nil
    }
    return scope.modelThatLeft(model.uuid)
  }

  /// Writes a fragment to a model that has left, after it was written to, and reported for, the instance in its
  /// place.
  mutating func keepUpToDate(
    _ left: ModelObject, _ fragment: SyncFragment, at position: Int
  ) {
    let (errors, kept) = (report.errors, report.kept)
    writtenBehind = left
    write(fragment, to: left, at: position)
    writtenBehind = nil
    (report.errors, report.kept) = (errors, kept)
  }

  /// Keeps the models that other replicas have put below models which have left, or where a local change hides
  /// them. Other replicas have these until they receive the next change set.
  mutating func keepBeside() {
    if beside.isEmpty || scope.isRollingBack { return }
    var open = beside
    beside = []
    while let uuid = open.popLast() {
      guard
        let known = scope.knownModel(uuid)
          ?? scope.tree.record(of: uuid).flatMap({ $0.isNew ? nil : $0.known() })
      else { continue }
      scope.forEachModel(namedBy: known) { child in
        guard scope.tree.record(of: child) == nil, scope.knownModel(child) == nil,
          let model = created[child] ?? held[child], let record = model.record,
          record.tree == nil, record.captureTree == nil || record.captureTree === scope.tree
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
  /// Returns a model, given as an addition, as it is after another fragment of it. An addition replaces all values.
  ///
  /// - Parameter schema: the schema of the model; nil if its class is not known.
  func updated(
    by fragment: SyncFragment, as schema: ModelSchema?, resetsMissing: Bool
  ) -> SyncFragment {
    var result = self
    if fragment.kind == .add || resetsMissing {
      if fragment.className == className {
        result.properties = fragment.properties
        result.properties.dropNullEntries(of: schema?.data)
      }
      return result
    }
    result.properties.assign(fragment.properties, of: schema?.data)
    for entry in fragment.operations {
      result.properties[entry.key] = PropertyOperation.apply(
        entry.operations, to: result.properties[entry.key],
        within: schema?.counterRange(of: entry.key) ?? .unknown)
    }
    return result
  }
}
