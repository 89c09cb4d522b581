import Foundation

/// Undoes and redoes the change sets of a scope.
///
/// ```swift
/// let history = UndoHistory(of: scope)
/// canvas.shapes.remove(shape)
/// history.undo()  // The shape is back, here and at all other replicas.
/// history.redo()
/// ```
///
/// Local changes are undone, and later changes of other replicas stay. A value gets its old value back if it still
/// has the one that the change set gave it; an inserted model is removed; a removed model returns next to its old
/// neighbours, with the values that it had; a counter loses the number that was added to it. An undo is a change
/// like any other, which is observed, stored and sent. The undo of an atomic one is atomic: if a part of it can no
/// longer be made, because its model is gone for instance, nothing is undone. A change that the server rejects can no
/// longer be undone; an undo or a redo that it rejects as a whole can be tried again.
///
/// A history that is made with the log of its scope begins with what earlier processes could undo and redo. On a server
/// it can include the change sets of all clients, by the authors that the server knows:
///
/// ```swift
/// try await server.host(board, log: log)
/// let history = try UndoHistory(of: board, log: log.reader, includingOthers: true, limit: .max)
/// while history.undo(by: "Mallory") != nil {}
/// ```
///
/// Within ``Scope/modify(_:author:_:)`` only ``Scope/revert(_:)`` may be called, and its changes are part of the change
/// set of that call.
///
/// A history belongs to the scope's isolation domain. It retains the scope.
public final class UndoHistory {
  private let scope: Scope
  private var tokens: [ObservationToken] = []
  private var stacks: UndoStacks
  private let includesOthers: Bool
  /// The models that have left, held weakly: a model that the app still holds returns as the same object.
  private var departed: [UUID: Departed] = [:]
  private var pruneAt = 1024
  /// The change set with which the scope has called this history last.
  private var latest: UUID?
  /// The change sets that were noted before the scope has called this history with them.
  private var notedEarly: Set<UUID> = []
  /// Fires when the change sets that can be undone or redone have changed.
  public let onChange = Signal<Void>()

  private struct Departed { weak var model: ModelObject? }

  /// Records the change sets that `scope` makes from now on.
  ///
  /// - Precondition: `limit` is greater than 0.
  /// - Parameters:
  ///   - scope: the scope whose change sets can be undone.
  ///   - includingOthers: true if change sets of clients can be undone, too, in a scope that a server hosts. A client
  ///     knows the inverse of its own change sets only.
  ///   - limit: the maximum number of change sets that can be undone; the oldest are dropped.
  public convenience init(of scope: Scope, includingOthers: Bool = false, limit: Int = 1000) {
    Self.check(limit)
    self.init(scope, includingOthers, UndoStacks(limit: limit))
  }

