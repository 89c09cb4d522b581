import Foundation

/// Takes back what this replica has done to a scope, change set by change set, and does it again.
///
/// ```swift
/// let history = UndoHistory(of: scope)
/// canvas.shapes.remove(shape)
/// history.undo()  // The shape is back, here and for everybody else.
/// history.redo()
/// ```
///
/// Only local changes count. What others have written since stays: a value is taken back where it is
/// still the one that the change has given it; a model that was inserted is removed, one that was removed
/// comes back next to its old neighbours, with the values that it had; a counter loses what was added to
/// it. Taking back is a change like any other, which is observed, stored and sent. What a server rejects is
/// not there to be taken back any more.
///
/// Within ``Scope/modify(_:author:_:)`` only ``revert(_:)`` may be called, which is part of the set then.
///
/// A history belongs to the scope's isolation domain. It retains the scope.
public final class UndoHistory {
  private let scope: Scope
  private var token: ObservationToken?
  private var decisions: ObservationToken?
  private var undone: [ChangeSet] = []
  private var done: [ChangeSet] = []
  /// What sets that are on their way are for, by their ids; others are edits.
  private var purposes: [UUID: Purpose] = [:]
  /// Models that have left: one that somebody still has comes back as the same object.
  private var departed: [UUID: Departed] = [:]
  private var pruneAt = 1024
  /// How many sets can be taken back at most; the oldest are forgotten.
  public let limit: Int
  /// Fires when ``canUndo``, ``canRedo`` or what they would do has changed.
  public let onChange = Signal<Void>()

  private struct Departed { weak var model: ModelObject? }

  private enum Purpose {
    case edit
    case undo
    case redo
  }

  /// Keeps the change sets that `scope` makes from here on.
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

  /// Whether there is anything to take back.
  public var canUndo: Bool { !done.isEmpty || scope.hasCollectedChanges }

  /// Whether there is anything to do again.
  public var canRedo: Bool { !undone.isEmpty && !scope.hasCollectedChanges }

  /// The sets that can be taken back, the oldest first.
  package var undoStack: [ChangeSet] { done }

  /// The sets that can be done again, the next one last.
  package var redoStack: [ChangeSet] { undone }

  /// Takes back the last change set that was not taken back yet. Changes that are still being collected
  /// become a set first, which is the one.
  ///
  /// - Returns: what did not fit any more, such as a value whose model is gone; nil if there was nothing
  ///   to take back.
  @discardableResult
  public func undo() -> ApplyReport? {
    settle()
    guard let last = done.popLast() else { return nil }
    return perform(last, as: .undo)
  }

  /// The same for the last change set that `author` has made; see ``Scope/modify(_:author:_:)``. What was
  /// done since, by whomever, stays.
  @discardableResult
  public func undo(by author: String) -> ApplyReport? {
    settle()
    guard let at = done.lastIndex(where: { $0.author == author }) else { return nil }
    return perform(done.remove(at: at), as: .undo)
  }

  /// Does again what was taken back last. A local change by the same author, or by nobody in particular
  /// if that one was, has put an end to that; and what an observer writes is one.
  @discardableResult
  public func redo() -> ApplyReport? {
    settle()
    guard let last = undone.popLast() else { return nil }
    return perform(last, as: .redo)
  }

  /// The same for what was taken back last of what `author` has made.
  @discardableResult
  public func redo(by author: String) -> ApplyReport? {
    settle()
    guard let at = undone.lastIndex(where: { $0.author == author }) else { return nil }
    return perform(undone.remove(at: at), as: .redo)
  }

  /// Takes back a change set of anybody's, whatever came since. It can be one of a log.
  ///
  /// This is a new change, which can itself be undone.
  @discardableResult
  public func revert(_ set: ChangeSet) -> ApplyReport {
    scope.revert(set) { self.departed[$0]?.model }
  }

  /// Forgets everything that could be taken back or done again.
  public func clear() {
    settle()
    (done, undone) = ([], [])
    onChange.fire(())
  }

  /// What is being collected becomes a set.
  private func settle() {
    scope.requireNoModification("taken back to an earlier state, or forward again,")
    if scope.hasCollectedChanges { scope.flush() }
  }

  private func perform(_ set: ChangeSet, as purpose: Purpose) -> ApplyReport {
    var report = ApplyReport()
    let handle = scope.modify(author: set.author) {
      // It comes out later if this is called by a listener of `onChanges`.
      purposes[scope.modification!.handle.set.id] = purpose
      report = revert(set)
    }
    if handle.state.isFinal, handle.set.fragments.isEmpty { purposes[handle.set.id] = nil }
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
  /// The server has decided about a set: what it has rejected is taken back already.
  private func note(_ handle: ChangeSetHandle) {
    guard handle.state == .reverted || handle.state == .partiallyReverted else { return }
    let rejected = Set(handle.rejections.map { Rejected($0.fragment) })
    func rest(_ set: ChangeSet) -> ChangeSet? {
      guard set.id == handle.set.id else { return set }
      let fragments = set.fragments.filter { !rejected.contains(Rejected($0)) }
      if fragments.isEmpty { return nil }
      return set.with(fragments, undo: set.undo.filter { !rejected.contains(Rejected($0)) })
    }
    guard (done + undone).contains(where: { $0.id == handle.set.id }) else { return }
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

  /// The sets name the root as it is called from now on.
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
  /// Takes back a change set, as a change of this replica's own, and keeps what came later: a value that
  /// is not the one of the set any more stays, and so does what was added to a counter or a collection
  /// since.
  ///
  /// - Returns: what did not fit any more, such as a collection of a model that is gone.
  @discardableResult
  public func revert(_ set: ChangeSet) -> ApplyReport { revert(set, alsoKnown: { _ in nil }) }

  /// The same with models that have left and may return as the objects that they are.
  func revert(_ set: ChangeSet, alsoKnown: @escaping (UUID) -> ModelObject?) -> ApplyReport {
    if modification == nil, hasCollectedChanges { flush() }
    var given: [UUID: JSONObject] = [:]
    for fragment in set.fragments where fragment.kind == .change {
      given[fragment.uuid] = fragment.properties
    }
    return perform(
      set.undo.compactMap { fragment in
        // A model that somebody else has brought back has values of its own.
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
