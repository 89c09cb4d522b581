import Foundation

/// A tree of models that changes, is observed, stored and synced as one.
///
/// ```swift
/// let scope = Scope(name: "Canvas", root: canvas)
/// scope.onChanges.listen(self) { me, changeSet in me.log(changeSet) }
/// ```
///
/// Everything that the root reaches belongs to the scope. What happens to it is collected and comes
/// out of ``onChanges`` as one ``ChangeSet`` at most once in each ``changeInterval``.
///
/// A scope and its models live in one isolation domain: the actor on which the scope is made, or
/// whoever drives the manual ticker that it is given. They are not Sendable.
public final class Scope: TickClient {
  /// What the scope is called, towards a server above all.
  public let name: String
  /// Delivers to observers and decides when change sets are made.
  public let ticker: Ticker
  /// How long changes are collected before they become a change set.
  public var changeInterval: Duration = .milliseconds(10)
  /// Whether change sets carry the values of models that leave, so that they can be taken back in another
  /// process or after the models are gone. That costs O(n) for n models that leave; an app that removes
  /// much and never takes anything back can do without.
  public var keepsRemovedModels = true
  /// Fires with each change set that was made of local changes.
  public let onChanges = Signal<ChangeSet>()
  /// Fires behind ``onChanges`` with the same change set and the values around it. Costs O(sqrt n) for a
  /// changed collection of n models while somebody listens, and nothing otherwise.
  package let onSealedChanges = Signal<SealedChanges>()
  /// Fires with each change set of others, and with each whole state, that a server has sent or a server of this process
  /// has accepted, once it is visible here: who has changed what, when and why.
  ///
  /// ```swift
  /// scope.onRemoteChanges.listen(self) { me, changes in
  ///   me.show("\(changes.author ?? "somebody") changed \(changes.fragments.count) models")
  /// }
  /// ```
  public let onRemoteChanges = Signal<RemoteChanges>()
  /// Fires after remote fragments were applied, once for each call.
  package let onRemoteSync = Signal<[SyncFragment]>()
  /// Fires when something was refused: a model that belongs to another scope, a fragment that does
  /// not fit. Where nobody listens, a refused local change is printed to standard error.
  public let onError = Signal<ScopeError>()

  /// The model at the top, with its record.
  var heldRoot: ModelObject?
  /// Unowned: the root holds it, and the scope the root.
  unowned(unsafe) var rootRecord: ModelRecord?
  private var records = RecordIndex()
  private var classes: [String: ModelSchema] = [:]
  /// The class of the model that came last, which is known to be in ``classes``.
  private var lastAdmitted: ModelSchema?
  var incomingPauses = 0
  /// Whether the last pause has ended while a change set was being delivered.
  var incomingResumes = false
  /// How often something was refused.
  private(set) var refusals = 0
  /// Called when the last pause has ended.
  var onIncomingResumed: (() -> Void)?
  /// Called when what a server sends begins to wait.
  var onIncomingPaused: (() -> Void)?
  /// Who is told when models come and go.
  private var membershipObservers = MembershipObservers()
  /// True while a remote value is being written; observers run with it off.
  @exclusivity(unchecked) package internal(set) var isWritingRemotely = false

