import Jetstream

/// The scopes that a server opens when sessions fetch them, and closes when they are idle, by name.
///
/// A scope is in one of these states:
///
/// - Closed: it is not in the table. The first fetch has it opened.
/// - Queued: as many scopes are open as may be. It is opened once one that is idle was closed for it.
/// - Opening: the owner asks the app for the scope and reads its history. All fetches that come meanwhile wait for the same
///   opening. One that has waited for too long is refused; once none waits any more, the owner is told to give up, and a
///   fetch that comes before it has done so gets another opening.
/// - Open: fetches are answered at once. It is idle while no session with a connection has it, and everything that it was
///   told is durable.
/// - Closing: sessions no longer have it, and its log is written and closed. A fetch waits, and has it opened again.
///
/// It does no I/O: each input leaves steps for the engine, in order.
package struct OpenScopes {
  /// The bounds of the table.
  package struct Limits {
    /// The largest number of scopes that are opening, open or closing.
    package var count = 1_000
    /// The time after which an idle scope is closed.
    package var idleTime: Duration = .seconds(60)
    /// The time after which a fetch that waits is refused.
    package var openingTime: Duration = .seconds(30)

    package init(
      count: Int = 1_000, idleTime: Duration = .seconds(60), openingTime: Duration = .seconds(30)
    ) {
      (self.count, self.idleTime, self.openingTime) = (count, idleTime, openingTime)
    }
  }

  private enum State {
    case queued
    case opening(isGivenUp: Bool)
    case open(any Hostable)
    case closing
  }

  private struct Entry {
    var state: State
    var waiters: [Waiter] = []
    /// The first schema that those who wait have brought; nil if none has.
    var schema: JSONValue?
    /// The time of the last fetch.
    var usedAt: Duration
    /// The time at which the scope was found idle; nil if it was used since, and while it is not open.
    var idleSince: Duration?
  }

  let limits: Limits
  private var entries: [String: Entry] = [:]
  /// The names of the queued scopes, the oldest first.
  private var queue: [String] = []
  /// The idle scopes that the last search has found, and that were not closed since; the last of them is idle for the
  /// longest time.
  private var candidates: [String] = []
  /// The time of the last search for idle scopes. A search takes time in proportion to the scopes that are open, so there
  /// is at most one every 100 ms.
  private var searchedAt: Duration = .milliseconds(-100)
  /// The number of scopes that are closing.
  private var closing = 0
  private var steps: [ServerEngine.ScopeStep] = []

  init(limits: Limits) { self.limits = limits }

  /// The number of scopes that are opening, open or closing.
  var count: Int { entries.count - queue.count }

  /// The scopes that are open.
  var open: [(name: String, scope: any Hostable)] {
    entries.compactMap { name, entry in
      if case .open(let scope) = entry.state { (name, scope) } else { nil }
    }
  }

  /// Returns the scope of a name, if it is open.
  func scope(named name: String) -> (any Hostable)? {
    if case .open(let scope)? = entries[name]?.state { scope } else { nil }
  }

  /// Returns true if no fetch that waits for a scope has brought a schema.
  func takesSchema(for name: String) -> Bool { entries[name]?.schema == nil }

  /// Removes and returns what there is to do.
  mutating func takeSteps() -> [ServerEngine.ScopeStep] {
    defer { steps = [] }
    return steps
  }

  // MARK: Inputs

  /// Takes a fetch.
  ///
  /// - Parameter isInUse: returns true if an open scope must stay open.
  mutating func fetch(
    _ fetch: ScopeFetch, by session: ServerSession, now: Duration,
    isInUse: (any Hostable) -> Bool
  ) -> Answer {
    let name = fetch.name
    guard let state = entries[name]?.state else {
      return admit(fetch, by: session, now: now, isInUse: isInUse)
    }
    entries[name]?.usedAt = now
    entries[name]?.idleSince = nil
    if case .open(let scope) = state { return .open(scope) }
    let waiter = waiter(fetch, by: session, now: now)
    // In place: a copy of those who wait already would cost each fetch as much as there are.
    entries[name]?.waiters.append(waiter)
    if let schema = fetch.schema, entries[name]?.schema == nil { entries[name]?.schema = schema }
    return .waits
  }

  /// Takes the first fetch of a scope that is closed.
  private mutating func admit(
    _ fetch: ScopeFetch, by session: ServerSession, now: Duration,
    isInUse: (any Hostable) -> Bool
  ) -> Answer {
    let name = fetch.name
    let waiter = waiter(fetch, by: session, now: now)
    var entry = Entry(
      state: .queued, waiters: [waiter], schema: fetch.schema, usedAt: now)
    if count < limits.count {
      begin(&entry, name)
    } else {
      guard makeRoom(now: now, isInUse: isInUse) else { return .full }
      queue.append(name)
    }
    entries[name] = entry
    return .waits
  }

  private func waiter(_ fetch: ScopeFetch, by session: ServerSession, now: Duration) -> Waiter {
    Waiter(fetch, by: session, until: now + limits.openingTime)
  }

  /// Takes the scope that was opened.
  ///
  /// - Returns: the fetches that are answered now.
  mutating func opened(_ name: String, _ scope: any Hostable) -> [Waiter] {
    guard var entry = entries[name], case .opening = entry.state else { return [] }
    entry.state = .open(scope)
    let waiters = entry.waiters
    (entry.waiters, entry.schema) = ([], nil)
    entries[name] = entry
    return waiters
  }

  /// Takes the end of an opening that has failed.
  ///
  /// - Parameter wantsSchema: true if only the schema of a client was missing. Fetches with a schema get another opening.
  /// - Returns: the fetches that are refused now.
  mutating func failed(_ name: String, wantsSchema: Bool = false) -> [Waiter] {
    guard var entry = entries[name], case .opening(let isGivenUp) = entry.state else { return [] }
    // Fetches that came after it was given up have nothing to do with its end.
    let refused = entry.waiters.filter { !isGivenUp && !(wantsSchema && $0.bringsSchema) }
    entry.waiters.removeAll { !isGivenUp && !(wantsSchema && $0.bringsSchema) }
    if entry.waiters.isEmpty {
      entries[name] = nil
      openNext()
    } else {
      begin(&entry, name)
      entries[name] = entry
    }
    return refused
  }

  /// Takes the end of a closing.
  ///
  /// - Returns: the fetches that are refused now, since all open scopes are in use.
  mutating func closed(
    _ name: String, now: Duration, isInUse: (any Hostable) -> Bool
  ) -> [Waiter] {
    guard case .closing? = entries[name]?.state else { return [] }
    closing -= 1
    if entries[name]?.waiters.isEmpty == true {
      entries[name] = nil
    } else {
      entries[name]?.state = .queued
      queue.append(name)
    }
    openNext()
    // The room may have been meant for another scope.
    var refused: [Waiter] = []
    while queue.count > closing, !makeRoom(now: now, isInUse: isInUse) {
      refused += entries.removeValue(forKey: queue.removeLast())?.waiters ?? []
    }
    return refused
  }

  /// Closes a scope although it may be in use. Returns false if it is not open.
  mutating func close(_ name: String) -> Bool {
    guard case .open(let scope)? = entries[name]?.state else { return false }
    close(name, scope)
    return true
  }

  /// Takes away the fetches for which a scope would be opened that is not being opened yet. Those of an opening that is under
  /// way, and that was not given up, wait on.
  ///
  /// - Returns: the fetches that are refused now.
  mutating func withdraw(_ name: String) -> [Waiter] {
    guard let entry = entries[name] else { return [] }
    switch entry.state {
    case .queued:
      entries[name] = nil
      queue.removeAll { $0 == name }
    case .closing, .opening(isGivenUp: true):
      entries[name]?.waiters = []
      entries[name]?.schema = nil
    case .open, .opening: return []
    }
    return entry.waiters
  }

  /// Does what is due at a time.
  ///
  /// - Parameter isShortOfMemory: true to close a scope after ten seconds of idleness, in which a client that has lost its
  ///   connection comes back.
  /// - Returns: the fetches that have waited for too long.
  mutating func advance(
    to now: Duration, isShortOfMemory: Bool, isInUse: (any Hostable) -> Bool
  ) -> [Waiter] {
    let idleTime = isShortOfMemory ? min(limits.idleTime, .seconds(10)) : limits.idleTime
    var due: [String] = []
    for (name, entry) in entries {
      switch entry.state {
      case .open(let scope):
        if isInUse(scope) {
          if entry.idleSince != nil { entries[name]?.idleSince = nil }
        } else if let since = entry.idleSince {
          if now - since >= idleTime { due.append(name) }
        } else {
          entries[name]?.idleSince = now
        }
      case .queued, .opening, .closing: if !entry.waiters.isEmpty { due.append(name) }
      }
    }
    return due.sorted().flatMap { close($0) ? [] : dropWaiters(of: $0, at: now) }
  }

  /// Removes the fetches of a scope whose sessions have ended, and those that have waited for too long, which are returned.
  private mutating func dropWaiters(of name: String, at now: Duration) -> [Waiter] {
    guard var entry = entries[name] else { return [] }
    var late: [Waiter] = []
    entry.waiters.removeAll { waiter in
      if waiter.session.link.hasEnded { return true }
      if waiter.deadline > now { return false }
      late.append(waiter)
      return true
    }
    defer { entries[name] = entry }
    // Those who come next have another one, or none.
    if !entry.waiters.contains(where: \.bringsSchema) { entry.schema = nil }
    guard entry.waiters.isEmpty else { return late }
    if case .opening(isGivenUp: false) = entry.state {
      entry.state = .opening(isGivenUp: true)
      steps.append(.giveUp(name: name))
    }
    return late
  }

  // MARK: Room

  private mutating func begin(_ entry: inout Entry, _ name: String) {
    entry.state = .opening(isGivenUp: false)
    steps.append(.open(name: name, schema: entry.schema))
  }

  private mutating func close(_ name: String, _ scope: any Hostable) {
    entries[name]?.state = .closing
    entries[name]?.idleSince = nil
    closing += 1
    steps.append(.close(name: name, scope))
  }

  /// Opens queued scopes for which there is room.
  private mutating func openNext() {
    while count < limits.count, let name = queue.first {
      queue.removeFirst()
      guard var entry = entries[name] else { continue }
      if entry.waiters.isEmpty {
        entries[name] = nil
      } else {
        begin(&entry, name)
        entries[name] = entry
      }
    }
  }

  /// Closes the scope that is idle for the longest time. A scope that is used in this turn stays open.
  private mutating func makeRoom(now: Duration, isInUse: (any Hostable) -> Bool) -> Bool {
    while true {
      if candidates.isEmpty {
        guard now - searchedAt >= .milliseconds(100) else { return false }
        searchedAt = now
        findCandidates(isInUse: isInUse)
        if candidates.isEmpty { return false }
      }
      while let name = candidates.popLast() {
        // One that was used after the search is not idle, or only since then.
        guard let entry = entries[name], case .open(let scope) = entry.state,
          let since = entry.idleSince, since <= searchedAt, !isInUse(scope)
        else { continue }
        close(name, scope)
        return true
      }
    }
  }

  /// Searches for idle scopes. Those that were in use when they were last looked at are idle for the shortest time.
  private mutating func findCandidates(isInUse: (any Hostable) -> Bool) {
    var found: [(since: Duration, usedAt: Duration, name: String)] = []
    for (name, scope) in open {
      guard let entry = entries[name], entry.usedAt < searchedAt, !isInUse(scope) else { continue }
      let since = entry.idleSince ?? searchedAt
      entries[name]?.idleSince = since
      found.append((since, entry.usedAt, name))
    }
    candidates = found.sorted(by: >).map(\.name)
  }

  /// Describes what must not be the case between two inputs, a line for each; empty if all is well.
  func checkInvariants() -> [String] {
    var problems: [String] = []
    if count > limits.count { problems.append("\(count) scopes are open of \(limits.count)") }
    let queued = entries.filter { if case .queued = $0.value.state { true } else { false } }
    if Set(queued.keys) != Set(queue) || queue.count != queued.count {
      problems.append("\(queue) wait for room, not \(queued.keys.sorted())")
    }
    let closing = entries.values.count { if case .closing = $0.state { true } else { false } }
    if closing != self.closing { problems.append("\(closing) scopes close, not \(self.closing)") }
    if queue.count > closing {
      problems.append("\(queue.count) scopes wait for the room of \(closing)")
    }
    for (name, entry) in entries {
      if case .open = entry.state, !entry.waiters.isEmpty {
        problems.append("fetches of \(name) wait although it is open")
      }
    }
    if !steps.isEmpty { problems.append("\(steps.count) steps were not taken") }
    return problems
  }
}