  /// Goes on with what earlier processes could undo and redo, as the log of the scope has kept it, and records the
  /// change sets that `scope` makes from now on.
  ///
  /// Make the history when the scope has the log's content and before the next change: after ``FragmentLog/restore(into:)``,
  /// after `client.fetch(scope, log:)`, or after `server.host(scope, log:)`. The log has as much as its
  /// ``LogConfiguration/history`` keeps: unless that is set, the log of a client has the change sets since its last
  /// snapshot and those that were pending in it.
  ///
  /// Reads from disk on the caller; cost: O(n) in the size of the log, of which the last 64 × `limit` records are decoded.
  /// Older ones are passed over.
  ///
  /// - Precondition: `limit` is greater than 0.
  /// - Parameters:
  ///   - scope: the scope whose change sets can be undone.
  ///   - log: the log in which the scope is recorded: that of an app, of a client, or of a server.
  ///   - includingOthers: true if change sets of clients can be undone, too, in a scope that a server hosts.
  ///   - limit: the maximum number of change sets that can be undone; the oldest are dropped.
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)`` or ``LogError/file(_:)``.
  public convenience init(
    of scope: Scope, log: LogReader, includingOthers: Bool = false, limit: Int = 1000
  ) throws(LogError) {
    Self.check(limit)
    let stacks = try log.undoStacks(of: scope, includingOthers: includingOthers, limit: limit)
    self.init(scope, includingOthers, stacks)
  }

  private init(_ scope: Scope, _ includesOthers: Bool, _ stacks: UndoStacks) {
    self.scope = scope
    self.stacks = stacks
    self.includesOthers = includesOthers
    if scope.hasCollectedChanges { scope.flush() }
    tokens.append(scope.onChanges.listen { [weak self] set in self?.hear(of: set) })
    tokens.append(
      scope.pendingChangeSets.onStateChange.listen { [weak self] in self?.note($0) })
    if includesOthers {
      tokens.append(scope.onRemoteChanges.listen { [weak self] in self?.note($0) })
    }
    scope.addMembershipObserver(self)
  }

  private static func check(_ limit: Int) {
    precondition(limit > 0, "An UndoHistory has to have room for one change set at least.")
  }

  deinit { for token in tokens { token.cancel() } }

  /// True if there are changes to undo, including those that are still being collected.
  public var canUndo: Bool {
    !stacks.done.isEmpty || scope.hasCollectedChanges
      || unheard.contains { if case .undo = $0.purpose { false } else { counts($0) } }
  }

  /// True if there are change sets to redo and no changes are being collected.
  public var canRedo: Bool { !stacks.undone.isEmpty && !scope.hasCollectedChanges }

  /// The change sets that can be undone, the oldest first.
  package var undoStack: [ChangeSet] { stacks.done.map(\.set) }

  /// The change sets that can be redone, the next one last.
  package var redoStack: [ChangeSet] { stacks.undone.map(\.set) }

  /// Undoes the last change set, of all or of one author. Changes that are still being collected become a change set
  /// first, which is then the one to be undone. Later changes of all authors stay.
  ///
  /// - Precondition: this is not called within ``Scope/modify(_:author:_:)``.
  /// - Parameter author: the author whose change set is undone: that of ``Scope/modify(_:author:_:)``, that of the log if
  ///   none was named there or, for a change of a client, the one that the server has named. Nil for the last change
  ///   set, no matter which author.
  /// - Returns: a report of the parts that no longer fit, such as a value whose model is gone or a move of a model that
  ///   another replica has moved since; nil if there was nothing to undo.
  @discardableResult
  public func undo(by author: String? = nil) -> ApplyReport? {
    settle()
    return stacks.takeDone(by: author).map { perform($0, as: .undo($0.set.id)) }
  }

  /// Redoes the change set that was undone last. A new local change removes the change sets of the same author from
  /// the redo stack, also if an observer makes it; a change without an author removes those without one, and
  /// those of the authors of the logs that record the scope.
  ///
  /// - Precondition: this is not called within ``Scope/modify(_:author:_:)``.
  /// - Parameter author: the author whose change set is redone; nil for the one that was undone last.
  /// - Returns: a report of the parts that no longer fit; nil if there was nothing to redo.
  @discardableResult
  public func redo(by author: String? = nil) -> ApplyReport? {
    settle()
    return stacks.takeUndone(by: author).map { perform($0, as: .redo($0.set.id)) }
  }

  /// Undoes any change set, of this replica or another one, and also one from a log, whatever has changed since.
  ///
  /// This is a new change, which can itself be undone.
  ///
  /// - Returns: a report of the parts that no longer fit.
  @discardableResult
  package func revert(_ set: ChangeSet) -> ApplyReport {
    scope.revert(set) { self.departed[$0]?.model }
  }

  /// Drops all change sets that could be undone or redone.
  public func clear() {
    settle()
    stacks = UndoStacks(limit: stacks.limit)
    onChange.fire(())
  }

  /// Makes a change set of the collected changes. Notes it and all others that the scope has not called this history
  /// with, if a listener of ``Scope/onChanges`` is being called.
  private func settle() {
    scope.requireNoModification("taken back to an earlier state, or forward again,")
    if scope.hasCollectedChanges { scope.flush() }
    stacks.defaultAuthors = scope.sealed.defaultAuthors.names
    for set in unheard {
      notedEarly.insert(set.id)
      note(set)
    }
  }

  /// The change sets that are made, and with which the scope has not called this history yet.
  private var unheard: [ChangeSet] {
    scope.sealed.undelivered.filter {
      $0.id != latest && !notedEarly.contains($0.id) && !$0.fragments.isEmpty
    }
  }

  private func hear(of set: ChangeSet) {
    latest = set.id
    if notedEarly.remove(set.id) == nil { note(set) }
  }

  private func perform(_ entry: UndoStacks.Entry, as purpose: ChangeSet.Purpose) -> ApplyReport {
    var report = ApplyReport()
    // An undo of another user's change names no author: it is not that user who makes it.
    let handle = try? scope.modify(author: entry.isRemote ? nil : entry.author) {
      report = revert(entry.set)
      if entry.set.isAtomic {
        if !report.isComplete { throw IncompleteChange() }
        scope.modification!.handle.changeSet.isAtomic = true
      }
      scope.modification!.handle.changeSet.purpose = purpose
    }
    guard let handle, !handle.state.isFinal || !handle.changeSet.fragments.isEmpty else {
      stacks.forgetTaken(entry.set.id)
      onChange.fire(())
      return report
    }
    handle.whenFinished { [weak self, weak handle] _ in
      // Of one that is rejected, `note(_:)` takes care.
      guard let self, let handle, !handle.isRejected else { return }
      stacks.settle(handle.changeSet.id)
    }
    return report
  }

  /// Returns true if a change set can be undone.
  private func counts(_ set: ChangeSet) -> Bool {
    // A call of a client shows a guess of what the server does; on the server, it is a client's change. Initial content is
    // where all begins.
    set.arguments == nil && !set.isInitialContent && (!set.isForClient || includesOthers)
  }

  private func note(_ set: ChangeSet) {
    guard counts(set) else { return }
    stacks.defaultAuthors = scope.sealed.defaultAuthors.names
    stacks.add(set, isRemote: set.isForClient)
    onChange.fire(())
  }

  private func note(_ changes: RemoteChanges) {
    // A change that had no effect has nothing to be undone, such as the removal of what others had removed.
    guard let set = changes.inverse.value, !set.undo.isEmpty else { return }
    stacks.add(set, isRemote: true)
    onChange.fire(())
  }

  private func note(_ handle: ChangeSetHandle) {
    guard handle.isRejected else { return }
    let rejected = handle.rejections.map(\.fragment)
    let isWhole = handle.state == .rejected
    if stacks.reject(rejected, of: handle.changeSet.id, isWhole: isWhole) { onChange.fire(()) }
  }
}

