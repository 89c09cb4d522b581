import Foundation

/// The result of applying fragments.
public struct ApplyReport {
  /// The errors, each with the index of its fragment. Everything else was applied.
  public internal(set) var errors: [(fragment: Int, error: ScopeError)] = []

  /// The content that was kept although no class of the scope knows it, by the position of the fragment:
  /// ``ScopeError/unknownProperty(className:model:property:)`` and ``ScopeError/unknownClass(className:model:)``. Nothing of it is
  /// lost, so it is no error.
  package internal(set) var kept: [(fragment: Int, reason: ScopeError)] = []

  /// Models that were added but that no visible property refers to.
  var orphans: [ModelObject] = []

  /// True if there are no errors: everything was applied or kept.
  package var isComplete: Bool { errors.isEmpty }
}

/// Applying the changes of other replicas.
extension Scope {
  /// Applies fragments of another replica, or of a log.
  ///
  /// The fragments may refer to each other in any order. Observers fire as for local changes, but the changes do
  /// not come out of ``onChanges``. If the scope has a local change of the same property that is in no change set
  /// yet, the local value stays visible, as the later one; collections are merged, and what was added to a counter
  /// is added to the new number. A part that does not fit is left out and reported, and the rest is applied.
  /// Unknown properties and classes are kept and sent out again; see
  /// `unknownProperties(of:)` and `unknownModels`.
  ///
  /// - Parameters:
  ///   - fragments: the changes.
  ///   - resettingMissing: true if properties that a fragment does not name return to their defaults, and unknown
  ///     properties that it does not name are forgotten. Properties that hold models become empty.
  @discardableResult
  public func apply(_ fragments: [SyncFragment], resettingMissing: Bool = false) -> ApplyReport {
    apply(fragments, resettingMissing: resettingMissing, alsoKnown: { _ in nil })
  }

