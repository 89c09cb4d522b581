import Foundation

/// Grouping changes into one change set.
extension Scope {
  /// Makes one change set of the changes that `body` makes.
  ///
  /// ```swift
  /// let handle = scope.modify("tidy up", author: "Ada") {
  ///   canvas.shapes.removeAll { $0.isEmpty }
  ///   canvas.title = "Clean"
  /// }
  /// ```
  ///
  /// Earlier changes that are in no change set yet become a change set of their own first. The new change set comes
  /// out of ``onChanges`` before this call returns or, if a listener of ``onChanges`` makes the call, after the one
  /// that is being delivered. Coalesced observers wait for the tick. Properties with a minimal sync interval are
  /// not held back.
  ///
  /// If `body` throws, the call is rolled back: every property of every model of the scope, `.local` ones included,
  /// has its earlier value again, and the tree has the same instances as before. Immediate observers see the
  /// changes and the rollback; values that they write during the rollback stay. Models that were not in the scope
  /// keep the values that `body` gave them before it attached them. A model that `body` moved into another scope
  /// stays there; ``onError`` fires, and its removal from this scope is collected as a change.
  ///
  /// A call within `body` joins this one: there is one change set, and both calls return the same handle. If the
  /// inner body throws, its changes are rolled back, also those of models that had left the scope in the outer
  /// call, and the outer call may continue. Joining costs O(n) in the models changed so far.
  ///
  /// In an immediate observer of another replica's changes, the change set waits until all of these are applied: it
  /// comes with the next tick, together with everything else changed until then.
  ///
  /// - Parameters:
  ///   - message: the purpose of the changes; see ``ChangeSet/message``.
  ///   - author: the author of the changes; see ``ChangeSet/author``.
  ///   - body: makes the changes.
  /// - Returns: the handle of the change set, which is empty if nothing has changed.
  /// - Throws: the error that `body` throws.
  @discardableResult
  public func modify<Failure>(
    _ message: String? = nil, author: String? = nil, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    try modify(ChangeSet(fragments: [], undo: [], author: author, message: message), body)
  }

  /// Makes one change set that the server must accept or reject as a whole: if it rejects one fragment, it rejects
  /// all. Otherwise like ``modify(_:author:_:)``.
  @discardableResult
  public func modifyAtomically<Failure>(
    _ message: String? = nil, author: String? = nil, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    try modify(
      ChangeSet(fragments: [], undo: [], author: author, message: message, isAtomic: true), body)
  }

  /// Makes one change set for a procedure of the server, which accepts or rejects it as a whole. Otherwise like
  /// ``modify(_:author:_:)``.
  ///
  /// - Parameters:
  ///   - procedure: the name of the procedure, such as `Cart.checkOut`.
  ///   - constraints: the known requirements of the procedure. If a fragment meets none of them, the changes are
  ///     rolled back and nothing is sent. Without constraints, the server alone decides.
  ///   - message: the purpose of the changes; see ``ChangeSet/message``.
  ///   - author: the author of the changes; see ``ChangeSet/author``.
  ///   - body: makes the changes.
  /// - Returns: the handle of the change set, which is empty if nothing has changed.
  /// - Precondition: this is not called within `modify`, nor in an observer that is told at once of what others did: what a
  ///   procedure does has to be a change set of its own.
  /// - Throws: ``ChangeSetError/constraintsNotMet(procedure:fragments:)``, or the error that `body` throws.
  @discardableResult
  public func modify(
    procedure: String, constraints: [Constraint] = [], message: String? = nil,
    author: String? = nil, _ body: () throws -> Void
  ) throws -> ChangeSetHandle {
    let set = ChangeSet(
      fragments: [], undo: [], author: author, message: message, isAtomic: true,
      procedure: procedure)
    let made = try makeAlone(set, constraints, body)
    if let error = made.error { throw error }
    return made.handle
  }

  /// Makes a change set that joins no other one, nor is joined with what observers do.
  ///
  /// - Parameter isWhole: true if all is taken back when the scope refuses a change, such as a model with the UUID of another.
  /// - Returns: its handle, and the error that it does not meet the constraints.
  package func makeAlone(
    _ set: ChangeSet, _ constraints: [Constraint] = [], isWhole: Bool = false,
    _ body: () throws -> Void
  ) throws -> (handle: ChangeSetHandle, error: ChangeSetError?) {
    precondition(
      canMakeAlone,
      "A procedure was asked for in the middle of other changes of scope \(name).")
    let modification = begin(set)
    do {
      try body()
      if isWhole, let refusal = modification.refusal { throw refusal }
    } catch {
      rollBack(modification)
      throw error
    }
    let error = finish(modification, constraints)
    return (modification.handle, error)
  }