extension UndoHistory: MembershipObserver {
  package func modelEntered(_ model: ModelObject) { departed[model.uuid] = nil }

  /// Calls `body` with the models that undoing and redoing bring back, and with what they name.
  package func forEachReturning(_ body: (UUID) -> Void) { stacks.forEachName(body) }

  /// Replaces the UUID of the root in all change sets.
  package func modelRenamed(_ model: ModelObject, from old: UUID) {
    stacks.rename(RootRenaming(from: old, to: model.uuid, in: scope))
  }

  package func modelLeft(_ model: ModelObject) {
    if departed.count >= pruneAt {
      departed = departed.filter { $0.value.model != nil }
      pruneAt = max(1024, departed.count * 2)
    }
    departed[model.uuid] = Departed(model: model)
  }
}

extension Scope {
  /// Undoes a change set as a local change, and keeps later changes: a value that is no longer the one of the
  /// change set stays, and so do later additions to a counter or a collection, and what the classes of the scope do not know.
  ///
  /// - Returns: a report of the parts that no longer fit, such as a collection of a model that is gone.
  @discardableResult
  public func revert(_ set: ChangeSet) -> ApplyReport { revert(set, alsoKnown: { _ in nil }) }

  /// Undoes a change set like `revert(_:)`. Models that `alsoKnown` finds may return as the same objects.
  func revert(_ set: ChangeSet, alsoKnown: @escaping (UUID) -> ModelObject?) -> ApplyReport {
    if modification == nil, hasCollectedChanges { flush() }
    var given: [UUID: JSONObject] = [:]
    for fragment in set.fragments where fragment.kind == .change {
      for (key, value) in fragment.properties {
        given[fragment.uuid, default: [:]][key] = value
      }
    }
    let undo = set.undo
    return perform(
      undo.compactMap { fragment in
        // A model that another replica has brought back keeps its current values.
        guard fragment.kind == .change else { return model(fragment.uuid) == nil ? fragment : nil }
        guard let model = model(fragment.uuid) else { return fragment }
        var fragment = fragment
        let values = given[fragment.uuid]
        fragment.properties.removeAll { key, _ in
          guard let property = model.schema[wireName: key], let value = values?[key] else {
            return false
          }
          return !model.holds(value, in: property)
            && !value.isWritten(as: model.json(of: property))
        }
        return fragment.properties.isEmpty && fragment.operations.isEmpty ? nil : fragment
      }, of: undo, takingBack: set.fragments, alsoKnown: alsoKnown)
  }
}

extension ChangeSetHandle {
  /// True if the server has rejected the change set, or a part of it.
  fileprivate var isRejected: Bool { state == .rejected || state == .partlyRejected }
}