  // What was collected since the last change set; see Scope+Collect.swift. A scope is used in one
  // isolation domain, and no access to these is open while other code runs.
  @exclusivity(unchecked) var entered: ContiguousArray<ModelRecord> = []
  /// Models that have left; those of them that have not come back are ``hasLeft(_:)``.
  /// Kept alive, since fragments of others may still name them.
  @exclusivity(unchecked) var left: ContiguousArray<ModelObject> = []
  /// The first of them by UUID, for as many as were looked at when one was last looked up.
  private var leftByUUID: [UUID: ModelObject] = [:]
  private var leftIndexed = 0
  @exclusivity(unchecked) var changed: ContiguousArray<ModelRecord> = []
  /// What the others know of models that cannot be asked, since the last change set: they have gone into
  /// another scope, only local properties hold them, or others have put them where nothing here shows
  /// them.
  @exclusivity(unchecked) var remembered: [UUID: SyncFragment] = [:]
  /// Whether fragments of others were applied since the last change set.
  var othersWrote = false
  /// New models that only local properties hold: others learn of them when a synced one does.
  @exclusivity(unchecked) var unshared: ContiguousArray<ModelRecord> = []
  /// Models that have lost a parent and may be such models since, although others know them.
  @exclusivity(unchecked) var loosened: ContiguousArray<ModelRecord> = []
  /// Whether there can be such models.
  @exclusivity(unchecked) private(set) var hasLocalReferences = false
  @exclusivity(unchecked) var isCollecting = false
  private(set) lazy var seat = TickSeat(self)
  /// Properties that change sets leave out for now.
  @exclusivity(unchecked) var throttle = SyncThrottle()
  /// What the classes cannot hold; nil as long as nothing unknown has come.
  var unknown: UnknownStore?
  /// Models that fragments have taken out of a property, while not all fragments are applied yet.
  var suspects: ContiguousArray<ModelObject> = []
  /// How many calls that apply fragments are under way, one within the other.
  var applying = 0
  @exclusivity(unchecked) var sealed: [SealedChanges] = []
  /// Whether a change set is being delivered.
  @exclusivity(unchecked) var isDelivering = false
  /// What ``onSealedChanges`` is being fired with.
  var delivering: SealedChanges?
  /// The call of `modify` that is under way.
  @exclusivity(unchecked) var modification: Modification?
  /// Calls of `modify` that are over, but whose set has to wait until all that others did is applied.
  var deferred: Modification?
  /// Whether changes should have become a set during a call of `modify`, or while others' changes were
  /// being applied.
  var isSealMissed = false
  /// The change sets that a server has not decided.
  package let pendingChangeSets = PendingChangeSets()
  /// What was changed here and does not count, because a server has decided otherwise.
  public let conflicts = ConflictLedger()

  /// Makes a scope and attaches `root` with all that it holds.
  ///
  /// - Parameters:
  ///   - name: what the scope is called, also on a server.
  ///   - root: the model at the top.
  ///   - models: classes that can occur in the scope besides those that property types lead to from
  ///     the root, such as subclasses of a property's class.
  ///   - isolation: the caller's actor, on which the scope lives. A caller that is on no actor does not compile: it
  ///     passes a ticker instead.
  public convenience init(
    name: String, root: ModelObject? = nil, models: [ModelObject.Type] = [],
    isolation: isolated (any Actor) = #isolation
  ) {
    self.init(name: name, root: root, models: models, ticker: Ticker.on(isolation))
  }

  /// Makes a scope that lives where its ticker ticks: for tests, simulations and code that owns its loop.
  ///
  /// ```swift
  /// let ticker = Ticker.manual()
  /// let scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
  /// canvas.title = "New"
  /// ticker.tick()  // Observers run here.
  /// ```
  public init(
    name: String, root: ModelObject? = nil, models: [ModelObject.Type] = [], ticker: Ticker
  ) {
    self.name = name
    self.ticker = ticker
    for model in models { register(ModelSchema.of(model)) }
    if let root { setRoot(root, isInitial: true) }
  }

  deinit {
    for handle in sealed.map(\.handle) + [deferred?.handle] {
      handle?.finish(.abandoned, .abandoned(reason: "its scope is gone"))
    }
    dissolve()
  }

  /// Forgets all models without telling anybody.
  func dissolve() {
    let all = records
    records = RecordIndex()
    rootRecord = nil
    all.forEach { record in
      record.scope = nil
      record.keepTicker(ticker)
      record.scopedParents = 0
      forget(record)
    }
    for model in left {
      guard let record = model.record else { continue }
      record.isKeptAsLeft = false
      if record.captureScope === self { forget(record) }
    }
    remembered = [:]
    unknown = nil
  }

  /// The number of models in the scope.
  public var count: Int { records.count }

