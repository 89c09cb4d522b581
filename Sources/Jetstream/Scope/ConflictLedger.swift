import Foundation
import Observation

/// The local changes of a scope that the server did not accept as they were, until the app has handled them.
///
/// ```swift
/// scope.conflicts.onAdd.listen(self) { me, conflict in me.show(conflict) }
/// // … and when the user has decided:
/// scope.retry([conflict])  // or scope.conflicts.discard(conflict.id)
/// ```
///
/// A rejected change is undone in the scope: by then the scope shows the values that count, and the ledger has the
/// local change. The same is true for an accepted value that another replica has overwritten without having seen
/// it. A conflict stays in the ledger until the app retries or discards it, or until this replica writes the
/// property again, which settles it. The ledger has room for 10,000 conflicts: beyond that, the oldest leave it, and
/// ``onRemove`` fires for them.
///
/// When the syncing of a scope ends, because the server has the scope no longer or denies a session, its pending changes are
/// conflicts, too. These are not undone: the scope goes on showing the local values. They are for a retry once the
/// scope is fetched again, and ``Scope/retry(_:message:author:)`` leaves them in the ledger before. If the scope is fetched
/// with its log, they are pending again, and leave the ledger.
///
/// One mistake is one conflict: a change that the server rejected only because of another one is among the
/// ``Conflict/consequences`` of that one. It is retried and discarded together with that conflict, and becomes a
/// conflict of its own if that one is settled in another way.
///
/// For a scope that is synced with a ``FragmentLog`` the ledger is durable: the next process has all conflicts that
/// were neither retried, discarded nor settled, and ``onAdd`` fires for them while the log is read. Otherwise the
/// ledger is in memory only. SwiftUI and `withObservationTracking` follow ``items``. The ledger belongs to the isolation
/// domain of its scope.
public final class ConflictLedger: Observable {
  /// Fires for each new conflict, after the value that counts has become visible.
  public let onAdd = Signal<Conflict>()
  /// Fires for each conflict that leaves the ledger.
  public let onRemove = Signal<Conflict>()

  /// Fires with the conflicts and consequences that the app has retried or discarded.
  let onDiscard = Signal<[Conflict]>()

  /// The conflicts, oldest first.
  public var items: [Conflict] {
    registrar.access(self, keyPath: \.items)
    return table.items
  }

  private var table = ConflictTable()
  /// The conflicts and consequences whose changes the scope goes on showing, since its syncing has ended.
  private var shown: Set<Conflict.ID> = []
  private let registrar = ObservationRegistrar()

  /// The maximum number of conflicts. Beyond it, the oldest are dropped.
  package var capacity = 10_000 {
    didSet { dropOldest() }
  }

  /// True if the ledger has no conflicts.
  package var isEmpty: Bool { items.isEmpty }

  /// Returns the conflicts about a model, and those with consequences about it. Cost: O(n).
  package func items(of model: ModelObject) -> [Conflict] {
    items.filter { $0.parts.contains { $0.model == model.uuid } }
  }

  /// Discards a conflict with its consequences, or a single consequence: the app agrees with the value that counts.
  /// Does nothing if there is no such conflict.
  public func discard(_ id: Conflict.ID) {
    if let conflict = table[id] { discard(Set(conflict.parts.map(\.id))) }
  }

  /// Discards conflicts and consequences by id. Consequences of a discarded conflict stay unless they are named,
  /// too.
  func discard(_ ids: Set<Conflict.ID>) {
    let gone = table.parts(ids)
    if gone.isEmpty { return }
    let change = take(ids)
    onDiscard.fire(gone)
    tell(change)
  }

  /// Removes conflicts and consequences whose changes were made again, before a log may know that.
  ///
  /// - Returns: those that were removed, for ``noteDiscarded(_:)``.
  func withdraw(_ ids: Set<Conflict.ID>) -> [Conflict] {
    let gone = table.parts(ids)
    if !gone.isEmpty { tell(take(ids)) }
    return gone
  }

  /// Tells logs of conflicts that were withdrawn.
  func noteDiscarded(_ conflicts: [Conflict]) {
    if !conflicts.isEmpty { onDiscard.fire(conflicts) }
  }

  /// Removes the conflicts that the app has discarded in an earlier process.
  func remove(_ names: Set<ConflictName>) {
    remove(Set(names.flatMap { table.ids(named: $0) }))
  }

  /// Adds the conflicts of an earlier process, or of an earlier attempt to sync the scope, except those that the ledger
  /// already has.
  func restore(_ conflicts: [Conflict]) {
    if conflicts.isEmpty { return }
    add(conflicts.filter { !table.contains(ConflictName($0)) })
  }

  /// Adds the pending changes of a scope whose syncing has ended: it goes on showing them.
  func addShown(_ conflicts: [Conflict]) {
    for part in conflicts.lazy.flatMap(\.parts) {
      shown.insert(part.id)
      // Those that the ledger has already, from an earlier attempt to sync the scope, have other identities.
      shown.formUnion(table.ids(named: ConflictName(part)))
    }
    restore(conflicts)
  }

  /// Notes that the server's state has replaced the content of the scope.
  func noteState() { shown = [] }

  /// Returns a conflict or a consequence as it is in the ledger; nil if it has left it.
  func entry(_ id: Conflict.ID) -> Conflict? { table[id] }

  /// Returns true if the scope shows the change of a conflict, so that it cannot be made again.
  func isShown(_ conflict: Conflict) -> Bool { shown.contains(conflict.id) }

