import Foundation
import Jetstream

extension ModelObject: HostedModel {
  package var classSchema: ClassSchema { schema.data }

  package func currentJSON(of property: PropertySchema) -> JSONValue {
    currentJSON(of: schema[property])
  }

  package func models(in property: PropertySchema) -> [UUID] { models(in: schema[property]) }

  package func modelCount(in collection: PropertySchema) -> Int {
    modelCount(in: schema[collection])
  }

  /// An array of models finds each of them without a look at the others.
  package func comparisons(byApplying operations: Int, to collection: PropertySchema) -> Int { 0 }

  package func places(
    of models: [UUID], in collection: PropertySchema
  ) -> [(model: UUID, place: PropertyOperation.Place)] {
    places(of: models, in: schema[collection])
  }
}

extension Scope: Hostable {
  package func makeContent() -> any HostedContent { ModelContent(self) }
}

/// A scope of the app: its models are the content, and the app may change them, too.
final class ModelContent: HostedContent {
  package weak var host: (any ContentHost)?
  // It never changes: it is a variable for the sake of `isHeldByApp` alone, and no access to it is open while other code
  // runs.
  @exclusivity(unchecked) private(set) var scope: Scope
  private lazy var digest = ScopeDigest(scope)
  private var token: ObservationToken?
  /// True while a client's change set is applied.
  private var isApplying = false

  init(_ scope: Scope) { self.scope = scope }

  package var name: String { scope.name }

  package var isHeldByApp: Bool { !isKnownUniquelyReferenced(&scope) }

  package func begin() {
    scope.sealChanges()
    scope.addMembershipObserver(self)
    token = scope.onSealedChanges.listen { [weak self] sealed in
      if !sealed.set.fragments.isEmpty { self?.host?.localChange(sealed) }
    }
  }

  package func end() {
    token?.cancel()
    scope.removeMembershipObserver(self)
  }

  package func seal() { scope.sealChanges() }

  package func sealAll() { scope.sealAllChanges() }

  package var isSealed: Bool { !scope.hasCollectedChanges }

  package func settle() -> Bool { scope.settle() }

  package var isListenedTo: Bool { scope.onRemoteChanges.hasListeners }

  package func tell(_ changes: @autoclosure () -> RemoteChanges) {
    if scope.onRemoteChanges.hasListeners { scope.onRemoteChanges.fire(changes()) }
  }

  package var root: (any HostedModel)? { scope.root }

  package func model(_ uuid: UUID) -> (any HostedModel)? { scope.model(uuid) }

  package func sharedModel(_ uuid: UUID) -> (any HostedModel)? { scope.sharedModel(uuid) }

  /// A local property of the server may still hold the model.
  package func isGone(_ model: any HostedModel) -> Bool {
    guard let model = model as? ModelObject else { return false }
    if model.scope == nil { return true }
    return model.scope === scope && scope.sharedModel(model.uuid) == nil
  }

  package func holders(of model: any HostedModel) -> [PropertyKey] {
    (model as? ModelObject)?.holders ?? []
  }

  package func subtree(of model: any HostedModel) -> [SyncFragment] {
    (model as? ModelObject)?.subtreeFragments() ?? []
  }

  package func fragment(of model: any HostedModel, _ kind: SyncFragment.Kind) -> SyncFragment {
    guard let model = model as? ModelObject else {
      preconditionFailure("The models of a scope are objects.")
    }
    return model.sharedFragment(kind)
  }

  package func forEachChild(of model: any HostedModel, _ body: (UUID) -> Void) {
    (model as? ModelObject)?.forEachSharedChild(body)
  }

  package func sharedState() -> [SyncFragment] { scope.sharedState() }

  package var hasUnique: Bool { scope.hasUnique }

  package func schema(named wireName: String) -> ClassSchema? {
    scope.schema(named: wireName)?.data
  }

  package func schema(of fragment: SyncFragment) -> ClassSchema? {
    scope.schema(of: fragment)?.data
  }

  package func apply(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)] {
    isApplying = true
    defer { isApplying = false }
    // Applying begins with this in any case; most change sets need no more, and no closure.
    if let report = scope.applyPlainValues(fragments) { return report.errors }
    return scope.apply(fragments, alsoKnown: { known($0) as? ModelObject }).errors
  }

  package func applyOwn(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)] {
    scope.perform(fragments, alsoKnown: { known($0) as? ModelObject }).errors
  }

  package var canModify: Bool { scope.canMakeAlone && !scope.isDelivering }

  package func modify(_ set: ChangeSet, _ body: (ModelObject) throws -> Void) throws {
    guard let root = scope.root else {
      throw WireError.couldNotApplySync(reason: "the scope has no root")
    }
    _ = try scope.makeAlone(set, isWhole: true) { try body(root) }
  }

  package func restore(
    _ state: [SyncFragment]
  ) throws(ScopeError) -> [(fragment: Int, error: ScopeError)] {
    guard let root = state.first else { throw .invalidState(problem: "it has no root.") }
    return try scope.applyFullState(state, rootUUID: root.uuid).errors
  }

  package var modelCount: Int { scope.count + scope.unknownModelUUIDs().count }

  package var unknownModelCount: Int { scope.unknownModelCount }

  package var hasUnknownModels: Bool { scope.hasUnknownModels }

  package func unknownModelUUIDs() -> Set<UUID> { scope.unknownModelUUIDs() }

  package func unknownModel(_ uuid: UUID) -> SyncFragment? { scope.unknownModel(uuid) }

  package func unknownModels(referredToBy value: JSONValue) -> [SyncFragment] {
    scope.unknownModels(referredToBy: value)
  }

  package func unknownValue(_ key: PropertyKey) -> JSONValue? { scope.unknownValue(key) }

  package func unknownKeys(of model: any HostedModel) -> [String] {
    (model as? ModelObject).map { scope.unknownProperties(of: $0).map(\.key) } ?? []
  }

  package func digest(budget: Int) -> StateDigest.Total? { digest.total(budget: budget) }

  package func fragments(whereNot parts: [UInt64]) -> [SyncFragment] {
    digest.fragments(whereNot: parts)
  }
}

extension ModelContent: MembershipObserver {
  /// True if a client's change set is being written. What the app takes back is the app's own.
  private var isWritingForClient: Bool { scope.isWritingRemotely && !scope.isRollingBack }

  package func modelEntered(_ model: ModelObject) {
    host?.entered(model, byClient: isWritingForClient)
  }

  package func modelLeft(_ model: ModelObject) {
    host?.left(
      model,
      Leaving(
        byClient: isWritingForClient, takesBack: scope.isRollingBack,
        wasHidden: model.isNewToOthers))
  }

  /// A model that only local properties hold from now on is found when all has been written.
  package func modelWithdrawn(_ model: ModelObject) {
    host?.left(
      model,
      Leaving(
        byClient: isWritingForClient || (isApplying && !scope.isRollingBack),
        takesBack: scope.isRollingBack))
  }

  package func modelShared(_ model: ModelObject) { modelEntered(model) }

  /// A session that does not know yet that a model has left may put it elsewhere, with what it names.
  package func forEachReturning(_ body: (UUID) -> Void) {
    host?.forEachDeparted { model in (model as? ModelObject)?.forEachName(body) }
  }
}
