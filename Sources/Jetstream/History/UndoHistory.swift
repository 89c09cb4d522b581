import Foundation

/// Undoes and redoes the local change sets of a scope.
///
/// ```swift
/// let history = UndoHistory(of: scope)
/// canvas.shapes.remove(shape)
/// history.undo()  // The shape is back, here and at all other replicas.
/// history.redo()
/// ```
///
/// Only local changes are undone; later changes of other replicas stay. A value gets its old value back if it still
/// has the one that the change set gave it; an inserted model is removed; a removed model returns next to its old
/// neighbours, with the values that it had; a counter loses the number that was added to it. An undo is a change
/// like any other, which is observed, stored and sent. A change that the server rejects can no longer be undone.
///
/// Within ``Scope/modify(_:author:_:)`` only ``Scope/revert(_:)`` may be called, and its changes are part of the change
/// set of that call.
///
/// A history belongs to the scope's isolation domain. It retains the scope.
public final class UndoHistory {
  private let scope: Scope
  private var token: ObservationToken?
  private var decisions: ObservationToken?
  private var undone: [ChangeSet] = []
  private var done: [ChangeSet] = []
  /// The purposes of change sets that have not come out of `onChanges` yet, by id; all others are edits.
  private var purposes: [UUID: Purpose] = [:]
  /// The models that have left, held weakly: a model that the app still holds returns as the same object.
  private var departed: [UUID: Departed] = [:]
  private var pruneAt = 1024
  /// The maximum number of change sets that can be undone; the oldest are dropped.
  package let limit: Int
  /// Fires when the change sets that can be undone or redone have changed.
  public let onChange = Signal<Void>()

  private struct Departed { weak var model: ModelObject? }

  private enum Purpose {
    case edit
    case undo
    case redo
  }

  /// Records the change sets that `scope` makes from now on.
  ///
  /// - Precondition: `limit` is greater than 0.
  public init(of scope: Scope, limit: Int = 1000) {
    precondition(limit > 0, "An UndoHistory has to have room for one change set at least.")
    self.scope = scope
    self.limit = limit
    if scope.hasCollectedChanges { scope.flush() }
    token = scope.onChanges.listen { [weak self] set in self?.note(set) }
    decisions = scope.pendingChangeSets.onStateChange.listen { [weak self] in self?.note($0) }
    scope.addMembershipObserver(self)
  }

  deinit {
    token?.cancel()
    decisions?.cancel()
  }

  /// True if there are changes to undo, including those that are still being collected.
  public var canUndo: Bool { !done.isEmpty || scope.hasCollectedChanges }

  /// True if there are change sets to redo and no changes are being collected.
  public var canRedo: Bool { !undone.isEmpty && !scope.hasCollectedChanges }

  /// The change sets that can be undone, the oldest first.
  package var undoStack: [ChangeSet] { done }

  /// The change sets that can be redone, the next one last.
  package var redoStack: [ChangeSet] { undone }

  /// Undoes the last change set, of all or of one author. Changes that are still being collected become a change set
  /// first, which is then the one to be undone. Later changes of all authors stay.
  ///
  /// - Precondition: this is not called within ``Scope/modify(_:author:_:)``.
  /// - Parameter author: the author of ``Scope/modify(_:author:_:)`` whose change set is undone; nil for the last one,
  ///   no matter which author.
  /// - Returns: a report of the parts that no longer fit, such as a value whose model is gone; nil if there was
  ///   nothing to undo.
  @discardableResult
  public func undo(by author: String? = nil) -> ApplyReport? {
    settle()
    guard let at = done.lastIndex(where: { author == nil || $0.author == author }) else {
      return nil
    }
    return perform(done.remove(at: at), as: .undo)
  }

  /// Redoes the change set that was undone last. A new local change removes the change sets of the same author from
  /// the redo stack, also if an observer makes it; a change without an author removes those without one.
  ///
  /// - Precondition: this is not called within ``Scope/modify(_:author:_:)``.
  /// - Parameter author: the author whose change set is redone; nil for the one that was undone last.
  /// - Returns: a report of the parts that no longer fit; nil if there was nothing to redo.
  @discardableResult
  public func redo(by author: String? = nil) -> ApplyReport? {
    settle()
    guard let at = undone.lastIndex(where: { author == nil || $0.author == author }) else {
      return nil
    }
    return perform(undone.remove(at: at), as: .redo)
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
    (done, undone) = ([], [])
    onChange.fire(())
  }