  /// The model with this UUID, if it is in the scope. Cost: O(1).
  public func model(_ uuid: UUID) -> ModelObject? { record(of: uuid)?.model }

  /// The model with this UUID, in upper or lower case; nil for text that is no UUID. Cost: O(1).
  package func model(_ uuid: String) -> ModelObject? { UUID(uuidString: uuid).flatMap(model) }

  /// All models in the scope, in no particular order. Cost: O(n).
  public var models: [ModelObject] { allRecords.compactMap(\.model) }

  /// The schema of the class that is called `wireName` in this scope.
  package func schema(named wireName: String) -> ModelSchema? { classes[wireName] }

  /// The schemas of all classes that were registered, in no particular order.
  var knownSchemas: some Collection<ModelSchema> { classes.values }

  // MARK: Membership

  func record(of uuid: UUID) -> ModelRecord? { records.record(of: uuid) }

  private var allRecords: ContiguousArray<ModelRecord> {
    var result: ContiguousArray<ModelRecord> = []
    result.reserveCapacity(records.count)
    records.forEach { result.append($0) }
    return result
  }

  /// Calls `body` with the record of each model in the scope, in no particular order.
  func forEachRecord(_ body: (ModelRecord) -> Void) { records.forEach(body) }

  func isRoot(_ record: ModelRecord) -> Bool { record === rootRecord }

  func register(_ schema: ModelSchema) {
    var open = [schema]
    while let next = open.popLast() {
      if let known = classes[next.wireName] {
        precondition(
          known === next,
          "Two classes are called \(next.wireName) on the wire in scope \(name): "
            + "\(known.modelClass) and \(next.modelClass); override wireName in one of them.")
        continue
      }
      classes[next.wireName] = next
      if next.childProperties.contains(where: { !$0.isSynced }) { hasLocalReferences = true }
      for property in next.properties {
        if let child = property.access.targetClass, child != ModelObject.self {
          open.append(ModelSchema.of(child))
        }
      }
    }
  }

  /// Notes that a model is in the scope, or tells why it cannot be. Nothing else happens yet.
  func admit(_ record: ModelRecord) -> ScopeError? {
    if let other = record.scope {
      return .modelInTwoScopes(className: record.schema.wireName, model: record.uuid, scope: other.name, other: name)
    }
    if !records.insert(record) { return .duplicateUUID(className: record.schema.wireName, model: record.uuid) }
    if record.schema !== lastAdmitted {
      if classes[record.schema.wireName] !== record.schema { register(record.schema) }
      lastAdmitted = record.schema
    }
    record.scope = self
    return nil
  }

  /// Takes back ``admit(_:)``.
  func expel(_ record: ModelRecord) {
    records.remove(record.uuid)
    record.scope = nil
  }

  /// Collects what admitting a model means: it is new, unless it comes from the others or has only
  /// been away since the last change set.
  /// What is `below` a model that comes as well was not named by whoever brings that one.
  func enter(_ record: ModelRecord, below: Bool = false) {
    if !membershipObservers.isEmpty, let model = record.model {
      membershipObservers.forEach { $0.modelEntered(model) }
    }
    if record.captureScope === self {
      // It has only been away; what holds it now may be local.
      if !record.isNew { loosen(record) }
    } else {
      record.captureScope?.giveAway(record)
      record.dropBases()
      record.captureScope = self
      // The scope that it has left keeps it, but from here on this one may have to as well.
      record.isKeptAsLeft = false
      record.isNew = !isWritingRemotely || (below && applying > 0 && isLocalAddition(record))
      if record.isNew {
        entered.append(record)
        startCollecting()
      }
    }
    record.enteredScope(of: ticker)
    if record.observers != nil || unknown != nil { unknownEnters(record) }
  }

  /// Whether the model stands only in properties that are local, or its own, or that were changed here and
  /// not told yet: so others do not know it, although what they did brings it into the scope.
  private func isLocalAddition(_ record: ModelRecord) -> Bool {
    record.parents.all.allSatisfy {
      $0.parent === record || $0.parent.captureScope !== self || $0.parent.isNew || !$0.isSynced
        || $0.parent.isChanged($0.index)
    }
  }