  /// Applies fragments that may also refer to models outside of the scope, which `alsoKnown` finds. The report
  /// contains the orphans only if `keepingOrphans` is true.
  @discardableResult
  package func apply(
    _ fragments: [SyncFragment], resettingMissing: Bool = false, keepingOrphans: Bool = false,
    alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> ApplyReport {
    if !resettingMissing, let report = applyPlainValues(fragments) { return report }
    schedule.beginApplying()
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.resetsMissing = resettingMissing
    writer.writeAll(fragments)
    return finish(&writer, fragments, keepingOrphans: keepingOrphans)
  }

  /// Makes models from additions that nothing in the scope refers to. Tells no membership observer of the fragments.
  func makeDeparted(
    _ additions: [SyncFragment], alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> [ModelObject] {
    schedule.beginApplying()
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.writeAll(additions)
    finishApplying()
    writer.forgetOrphans(among: additions)
    // The caller may keep these models, and change sets that refer to what they hold: the next changes prune it.
    return writer.report.orphans + writer.kept
  }

  /// Replaces the content of the scope by a full state: `fragments` describe every model, the root first.
  ///
  /// The root takes the UUID `rootUUID`. Existing models keep their identity, properties that a fragment does not
  /// name return to their defaults, and models that the state does not contain are detached. A property that holds
  /// models becomes empty, also if `init()` makes models for it: no other replica knows these. Applying the same
  /// state again calls no observer.
  ///
  /// - Throws: ``ScopeError/invalidState(problem:)`` if the scope has no root, or if the state does not begin with
  ///   `rootUUID` or names another model of the scope as its root; ``ScopeError/classMismatch(model:className:other:)`` if the root
  ///   has another class. Nothing is changed then.
  @discardableResult
  public func applyFullState(
    _ fragments: [SyncFragment], rootUUID: UUID
  ) throws(ScopeError) -> ApplyReport {
    try checkFullState(fragments, rootUUID: rootUUID)
    return write(
      state: fragments, count: fragments.count, rootUUID: rootUUID, alsoKnown: { _ in nil })
  }

  /// Replaces the content of the scope by a root with default values. Properties for which its initializer makes models
  /// stay as they are, but for what a client has left pending of the counters in these models. Does nothing without a root.
  ///
  /// - Throws: as ``applyFullState(_:rootUUID:)`` does.
  func setToDefaults() throws(ScopeError) {
    guard let root else { return }
    var fragments = [
      SyncFragment(.change, uuid: root.uuid, className: root.schema.wireName, properties: [:])
    ]
    try checkFullState(fragments, rootUUID: root.uuid)
    for (name, value) in countersBeneathPending where name.uuid != root.uuid {
      guard let model = model(name.uuid) else { continue }
      fragments.append(
        SyncFragment(
          .change, uuid: name.uuid, className: model.wireClassName,
          properties: [name.name: value.json]))
    }
    _ = write(
      state: fragments, count: 1, rootUUID: root.uuid, keepingMadeModels: true,
      alsoKnown: { _ in nil })
  }

  /// Replaces the content of the scope by a full state that meets ``checkFullState(_:rootUUID:)``: the first `count`
  /// fragments. The others are changes of models that the state does not have.
  func write(
    state fragments: [SyncFragment], count: Int, rootUUID: UUID, keepingOrphans: Bool = false,
    keepingMadeModels: Bool = false, alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> ApplyReport {
    renameRoot(to: rootUUID)
    unknown?.removeAll()
    schedule.beginApplying()
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.resetsMissing = true
    writer.keepsMadeModels = keepingMadeModels
    writer.prepare(fragments)
    interval.othersWrote = true
    for at in (0..<count).reversed() { writer.write(fragments[at], at: at) }
    writer.resetsMissing = false
    for at in count..<fragments.count { writer.write(fragments[at], at: at) }
    return finish(&writer, fragments, keepingOrphans: keepingOrphans)
  }

  /// Throws if the fragments cannot be a full state of this scope.
  func checkFullState(_ fragments: [SyncFragment], rootUUID: UUID) throws(ScopeError) {
    guard let root else { throw .invalidState(problem: "scope \(name) has no root to take it.") }
    guard let first = fragments.first, first.uuid == rootUUID else {
      throw .invalidState(problem: "it does not begin with its root \(rootUUID.wireText).")
    }
    guard first.className == root.wireClassName else {
      throw .classMismatch(model: rootUUID, className: root.wireClassName, other: first.className)
    }
    if let other = tree.record(of: rootUUID), !tree.isRoot(other) {
      throw .invalidState(problem: "its root \(rootUUID.wireText) is another model here.")
    }
  }

  private func finish(
    _ writer: inout FragmentWriter, _ fragments: [SyncFragment], keepingOrphans: Bool
  ) -> ApplyReport {
    finishApplying()
    writer.forgetOrphans(among: fragments)
    if keepingOrphans {
      writer.report.orphans += writer.kept
    } else {
      writer.report.releaseOrphans()
    }
    return conclude(fragments, writer.report)
  }

  /// Tells errors, and those who follow the scope, of fragments that were applied.
  func conclude(_ fragments: [SyncFragment], _ report: ApplyReport) -> ApplyReport {
    pruneUnknownIfDue(besides: report.orphans)
    for (_, error) in report.errors where onError.hasListeners { onError.fire(error) }
    tree.observers.forEach { $0.fragmentsApplied(fragments) }
    return report
  }

  /// Ends one of the nested calls that apply changes of other replicas. The outermost one settles what was
  /// postponed meanwhile: detaching models, and sealing a change set whose time came while the changes were being
  /// applied.
  func finishApplying() {
    guard schedule.endApplying() else { return }
    settleSuspects()
    // A model that is no longer shared drops its bases, which a running call of `modify` may still need.
    if modification == nil {
      findUnshared()
      findShared()
    }
    // The changes of other replicas may have made a model reachable that only this replica has.
    if !interval.unshared.isEmpty { startCollecting() }
    guard schedule.isMissed else { return }
    schedule.endInterval()
    if hasCollectedChanges || schedule.deferred != nil || incoming.opensLater { startCollecting() }
  }

  /// Detaches the models that were taken out of a property and that no other fragment has put elsewhere.
  func settleSuspects() {
    guard !tree.suspects.isEmpty else { return }
    let models = tree.suspects
    tree.suspects = []
    var events = StructureEvents()
    tree.writeRemotely { Structure.detachUnreached(among: models, from: tree, &events) }
    events.fire()
  }

  /// Returns every model of the scope as a fragment: the root as a change, first, then the models below it in
  /// depth-first order, each once, then the models of unknown classes. Cost: O(n).
  ///
  /// The state includes changes that are in no change set yet. Call ``flush()`` first if later change sets are to
  /// be applied on top of the state.
  public func fullState() -> [SyncFragment] {
    guard let root = root?.record else { return [] }
    return root.subtreeFragments(first: .change)
  }

  /// Returns the full state for other replicas: without values that a minimal sync interval holds back, since these
  /// may never be sent.
  package func sharedState() -> [SyncFragment] {
    guard let root = root?.record else { return [] }
    return root.subtreeFragments(first: .change, withHeldBack: false)
  }

  /// The content of the scope in canonical form: equal replicas give equal bytes.
  ///
  /// `{"models":{"<uuid>":{"clsName":"...","properties":{...}},...},"root":"<uuid>"}`
  public var canonicalJSON: String { fullState().canonicalJSON }
}

extension ModelRecord {
  /// Returns the model and all models below it, depth first, each once, followed by the unknown models that their
  /// unknown properties refer to. All are additions, except that the first one can be a change.
  func subtreeFragments(
    first: SyncFragment.Kind = .add, withHeldBack: Bool = true
  ) -> [SyncFragment] {
    var result: [SyncFragment] = []
    var visited: Set<ObjectIdentifier> = []
    var stack: ContiguousArray<ModelRecord> = [self]
    var unknown: [JSONObject] = []
    while let record = stack.popLast() {
      guard visited.insert(ObjectIdentifier(record)).inserted else { continue }
      result.append(
        record.addFragment(result.isEmpty ? first : .add, withHeldBack: withHeldBack))
      if let values = record.unknown?.properties { unknown.append(values) }
      let bottom = stack.count
      record.forEachChild { child, index in
        if record.schema.properties[index].isSynced { stack.append(child.ensureRecord()) }
      }
      stack.reverse(from: bottom)
    }
    if let store = tree?.scope?.unknown { result += store.additions(reachableFrom: unknown) }
    return result
  }
}