  /// Makes a change set of the collected changes.
  private func settle() {
    scope.requireNoModification("taken back to an earlier state, or forward again,")
    if scope.hasCollectedChanges { scope.flush() }
  }

  private func perform(_ set: ChangeSet, as purpose: Purpose) -> ApplyReport {
    var report = ApplyReport()
    let handle = scope.modify(author: set.author) {
      // The change set comes out later if a listener of `onChanges` makes this call.
      purposes[scope.modification!.handle.changeSet.id] = purpose
      report = revert(set)
    }
    if handle.state.isFinal, handle.changeSet.fragments.isEmpty {
      purposes[handle.changeSet.id] = nil
    }
    return report
  }

  private func note(_ set: ChangeSet) {
    switch purposes.removeValue(forKey: set.id) ?? .edit {
    case .edit:
      done.append(set)
      undone.removeAll { $0.author == set.author }
    case .undo:
      undone.append(set)
    case .redo:
      done.append(set)
    }
    if done.count > limit { done.removeFirst(done.count - limit) }
    onChange.fire(())
  }
}

extension UndoHistory {
  /// Removes the rejected fragments of a change set: the server's rejection has undone them already.
  private func note(_ handle: ChangeSetHandle) {
    guard handle.state == .rejected || handle.state == .partlyRejected else { return }
    let rejected = Set(handle.rejections.map { Rejected($0.fragment) })
    func rest(_ set: ChangeSet) -> ChangeSet? {
      guard set.id == handle.changeSet.id else { return set }
      let fragments = set.fragments.filter { !rejected.contains(Rejected($0)) }
      if fragments.isEmpty { return nil }
      return set.with(fragments, undo: set.undo.filter { !rejected.contains(Rejected($0)) })
    }
    guard (done + undone).contains(where: { $0.id == handle.changeSet.id }) else { return }
    (done, undone) = (done.compactMap(rest), undone.compactMap(rest))
    onChange.fire(())
  }

  private struct Rejected: Hashable {
    let uuid: UUID
    let kind: SyncFragment.Kind

    init(_ fragment: SyncFragment) { (uuid, kind) = (fragment.uuid, fragment.kind) }
  }
}

extension UndoHistory: MembershipObserver {
  package func modelEntered(_ model: ModelObject) { departed[model.uuid] = nil }

  /// Replaces the UUID of the root in all change sets.
  package func modelRenamed(_ model: ModelObject, from old: UUID) {
    let renaming = RootRenaming(from: old, to: model.uuid, in: scope)
    (done, undone) = (done.map { renaming($0) }, undone.map { renaming($0) })
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
  /// change set stays, and so do later additions to a counter or a collection.
  ///
  /// - Returns: a report of the parts that no longer fit, such as a collection of a model that is gone.
  @discardableResult
  public func revert(_ set: ChangeSet) -> ApplyReport { revert(set, alsoKnown: { _ in nil }) }

  /// Undoes a change set like `revert(_:)`. Models that `alsoKnown` finds may return as the same objects.
  func revert(_ set: ChangeSet, alsoKnown: @escaping (UUID) -> ModelObject?) -> ApplyReport {
    if modification == nil, hasCollectedChanges { flush() }
    var given: [UUID: JSONObject] = [:]
    for fragment in set.fragments where fragment.kind == .change {
      given[fragment.uuid] = fragment.properties
    }
    return perform(
      set.undo.compactMap { fragment in
        // A model that another replica has brought back keeps its current values.
        guard fragment.kind == .change else { return model(fragment.uuid) == nil ? fragment : nil }
        guard let model = model(fragment.uuid) else { return fragment }
        var fragment = fragment
        for (key, _) in fragment.properties {
          guard let property = model.schema[wireName: key], let value = given[fragment.uuid]?[key]
          else { continue }
          if !model.holds(value, in: property) { fragment.properties[key] = nil }
        }
        return fragment.properties.isEmpty && fragment.operations.isEmpty ? nil : fragment
      }, alsoKnown: alsoKnown)
  }
}
