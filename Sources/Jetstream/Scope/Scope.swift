import Foundation

/// A tree of models that changes, is observed, stored and synced as one.
///
/// ```swift
/// let scope = Scope(name: "Canvas", root: canvas)
/// scope.onChanges.listen(self) { me, changeSet in me.log(changeSet) }
/// ```
///
/// Every model that the root reaches belongs to the scope. Local changes are collected and come out of
/// ``onChanges`` as one ``ChangeSet``, at most once in each ``changeInterval``.
///
/// A scope and its models live in one isolation domain: the actor on which the scope is made, or the owner of the
/// manual ticker that it is given. They are not Sendable.
///
/// A local change passes through three states. It is collected: the record of its model keeps the earlier value,
/// and the ticker is asked to end the interval. It is sealed: the interval has ended, the outermost closure of
/// `modify` has returned or ``flush()`` was called, and the collected changes become a change set, to which nothing
/// is added. It is delivered: ``onChanges`` fires. The ticker seals nothing while a call of `modify` runs or while
/// changes of other replicas are being applied, so that a change set has all changes of a call; a seal that was due
/// meanwhile happens afterwards. Change sets that listeners make during a delivery are delivered after it, in
/// order.
public final class Scope: TickClient {
  /// The name of the scope, by which a server knows it, too.
  public let name: String
  /// The ticker that calls observers and decides when change sets are made.
  public let ticker: Ticker
  /// The time for which changes are collected before they become a change set.
  public var changeInterval: Duration = .milliseconds(10)
  /// True if change sets contain the values of models that leave, so that they can be undone in another process or
  /// after the models are deallocated. That costs O(n) for n models that leave; an app that removes many and never
  /// undoes can set it to false.
  public var keepsRemovedModels = true
  /// Fires with each change set made of local changes.
  public let onChanges = Signal<ChangeSet>()
  /// Fires after ``onChanges`` with the same change set and the values around its operations. Costs O(sqrt n) for a
  /// changed collection of n models while it has listeners, and nothing otherwise.
  package let onSealedChanges = Signal<SealedChanges>()
  /// Fires with each change set of another replica that the server has sent, and with each full state, once it is
  /// visible here. In a scope that a server of this process hosts, it fires with each change set of a client that
  /// the server accepts.
  ///
  /// ```swift
  /// scope.onRemoteChanges.listen(self) { me, changes in
  ///   me.show("\(changes.author ?? "The server") changed \(changes.fragments.count) models")
  /// }
  /// ```
  public let onRemoteChanges = Signal<RemoteChanges>()
  /// Fires after each call that applies fragments of another replica.
  package let onRemoteSync = Signal<[SyncFragment]>()
  /// Fires when the scope refuses something, such as a model that belongs to another scope, or a fragment that does
  /// not fit. If it has no listeners, a refused local change is printed to standard error.
  public let onError = Signal<ScopeError>()

  /// The model at the top, with its record.
  var heldRoot: ModelObject?
  /// Unowned: the root holds it, and the scope the root.
  unowned(unsafe) var rootRecord: ModelRecord?
  private var records = RecordIndex()
  private var classes: [String: ModelSchema] = [:]
  /// The class of the last model that was admitted, which is known to be in ``classes``.
  private var lastAdmitted: ModelSchema?
  var incomingPauses = 0
  /// True if the last pause has ended at a moment when the messages held back could not be applied.
  var incomingResumes = false
  /// The number of refusals so far.
  private(set) var refusals = 0
  /// Called when the last pause has ended.
  var onIncomingResumed: (() -> Void)?
  /// Called when the server's messages begin to be held back.
  var onIncomingPaused: (() -> Void)?
  /// The observers that are called when models enter and leave.
  private var membershipObservers = MembershipObservers()
  /// True while a remote value is being written; observers run with it off.
  @exclusivity(unchecked) package internal(set) var isWritingRemotely = false