  func leave(_ record: ModelRecord) {
    records.remove(record.uuid)
    record.scope = nil
    record.keepTicker(ticker)
    if !membershipObservers.isEmpty, let model = record.model {
      membershipObservers.forEach { $0.modelLeft(model) }
    }
    record.scopedParents = 0
    if let unknown { unknownLeaves(record, from: unknown) }
    if record.isNew, let modification, let model = record.model {
      modification.departed.append(model)
    } else if modification != nil, record.isKeptAsLeft {
      // It has left before, and what brought it back is taken back.
      startCollecting()
    } else if record.isNew || (isWritingRemotely && modification == nil) {
      // Others may still have it in what has left, or where a change that waits hides it.
      if !record.isNew, hasCollectedChanges || !remembered.isEmpty { remember(record) }
      forget(record)
    } else if let model = record.model {
      // Within a call also if others have taken it out: they may have it in what the call has, and then it
      // comes back if that does, as it was.
      if !record.isKeptAsLeft {
        record.isKeptAsLeft = true
        left.append(model)
      }
      startCollecting()
    }
  }

  /// Whether the model has left since the last change set and is not back.
  func hasLeft(_ record: ModelRecord) -> Bool {
    record.scope == nil && record.captureScope === self && !record.isNew
  }

  /// The model with this UUID among those that have left since the last change set.
  func modelThatLeft(_ uuid: UUID) -> ModelObject? {
    for model in left[leftIndexed...] { leftByUUID[model.uuid] = model }
    leftIndexed = left.count
    guard let model = leftByUUID[uuid], let record = model.record, hasLeft(record) else {
      return nil
    }
    return model
  }

  /// Forgets what has left, and gives it to be released when nothing is under way.
  func takeLeft() -> ContiguousArray<ModelObject> {
    for model in left { model.record?.isKeptAsLeft = false }
    defer {
      left = []
      leftByUUID = [:]
      leftIndexed = 0
    }
    return left
  }

  /// Collects changes of the model no longer.
  func forget(_ record: ModelRecord) {
    record.isNew = false
    record.captureScope = nil
    record.dropBases()
  }

  /// Gives the root another UUID, the server's.
  func renameRoot(to uuid: UUID) {
    guard let record = rootRecord, record.uuid != uuid else { return }
    let old = record.uuid
    records.remove(old)
    record.uuidIfMade = uuid
    _ = records.insert(record)
    let renaming = RootRenaming(from: old, to: uuid, in: self)
    remembered = remembered.mapValues { renaming($0) }
    conflicts.rename(renaming)
    renameWeakReferences(renaming)
    if let root { membershipObservers.forEach { $0.modelRenamed(root, from: old) } }
  }

  /// Whether anybody is told about models that come and go.
  var hasMembershipObservers: Bool { !membershipObservers.isEmpty }

  /// Others do not have a model any more that goes on being in the scope.
  func tellWithdrawn(_ record: ModelRecord) {
    guard !membershipObservers.isEmpty, let model = record.model else { return }
    membershipObservers.forEach { $0.modelWithdrawn(model) }
  }

  /// Others have a model again, or are told of it with the next change set.
  func tellShared(_ record: ModelRecord) {
    guard !membershipObservers.isEmpty, let model = record.model else { return }
    membershipObservers.forEach { $0.modelShared(model) }
  }

  /// Tells `observer` about models that come and go from here on. It is held weakly.
  package func addMembershipObserver(_ observer: any MembershipObserver) {
    membershipObservers.add(observer)
  }

  package func removeMembershipObserver(_ observer: any MembershipObserver) {
    membershipObservers.remove(observer)
  }

  func refuse(_ error: ScopeError) {
    refusals += 1
    if onError.hasListeners {
      onError.fire(error)
    } else {
      try? FileHandle.standardError.write(contentsOf: Data("Jetstream: \(error)\n".utf8))
    }
  }
}
