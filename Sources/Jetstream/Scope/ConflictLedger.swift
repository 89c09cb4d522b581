import Foundation

/// What was changed in a scope and does not count, until somebody has looked at it.
///
/// ```swift
/// scope.conflicts.onAdd.listen(self) { me, conflict in me.show(conflict) }
/// // … and when the user has decided:
/// scope.retry([conflict])  // or scope.conflicts.discard(conflict.id)
/// ```
///
/// What a server rejects is taken back: by then the scope shows what counts, and the ledger has what was
/// meant. So it is with a value that was accepted, and that somebody has overwritten who had not seen it. A
/// conflict is there until it is retried or discarded, or until the property is written anew in
/// this replica, which settles it.
///
/// One mistake is one conflict: what the server has rejected only because of it is among its
/// ``Conflict/consequences``, is retried and discarded with it, and becomes a conflict of its own if something
/// else settles the mistake.
///
/// Of a scope that is synced with a ``ClientLog`` the ledger outlives the process: the next one has what was
/// neither retried, discarded nor settled, and ``onAdd`` fires for it while the log is read. Otherwise it is
/// in memory only. Belongs to the isolation domain of its scope.
public final class ConflictLedger {
  /// Fires for each conflict that has come, when what counts is visible.
  public let onAdd = Signal<Conflict>()
  /// Fires for each conflict that has gone.
  public let onRemove = Signal<Conflict>()

  /// Fires for those that the app has let go of.
  let onDiscard = Signal<[Conflict]>()

  /// The conflicts in the order in which they came.
  public private(set) var items: [Conflict] = []
  /// How many there are at most: of more than that, the oldest go.
  public var capacity = 10_000 {
    didSet { dropOldest() }
  }

  /// Whether there is none.
  package var isEmpty: Bool { items.isEmpty }

  /// The conflicts about one model, or with consequences about it. Cost: O(n).
  package func items(of model: ModelObject) -> [Conflict] {
    items.filter { $0.parts.contains { $0.model == model.uuid } }
  }

  /// Lets go of a conflict and its consequences, or of one consequence: what counts is right. Does nothing if
  /// there is no such conflict. Cost: O(n).
  public func discard(_ id: Conflict.ID) {
    discard(Set(items.first { $0.id == id }?.parts.map(\.id) ?? [id]))
  }

  /// Lets go of all.
  package func discardAll() { discard(Set(items.flatMap(\.parts).map(\.id))) }

  /// Lets go of conflicts and consequences, but not of the consequences of these.
  func discard(_ ids: Set<Conflict.ID>) {
    let gone = items.flatMap(\.parts).filter { ids.contains($0.id) }
    if gone.isEmpty { return }
    let change = take { ids.contains($0.id) }
    onDiscard.fire(gone)
    tell(change)
  }

  /// The app has let go of these in another process.
  func remove(_ names: Set<ConflictName>) { remove { names.contains(ConflictName($0)) } }

  /// Takes over conflicts of a process before this one, as far as they are not here.
  func restore(_ conflicts: [Conflict]) {
    if conflicts.isEmpty { return }
    let known = Set(items.map(ConflictName.init))
    add(conflicts.filter { !known.contains(ConflictName($0)) })
  }

  func add(_ conflicts: [Conflict]) {
    if conflicts.isEmpty { return }
    items += conflicts
    dropOldest()
    for conflict in conflicts { onAdd.fire(conflict) }
  }

  /// A set was made here: what it writes is settled.
  func settle(by set: ChangeSet) {
    if items.isEmpty { return }
    let content = WrittenContent(of: set)
    remove { content.contains($0.property, of: $0.model) }
  }

  /// The root has got another UUID.
  func rename(_ renaming: RootRenaming) { items = items.map { $0.renaming(renaming) } }

  private func dropOldest() {
    let excess = items.count - max(0, capacity)
    if excess <= 0 { return }
    let gone = items.prefix(excess)
    items.removeFirst(excess)
    for item in gone { onRemove.fire(item) }
  }

  private func remove(where isOver: (Conflict) -> Bool) { tell(take(where: isOver)) }

  private func tell(_ change: (gone: [Conflict], new: [Conflict])) {
    for item in change.gone { onRemove.fire(item) }
    for item in change.new { onAdd.fire(item) }
  }

  /// Takes conflicts and consequences out of the ledger.
  ///
  /// - Returns: the conflicts that have gone, and the consequences of these that are conflicts of their own
  ///   from now on.
  private func take(where isOver: (Conflict) -> Bool) -> (gone: [Conflict], new: [Conflict]) {
    var (kept, gone, new): ([Conflict], [Conflict], [Conflict]) = ([], [], [])
    var isChanged = false
    for var item in items {
      if !item.consequences.isEmpty {
        let rest = item.consequences.filter { !isOver($0) }
        isChanged = isChanged || rest.count < item.consequences.count
        guard !isOver(item) else {
          gone.append(item)
          new += rest
          kept += rest
          continue
        }
        item.consequences = rest
        kept.append(item)
      } else if isOver(item) {
        gone.append(item)
      } else {
        kept.append(item)
      }
    }
    if isChanged || !gone.isEmpty { items = kept }
    return (gone, new)
  }
}

/// What a change set writes.
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

  /// Whether it writes a property; or adds the model, if none is named.
  func contains(_ property: String?, of model: UUID) -> Bool {
    guard let property else { return additions.contains(model) }
    return properties.contains(PropertyKey(uuid: model, name: property))
  }
}

extension Scope {
  /// Does again what did not count, as one change set of now: values are written whatever is there, and
  /// operations are done to what is there. Models that were added in vain and that the changes name are
  /// added with them. What is done is in the ledger no more, nor is what it settles.
  ///
  /// The consequences of a conflict are done again with it. What cannot be done, because the model is gone for
  /// instance, stays in the ledger.
  ///
  /// - Returns: what becomes of the set; its set is empty if nothing could be done.
  @discardableResult
  public func retry(
    _ conflicts: [Conflict], message: String? = nil, author: String? = nil
  ) -> ChangeSetHandle {
    let conflicts = conflicts.flatMap(\.parts)
    let known = self.conflicts.items.flatMap(\.parts)
    let additions = Dictionary(
      known.filter { $0.property == nil }.map { ($0.model, $0) }, uniquingKeysWith: { $1 })
    var needed: [UUID: Conflict] = [:]
    var changes: [Conflict] = []
    var open: [SyncFragment] = []
    for conflict in conflicts {
      if conflict.property == nil {
        needed[conflict.model] = conflict
      } else {
        changes.append(conflict)
      }
      open.append(conflict.fragment)
    }
    while let fragment = open.popLast() {
      forEachModel(namedBy: fragment) { uuid in
        guard model(uuid) == nil, needed[uuid] == nil, let addition = additions[uuid] else {
          return
        }
        needed[uuid] = addition
        open.append(addition.fragment)
      }
    }
    // Additions come first, in the order in which they were made.
    let order = known.filter { needed[$0.model]?.id == $0.id }
    let all = (order.isEmpty ? Array(needed.values) : order) + changes
    var failed: Set<Int> = []
    let handle = modify(message, author: author) {
      failed = Set(perform(all.map(\.fragment)).errors.map(\.fragment))
    }
    let done = all.indices.filter { !failed.contains($0) }.map { all[$0].id }
    // Another call of `modify` around this one may take it all back.
    if let modification, applying == 0 {
      modification.retried += done
    } else {
      // A log has the set by now: a crash in between brings back a conflict, and loses none.
      self.conflicts.discard(Set(done))
    }
    return handle
  }
}