  // What was collected since the last change set; see Scope+Collect.swift. A scope is used in one
  // isolation domain, and no access to these is open while other code runs.
  @exclusivity(unchecked) var entered: ContiguousArray<ModelRecord> = []
  /// The models that have left since the last change set, kept alive, since fragments of other replicas may still
  /// name them. Those that have not returned are ``hasLeft(_:)``.
  @exclusivity(unchecked) var left: ContiguousArray<ModelObject> = []
  /// The first of these by UUID, for the first `leftIndexed` models.
  private var leftByUUID: [UUID: ModelObject] = [:]
  private var leftIndexed = 0
  @exclusivity(unchecked) var changed: ContiguousArray<ModelRecord> = []
  /// The last shared state of models that can no longer be read, since the last change set: they have gone into
  /// another scope, only local properties hold them, or another replica has put them where nothing here shows them.
  @exclusivity(unchecked) var remembered: [UUID: SyncFragment] = [:]
  /// True if fragments of other replicas were applied since the last change set.
  var othersWrote = false
  /// New models that only local properties hold: other replicas learn of them when a synced property does.
  @exclusivity(unchecked) var unshared: ContiguousArray<ModelRecord> = []
  /// Models that have lost a parent, so that possibly only local properties hold them now.
  @exclusivity(unchecked) var loosened: ContiguousArray<ModelRecord> = []
  /// True if a class of the scope has a local property that holds models.
  @exclusivity(unchecked) private(set) var hasLocalReferences = false
  @exclusivity(unchecked) var isCollecting = false
  private(set) lazy var seat = TickSeat(self)
  /// The properties that change sets leave out for now.
  @exclusivity(unchecked) var throttle = SyncThrottle()
  /// The content that the classes cannot hold; nil until an unknown property or class arrives.
  var unknown: UnknownStore?
  /// Models that fragments have taken out of a property, until all fragments are applied.
  var suspects: ContiguousArray<ModelObject> = []
  /// The depth of nested calls that apply fragments.
  var applying = 0
  @exclusivity(unchecked) var sealed: [SealedChanges] = []
  /// True while a change set is being delivered.
  @exclusivity(unchecked) var isDelivering = false
  /// The change set with which ``onSealedChanges`` is firing.
  var delivering: SealedChanges?
  /// The running call of `modify`.
  @exclusivity(unchecked) var modification: Modification?
  /// Finished calls of `modify` whose change set waits until all changes of another replica are applied.
  var deferred: Modification?
  /// True if a change set was due during a call of `modify`, or while changes of other replicas were being applied.
  var isSealMissed = false
  /// The change sets that the server has not decided.
  package let pendingChangeSets = PendingChangeSets()
  /// Fires with each change set of this scope that a client has taken on and handed to its log: made by
  /// ``modify(_:author:_:)`` or collected in an interval. The handle tells what the server decides.
  ///
  /// ```swift
  /// scope.onPendingChangeSet.listen(self) { me, handle in
  ///   handle.onStateChange.listen(me) { me, state in me.mark(handle.changeSet, state) }
  /// }
  /// ```
  public var onPendingChangeSet: Signal<ChangeSetHandle> { pendingChangeSets.onAdd }
  /// The local changes that the server did not accept as they were.
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

  /// Forgets all models without calling observers.
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

  /// Returns the model with this UUID, if it is in the scope. Cost: O(1).
  public func model(_ uuid: UUID) -> ModelObject? { record(of: uuid)?.model }

  /// Returns the model with this UUID, in upper or lower case; nil for text that is no UUID. Cost: O(1).
  package func model(_ uuid: String) -> ModelObject? { UUID(uuidString: uuid).flatMap(model) }

  /// All models in the scope, in no particular order. Cost: O(n).
  public var models: [ModelObject] { allRecords.compactMap(\.model) }