  /// True unless a call of `modify` is running, or what others have changed is being applied.
  package var canMakeAlone: Bool { modification == nil && !schedule.isApplying }

  private func modify<Failure>(
    _ set: ChangeSet, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    if let modification, !modification.isOver {
      try join(body)
      modification.join(set)
      return modification.handle
    }
    if schedule.isApplying { return try modifyLater(set, body) }
    let modification = begin(set)
    do { try body() } catch {
      rollBack(modification)
      throw error
    }
    _ = finish(modification, [])
    return modification.handle
  }

  /// Performs a call that is made while changes of other replicas are being applied.
  private func modifyLater<Failure>(
    _ set: ChangeSet, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    let (before, outer) = (schedule.deferred, modification)
    let made = before ?? Modification(set)
    modification = made
    defer { modification = outer }
    do { try join(body) } catch {
      if before == nil {
        forgetDeparted(made)
        made.handle.finish(.rejected, .rolledBack)
      }
      throw error
    }
    if before != nil { made.join(set) }
    schedule.deferred = made
    let retried = made.retried
    made.retried = []
    made.withdraw(retried, from: conflicts)
    startCollecting()
    return made.handle
  }

  private func begin(_ set: ChangeSet) -> Modification {
    // Listeners of the earlier change sets may make changes, which become earlier change sets as well.
    var rounds = 0
    repeat {
      seal(includingHeldBack: true)
      tickDidDeliver()
      rounds += 1
    } while hasCollectedChanges && rounds < 16
    let made = Modification(set)
    modification = made
    return made
  }

  /// Makes the change set and delivers it. If it does not meet the constraints, rolls everything back and returns
  /// the error.
  private func finish(
    _ modification: Modification, _ constraints: [Constraint]
  ) -> ChangeSetError? {
    let handle = modification.handle
    let labels = handle.changeSet
    let way = constraints.isEmpty ? nil : WayBack(of: self)
    var collected = collect(
      includingHeldBack: true, withValues: !constraints.isEmpty, for: handle)
    // The server has to be told of a call, whether or not anything has changed here.
    if collected == nil, labels.arguments != nil {
      collected = SealedChanges(set: labels, outcomes: [:], handle: handle)
    }
    if let way, let set = collected?.whole, let procedure = set.procedure {
      let fragments = set.fragments(notMeeting: constraints)
      if !fragments.isEmpty {
        handle.changeSet = labels
        let error = ChangeSetError.constraintsNotMet(procedure: procedure, fragments: fragments)
        way.prepare(self)
        rollBack(modification, to: way.values, error)
        return error
      }
    }
    end(modification)
    schedule.endInterval()
    if let collected {
      // First, since listeners of the ledger may make change sets that come behind it.
      sealed.append(collected)
      if sealed.isDelivering {
        // It is delivered when this call has ended. A log is told of the conflicts behind that.
        modification.withdraw(modification.retried, from: conflicts)
        collected.withdrawn = modification.withdrawn
      }
      collected.gone = []
    } else {
      handle.finish(.accepted, nil)
    }
    tickDidDeliver()
    // A log has the change set by now: a crash in between brings a conflict back, but loses none.
    conflicts.discard(Set(modification.retried))
    return nil
  }

  /// Releases everything that was kept for a rollback.
  func end(_ modification: Modification) {
    self.modification = nil
    forgetDeparted(modification)
    guard !schedule.isApplying else { return }
    // These checks were postponed when fragments were applied within the call, and when a nested call threw and the
    // models that it had taken out were held again.
    findUnshared()
    if interval.othersWrote { findShared() }
  }

  func forgetDeparted(_ modification: Modification) {
    for model in modification.departed {
      if let record = model.record, record.tree == nil, record.captureTree === tree {
        forget(record)
      }
    }
  }

  func requireNoModification(_ what: String) {
    precondition(
      modification == nil, "Scope \(name) was \(what) within modify, which could not take it back.")
  }
}
