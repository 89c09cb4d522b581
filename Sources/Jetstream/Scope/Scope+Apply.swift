import Foundation

/// What came of applying fragments.
public struct ApplyReport {
  /// What did not fit, by the position of the fragment. Everything else was applied.
  public internal(set) var errors: [(fragment: Int, error: ScopeError)] = []

  /// What was kept although no class of the scope knows it, by the position of the fragment:
  /// ``ScopeError/unknownProperty(_:_:_:)`` and ``ScopeError/unknownClass(_:_:)``. Nothing of it is
  /// lost, so it is no error.
  public internal(set) var kept: [(fragment: Int, reason: ScopeError)] = []

  /// Models that were added, but that nothing visible refers to.
  var orphans: [ModelObject] = []

  /// Whether all was applied or kept.
  public var isComplete: Bool { errors.isEmpty }
}

/// Applying what others did.
extension Scope {
  /// Applies fragments of another replica, or of a log.
  ///
  /// They may refer to each other in any order. Observers fire as for local changes, but the changes
  /// do not come out of ``onChanges`` again. Where the scope has a local change of the same property
  /// that is not in a change set yet, that one stays visible, as the later one; collections are
  /// merged. What does not fit is left out and reported, and the rest is applied. What the classes do
  /// not know is kept and goes out again; see ``unknownProperties(of:)`` and ``unknownModels``.
  ///
  /// With `resettingMissing`, properties that a fragment does not name return to their defaults, and
  /// unknown ones are forgotten.
  @discardableResult
  public func apply(_ fragments: [SyncFragment], resettingMissing: Bool = false) -> ApplyReport {
    apply(fragments, resettingMissing: resettingMissing, alsoKnown: { _ in nil })
  }

  /// Applies fragments that may also refer to models outside of the scope, which `alsoKnown` finds.
  /// The report has the orphans only if they are to be kept.
  @discardableResult
  package func apply(
    _ fragments: [SyncFragment], resettingMissing: Bool = false, keepingOrphans: Bool = false,
    alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> ApplyReport {
    applying += 1
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.resetsMissing = resettingMissing
    writer.writeAll(fragments)
    return finish(&writer, fragments, keepingOrphans: keepingOrphans)
  }

  /// Makes models of additions that nothing in the scope refers to. No listener is told.
  func makeDeparted(
    _ additions: [SyncFragment], alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> [ModelObject] {
    applying += 1
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.writeAll(additions)
    finishApplying()
    writer.forgetOrphans(among: additions)
    unknown?.pruneIfDue()
    return writer.report.orphans + writer.kept
  }

  /// Replaces the content by a full state: `fragments` describe every model, the root first.
  ///
  /// The root takes the UUID `rootUUID`. Models that are there keep their identity, properties that
  /// a fragment does not name return to their defaults, and models that the state does not contain
  /// are detached. Applying the same state again notifies nobody.
  @discardableResult
  public func applyFullState(
    _ fragments: [SyncFragment], rootUUID: UUID
  ) throws(ScopeError) -> ApplyReport {
    try applyFullState(fragments, rootUUID: rootUUID, alsoKnown: { _ in nil })
  }

  @discardableResult
  func applyFullState(
    _ fragments: [SyncFragment], rootUUID: UUID, keepingOrphans: Bool = false,
    alsoKnown: @escaping (UUID) -> ModelObject?
  ) throws(ScopeError) -> ApplyReport {
    try checkFullState(fragments, rootUUID: rootUUID)
    renameRoot(to: rootUUID)
    unknown?.fragments = [:]
    applying += 1
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.resetsMissing = true
    writer.prepare(fragments)
    othersWrote = true
    for (position, fragment) in fragments.enumerated().reversed() {
      writer.write(fragment, at: position)
    }
    return finish(&writer, fragments, keepingOrphans: keepingOrphans)
  }

  /// Whether the fragments can be a state of this scope.
  func checkFullState(_ fragments: [SyncFragment], rootUUID: UUID) throws(ScopeError) {
    guard let root else { throw .invalidState("scope \(name) has no root to take it.") }
    guard let first = fragments.first, first.uuid == rootUUID else {
      throw .invalidState("it does not begin with its root \(rootUUID.wireText).")
    }
    guard first.className == root.wireClassName else {
      throw .classMismatch(rootUUID, root.wireClassName, first.className)
    }
    if let other = record(of: rootUUID), !isRoot(other) {
      throw .invalidState("its root \(rootUUID.wireText) is another model here.")
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
    unknown?.pruneIfDue()
    for (_, error) in writer.report.errors where onError.hasListeners { onError.fire(error) }
    onRemoteSync.fire(fragments)
    return writer.report
  }

  /// One of the calls that write what was not changed here is done.
  func finishApplying() {
    applying -= 1
    guard applying == 0 else { return }
    settleSuspects()
    // What is not shared any more forgets what it was, which a call of `modify` may need yet.
    if modification == nil {
      findUnshared()
      findShared()
    }
    // What others did may be what leads to a model that only we have.
    if !unshared.isEmpty { startCollecting() }
    guard isSealMissed else { return }
    isSealMissed = false
    isCollecting = false
    if hasCollectedChanges || deferred != nil { startCollecting() }
  }

  /// All fragments are applied: what none of them has put anywhere else is detached.
  func settleSuspects() {
    guard !suspects.isEmpty else { return }
    let models = suspects
    suspects = []
    var events = StructureEvents()
    isWritingRemotely = true
    Structure.detachUnreached(among: models, from: self, &events)
    isWritingRemotely = false
    events.fire()
  }

  /// Every model of the scope as a fragment: the root as a change, first, then what it holds in
  /// depth-first order, each model once, then ``unknownModels``. Cost: O(n).
  ///
  /// What was changed and is in no change set yet is in it. Call ``flush()`` before, if later change sets
  /// are to be applied where this state is.
  public func fullState() -> [SyncFragment] {
    guard let root = root?.record else { return [] }
    return root.subtreeFragments(first: .change)
  }

  /// The full state as the others are to know it: values that are held back for the sake of a minimal
  /// sync interval are not in it, since they may never be sent.
  package func sharedState() -> [SyncFragment] {
    guard let root = root?.record else { return [] }
    return root.subtreeFragments(first: .change, withHeldBack: false)
  }

  /// The scope's content in the canonical form: equal replicas give equal bytes.
  ///
  /// `{"models":{"<uuid>":{"clsName":"...","properties":{...}},...},"root":"<uuid>"}`
  public var canonicalJSON: String { fullState().canonicalJSON }
}

extension [SyncFragment] {
  /// The canonical form of a full state, whose models are all different ones.
  var canonicalJSON: String {
    var models = JSONObject()
    models.reserveCapacity(count)
    for fragment in self {
      models.append(
        newKey: fragment.uuid.wireText,
        ["clsName": .string(fragment.className), "properties": .object(fragment.properties)])
    }
    let root: JSONValue = first.map { .string($0.uuid.wireText) } ?? .null
    let content: JSONValue = .object(JSONObject([("models", .object(models)), ("root", root)]))
    return content.canonicalText
  }
}

extension ModelRecord {
  /// The model and all below it, depth first, each once: additions, but for the first if it is
  /// asked to be a change. Behind them what their unknown properties refer to.
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
    if let store = scope?.unknown { result += store.additions(reachableFrom: unknown) }
    return result
  }
}