  /// Returns the schema of the class with this name on the wire, if the scope knows it.
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
    for next in schema.reachable() {
      if let known = classes[next.wireName] {
        precondition(
          known === next,
          "Two classes are called \(next.wireName) on the wire in scope \(name): "
            + "\(known.modelClass) and \(next.modelClass); override wireName in one of them.")
        continue
      }
      classes[next.wireName] = next
      if next.childProperties.contains(where: { !$0.isSynced }) { hasLocalReferences = true }
    }
  }

  /// Enters a model into the index of the scope, or returns the reason why it cannot be there. Nothing else happens
  /// yet.
  func admit(_ record: ModelRecord) -> ScopeError? {
    if let other = record.scope {
      return .modelInTwoScopes(
        className: record.schema.wireName, model: record.uuid, scope: other.name, other: name)
    }
    if !records.insert(record) {
      return .duplicateUUID(className: record.schema.wireName, model: record.uuid)
    }
    if record.schema !== lastAdmitted {
      if classes[record.schema.wireName] !== record.schema { register(record.schema) }
      lastAdmitted = record.schema
    }
    record.scope = self
    return nil
  }

  /// Undoes ``admit(_:)``.
  func expel(_ record: ModelRecord) {
    records.remove(record.uuid)
    record.scope = nil
  }

  /// Collects the entry of an admitted model: it is new, unless it comes from another replica or has only been away
  /// since the last change set.
  ///
  /// - Parameter below: true for a model that enters with its parent and was not named itself by the change that
  ///   brings it.
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

  /// Returns true if only local properties, properties of the model itself or properties with local changes hold
  /// the model: so other replicas do not know it, although a change of theirs brings it into the scope.
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
      // It has left before, and the change that brought it back is being undone.
      startCollecting()
    } else if record.isNew || (isWritingRemotely && modification == nil) {
      // Other replicas may still have it in a model that has left, or where a local change hides it.
      if !record.isNew, hasCollectedChanges || !remembered.isEmpty { remember(record) }
      forget(record)
    } else if let model = record.model {
      // Within a call of `modify` also if another replica has taken it out: a rollback may restore the property in
      // which that replica still has it, and then the same object returns.
      if !record.isKeptAsLeft {
        record.isKeptAsLeft = true
        left.append(model)
      }
      startCollecting()
    }
  }

  /// True if the model has left since the last change set and has not returned.
  func hasLeft(_ record: ModelRecord) -> Bool {
    record.scope == nil && record.captureScope === self && !record.isNew
  }

  /// Returns the model with this UUID that has left since the last change set.
  func modelThatLeft(_ uuid: UUID) -> ModelObject? {
    for model in left[leftIndexed...] { leftByUUID[model.uuid] = model }
    leftIndexed = left.count
    guard let model = leftByUUID[uuid], let record = model.record, hasLeft(record) else {
      return nil
    }
    return model
  }

  /// Forgets the models that have left, and returns them to be released when nothing else is running.
  func takeLeft() -> ContiguousArray<ModelObject> {
    for model in left { model.record?.isKeptAsLeft = false }
    defer {
      left = []
      leftByUUID = [:]
      leftIndexed = 0
    }
    return left
  }

  /// Stops collecting the changes of a model.
  func forget(_ record: ModelRecord) {
    record.isNew = false
    record.captureScope = nil
    record.dropBases()
  }

  /// Gives the root another UUID, that of the server.
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

  /// True if the scope has observers of entering and leaving models.
  var hasMembershipObservers: Bool { !membershipObservers.isEmpty }

  /// Tells observers that a model of the scope is gone for other replicas.
  func tellWithdrawn(_ record: ModelRecord) {
    guard !membershipObservers.isEmpty, let model = record.model else { return }
    membershipObservers.forEach { $0.modelWithdrawn(model) }
  }

  /// Tells observers that other replicas have a model again, or get it with the next change set.
  func tellShared(_ record: ModelRecord) {
    guard !membershipObservers.isEmpty, let model = record.model else { return }
    membershipObservers.forEach { $0.modelShared(model) }
  }

  /// Calls `observer` when models enter and leave from now on. It is held weakly.
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