  func add(_ conflicts: [Conflict]) {
    if conflicts.isEmpty { return }
    change { $0.append(conflicts) }
    dropOldest()
    tell(of: conflicts)
  }

  /// Fires ``onAdd`` for new conflicts, except those that are gone again: a listener may retry or discard several at
  /// once.
  private func tell(of new: [Conflict]) {
    for item in new where table.contains(item.id) { onAdd.fire(item) }
  }

  /// Removes the conflicts about properties that a new local change set writes. Costs nothing for the others.
  func settle(by set: ChangeSet) {
    // A call shows a guess of its outcome, which settles nothing.
    if set.arguments != nil || table.items.isEmpty { return }
    remove(table.ids(writtenBy: set))
  }

  /// Replaces the UUID of the root in all conflicts.
  func rename(_ renaming: RootRenaming) {
    if !table.items.isEmpty { change { $0.rename(renaming) } }
  }

  private func dropOldest() {
    let excess = table.items.count - max(0, capacity)
    if excess <= 0 { return }
    for item in change({ $0.removeFirst(excess) }) { onRemove.fire(item) }
  }

  private func remove(_ ids: Set<Conflict.ID>) {
    if !ids.isEmpty { tell(take(ids)) }
  }

  private func tell(_ change: (gone: [Conflict], new: [Conflict])) {
    for item in change.gone { onRemove.fire(item) }
    tell(of: change.new)
  }

  /// Takes conflicts and consequences out of the ledger.
  ///
  /// - Returns: the conflicts that were removed, and those of their consequences that are now conflicts of their
  ///   own.
  private func take(_ ids: Set<Conflict.ID>) -> (gone: [Conflict], new: [Conflict]) {
    change { $0.remove(ids) }
  }

  private func change<Result>(_ body: (inout ConflictTable) -> Result) -> Result {
    registrar.willSet(self, keyPath: \.items)
    defer { registrar.didSet(self, keyPath: \.items) }
    return body(&table)
  }
}

/// The properties and the added models of a change set.
struct WrittenContent {
  private(set) var properties: Set<PropertyKey> = []
  private var additions: Set<UUID> = []

  init(of set: ChangeSet) {
    for fragment in set.fragments {
      if fragment.kind == .add { additions.insert(fragment.uuid) }
      for (key, _) in fragment.properties {
        properties.insert(PropertyKey(uuid: fragment.uuid, name: key))
      }
      for entry in fragment.operations {
        properties.insert(PropertyKey(uuid: fragment.uuid, name: entry.key))
      }
    }
  }

  /// True if the change set writes the property, or adds the model if `property` is nil.
  func contains(_ property: String?, of model: UUID) -> Bool {
    guard let property else { return additions.contains(model) }
    return properties.contains(PropertyKey(uuid: model, name: property))
  }
}

extension Scope {
  /// Makes the local changes of these conflicts again, as one new change set. Values are written whatever the
  /// current value is, and operations are applied to the current value. Models whose addition was rejected and that
  /// the changes name are added with them. Retried conflicts leave the ledger, and so do conflicts that the new
  /// change set settles. The changes of an atomic change set are made again all or not at all, and then the new change
  /// set is atomic.
  ///
  /// The consequences of a conflict are retried with it, and so are the other half of a move between two properties and the
  /// rest of an atomic change set. A
  /// change that cannot be made, because its model is gone for instance, stays in the ledger, and so does a move into a
  /// model that is gone, or of a model that another replica has moved. A change of a model that only local properties hold
  /// is made, and sent once a synced property holds that model.
  ///
  /// While no client syncs the scope, nothing is made again, since nothing of it would be sent: all conflicts stay in the
  /// ledger. Those of changes that were pending when the syncing ended stay there until the next fetch has brought the
  /// server's state: the scope shows the local values before, so operations would count twice, and values would be no
  /// change.
  ///
  /// - Parameters:
  ///   - conflicts: conflicts of this scope. They are retried as the ledger has them, however old these copies are: those that
  ///     have left it are not made again, and neither are consequences that were settled or discarded alone.
  ///   - message: the ``ChangeSet/message`` of the new change set.
  ///   - author: the ``ChangeSet/author`` of the new change set.
  /// - Returns: the handle of the new change set, which is empty if no change could be made.
  @discardableResult
  public func retry(
    _ conflicts: [Conflict], message: String? = nil, author: String? = nil
  ) -> ChangeSetHandle {
    // Those that an enclosing call of `modify` has retried stay in the ledger until it ends.
    let retried = Set(modification?.retried ?? [])
    func isPossible(_ conflict: Conflict) -> Bool {
      incoming.hasReplicas && !retried.contains(conflict.id) && !self.conflicts.isShown(conflict)
    }
    let known = self.conflicts.items.flatMap(\.parts).filter(isPossible)
    let current = conflicts.compactMap { self.conflicts.entry($0.id) }
    let conflicts = completing(current.flatMap(\.parts).filter(isPossible), from: known)
    var needed: [UUID: Conflict] = [:]
    for conflict in conflicts where conflict.property == nil { needed[conflict.model] = conflict }
    let changes = conflicts.filter { $0.property != nil }
    // Additions come first, in the order in which they were made.
    let all = known.filter { needed[$0.model]?.id == $0.id } + changes
    return modify(message, author: author) {
      let made = makeAgain(all)
      if made.contains(where: \.isAtomic) { modification?.handle.changeSet.isAtomic = true }
      // The conflicts leave the ledger when the outermost call ends, unless that is rolled back.
      modification?.retried += made.map(\.id)
    }
  }
}
