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
  public var name: String { tree.name }
  /// The ticker that calls observers and decides when change sets are made.
  public var ticker: Ticker { tree.ticker }
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
  /// Fires when all change sets that were made are delivered, also if the collected changes have made none.
  let onDelivery = Signal<Void>()
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
  /// Fires when the scope refuses something, such as a model that belongs to another scope, or a fragment that does
  /// not fit. If it has no listeners, a refused local change is printed to standard error.
  public let onError = Signal<ScopeError>()

  /// The models of the scope.
  let tree: ModelTree
  /// Holds back the server's messages.
  var incoming = IncomingGate()
  /// The values of counters beneath what a client has left pending in a log without a state. The scope shows them with what
  /// was added, which would count once more when the log is used again.
  var countersBeneathPending: [PropertyKey: PropertyContent] = [:]
  // What was collected since the last change set; see Scope+Collect.swift. A scope is used in one
  // isolation domain, and no access to these is open while other code runs.
  @exclusivity(unchecked) var interval = Interval()
  @exclusivity(unchecked) var schedule = SealSchedule()
  /// The content that the classes cannot hold; nil until an unknown property or class arrives.
  var unknown: UnknownStore?
  @exclusivity(unchecked) var sealed = SealedQueue()
  /// The running call of `modify`.
  @exclusivity(unchecked) var modification: Modification? {
    didSet { tree.isInTransaction = modification != nil }
  }
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
    tree = ModelTree(name: name, ticker: ticker)
    tree.keeper = self
    for model in models { tree.register(ModelSchema.of(model)) }
    if let root { setRoot(root, isInitial: true) }
  }

  deinit {
    let undecided = sealed.handles + [schedule.deferred?.handle].compactMap(\.self)
    dissolve()
    tree.keeper = nil
    // Last, since the app's listeners must not reach a scope that is being released.
    for handle in undecided {
      handle.finish(.abandoned, .abandoned(reason: "its scope is gone"))
    }
  }

  /// Forgets all models without calling observers.
  func dissolve() {
    if let deferred = schedule.deferred { forgetDeparted(deferred) }
    tree.dissolve { forget($0) }
    for model in interval.departed.takeModels() {
      if let record = model.record, record.captureTree === tree { forget(record) }
    }
    interval.departed.states = [:]
    unknown = nil
  }

  /// The number of models in the scope.
  public var count: Int { tree.count }

  /// Returns the model with this UUID, if it is in the scope. Cost: O(1).
  public func model(_ uuid: UUID) -> ModelObject? { tree.record(of: uuid)?.model }

  /// Returns the model with this UUID, in upper or lower case; nil for text that is no UUID. Cost: O(1).
  package func model(_ uuid: String) -> ModelObject? { UUID(uuidString: uuid).flatMap(model) }

  /// All models in the scope, in no particular order. Cost: O(n).
  public var models: [ModelObject] { tree.models }

  /// Returns the schema of the class with this name on the wire, if the scope knows it.
  package func schema(named wireName: String) -> ModelSchema? { tree.schema(named: wireName) }

  /// True while a remote value is being written; observers run with it off.
  package var isWritingRemotely: Bool { tree.isWritingRemotely }

  /// Calls `observer` when models enter and leave from now on. It is held weakly.
  package func addMembershipObserver(_ observer: any MembershipObserver) {
    tree.observers.add(observer)
  }

  package func removeMembershipObserver(_ observer: any MembershipObserver) {
    tree.observers.remove(observer)
  }

  func refuse(_ error: ScopeError) {
    modification?.refusals += 1
    if let modification, modification.refusal == nil { modification.refusal = error }
    if onError.hasListeners {
      onError.fire(error)
    } else {
      try? FileHandle.standardError.write(contentsOf: Data("Jetstream: \(error)\n".utf8))
    }
  }
}
