import Foundation

/// Changes that belong together.
extension Scope {
  /// Makes one change set of what `body` changes, whatever was changed before.
  ///
  /// ```swift
  /// let handle = scope.modify("tidy up", author: "Ada") {
  ///   canvas.shapes.removeAll { $0.isEmpty }
  ///   canvas.title = "Clean"
  /// }
  /// ```
  ///
  /// What was collected before becomes a set of its own first. The set comes out of ``onChanges`` before
  /// this returns, or behind the one that is being delivered, for a listener that calls this; coalesced
  /// observers wait for the tick. Properties with a minimal sync interval do not wait for it.
  ///
  /// If `body` throws, every property of every model of the scope is again what it was before, `.local`
  /// ones included, and so is the tree: the same instances. Observers that are told at once see the way
  /// there and back; what they write themselves on the way back stays. Models that were not in the scope
  /// keep the values that `body` has given them before it attached them. What `body` has moved into another
  /// scope stays there; ``onError`` tells, and that it is gone from here is collected.
  ///
  /// Within `body`, another call joins this one: there is one set, and both get the same handle. If the
  /// other one's body throws, what it has changed is taken back, also of models that had left the scope in
  /// this one, and this one may go on. Joining costs O(n) in the models that were changed so far.
  ///
  /// In an observer that is told at once of what others did, the set has to wait until all of that is
  /// there: it comes with the next tick, with whatever else was changed until then.
  ///
  /// - Parameters:
  ///   - message: what the changes are made for; see ``ChangeSet/message``.
  ///   - author: who makes them; see ``ChangeSet/author``.
  ///   - body: makes the changes.
  /// - Returns: what becomes of the set. Its set is empty if nothing has changed.
  /// - Throws: what `body` throws.
  @discardableResult
  public func modify<Failure>(
    _ message: String? = nil, author: String? = nil, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    try modify(ChangeSet(fragments: [], undo: [], author: author, message: message), body)
  }

  /// The same for changes of which a server has to take all or nothing: if it rejects one fragment, it
  /// rejects the set.
  @discardableResult
  public func modifyAtomically<Failure>(
    _ message: String? = nil, author: String? = nil, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    try modify(
      ChangeSet(fragments: [], undo: [], author: author, message: message, isAtomic: true), body)
  }

  /// The same for changes that are handed to a procedure of the server, which takes all or nothing.
  ///
  /// - Parameters:
  ///   - procedure: its name, such as `Cart.checkOut`.
  ///   - constraints: what the procedure is known to ask of each fragment. If one fragment meets none of
  ///     them, the changes are taken back and nothing is sent. Without any, the server decides alone.
  ///   - message: what the changes are made for; see ``ChangeSet/message``.
  ///   - author: who makes them; see ``ChangeSet/author``.
  ///   - body: makes the changes.
  /// - Throws: ``ChangeSetError/constraintsNotMet(procedure:fragments:)``; ``ChangeSetError/procedureWithin(procedure:)`` where the
  ///   changes could not be a set of their own; or what `body` throws.
  @discardableResult
  public func modify(
    procedure: String, constraints: [Constraint] = [], message: String? = nil,
    author: String? = nil, _ body: () throws -> Void
  ) throws -> ChangeSetHandle {
    if modification != nil || applying > 0 { throw ChangeSetError.procedureWithin(procedure: procedure) }
    let modification = begin(
      ChangeSet(
        fragments: [], undo: [], author: author, message: message, isAtomic: true,
        procedure: procedure))
    do { try body() } catch {
      rollBack(modification)
      throw error
    }
    if let error = finish(modification, constraints) { throw error }
    return modification.handle
  }

  private func modify<Failure>(
    _ set: ChangeSet, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    if let modification, !modification.isOver {
      try join(body)
      modification.join(set)
      return modification.handle
    }
    if applying > 0 { return try modifyLater(set, body) }
    let modification = begin(set)
    do { try body() } catch {
      rollBack(modification)
      throw error
    }
    _ = finish(modification, [])
    return modification.handle
  }

  /// Changes that are made while others' changes are being applied.
  private func modifyLater<Failure>(
    _ set: ChangeSet, _ body: () throws(Failure) -> Void
  ) throws(Failure) -> ChangeSetHandle {
    let (before, outer) = (deferred, modification)
    let made = before ?? Modification(set)
    modification = made
    defer { modification = outer }
    do { try join(body) } catch {
      if before == nil {
        forgetDeparted(made)
        made.handle.finish(.reverted, .rolledBack)
      }
      throw error
    }
    if before != nil { made.join(set) }
    deferred = made
    startCollecting()
    return made.handle
  }

  private func begin(_ set: ChangeSet) -> Modification {
    // Who listens to the sets that come before may change something, which comes before as well.
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

  /// Makes the set and delivers it. An error means that it does not meet the constraints, and that
  /// everything is as it was.
  private func finish(
    _ modification: Modification, _ constraints: [Constraint]
  ) -> ChangeSetError? {
    let handle = modification.handle
    let labels = handle.set
    let way = constraints.isEmpty ? nil : WayBack(of: self)
    let collected = collect(
      includingHeldBack: true, withValues: !constraints.isEmpty, for: handle)
    if let way, let set = collected?.whole, let procedure = set.procedure {
      let fragments = set.fragments(notMeeting: constraints)
      if !fragments.isEmpty {
        handle.set = labels
        let error = ChangeSetError.constraintsNotMet(procedure: procedure, fragments: fragments)
        way.prepare(self)
        rollBack(modification, to: way.values, error)
        return error
      }
    }
    end(modification)
    (isCollecting, isSealMissed) = (false, false)
    if let collected { sealed.append(collected) } else { handle.finish(.completed, nil) }
    tickDidDeliver()
    conflicts.discard(Set(modification.retried))
    return nil
  }

  /// What was kept for the sake of rolling back is let go.
  func end(_ modification: Modification) {
    self.modification = nil
    forgetDeparted(modification)
    guard applying == 0 else { return }
    // Left for now by what was applied within the call, and by a call that has thrown: the models that it has
    // taken out are held again.
    findUnshared()
    if othersWrote { findShared() }
  }

  func forgetDeparted(_ modification: Modification) {
    for model in modification.departed {
      if let record = model.record, record.scope == nil, record.captureScope === self {
        forget(record)
      }
    }
  }

  func requireNoModification(_ what: String) {
    precondition(
      modification == nil, "Scope \(name) was \(what) within modify, which could not take it back.")
  }
}
