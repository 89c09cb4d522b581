import Foundation
import Jetstream

/// Scopes that are opened when sessions fetch them, and closed when they are idle; see ``OpenScopes``.
extension ServerEngine {
  /// The opening or closing of a scope.
  package enum ScopeStep {
    /// Open a scope, and report the outcome with ``ServerEngine/opened(_:_:now:)``. The schema is one that a client has
    /// brought; nil if none has.
    case open(name: String, schema: JSONValue?)
    /// Give up opening a scope. The outcome is reported all the same.
    case giveUp(name: String)
    /// Write the log of a scope and close it, then report that with ``ServerEngine/closed(_:now:)``. No session has the
    /// scope any more.
    case close(name: String, any Hostable)
  }

  /// The number of scopes that are opening, open or closing.
  package var openScopeCount: Int { openScopes.count }

  /// Answers a fetch of a scope that is opened on demand: at once if it is open, otherwise once it is.
  func open(_ fetch: ScopeFetch, for session: ServerSession) {
    var fetch = fetch
    let scope = openScopes.scope(named: fetch.name)
    // An open scope has its schema, and a client that may only read must not choose one.
    if scope != nil || isReader(session, of: fetch.name) { fetch.schema = nil }
    let table = session.subscriptions
    // A client could have scopes opened for nothing. Those that it waits for already are opened anyway.
    guard table.openingCount < configuration.keptLimit.messages,
      table.isOpening(fetch.name) || hasRoom(for: fetch.name, scope, of: session)
    else {
      return refuse(fetch, of: session, reached(.scopesPerSession))
    }
    do throws(WireError) {
      _ = try ScopePlace(fetch.name)
    } catch {
      return refuse(fetch, of: session, error)
    }
    // Clients of version 1 do not ask again.
    if isShortOfMemory, session.version > 1, scope == nil {
      return refuse(fetch, of: session, reached(.residentBytes))
    }
    // The runtime keeps the types that a schema names for good: only one with which the scope may be opened is read.
    if let schema = fetch.schema, openScopes.takesSchema(for: fetch.name) {
      do {
        _ = try ScopeSchema(ofClient: schema)
      } catch {
        return refuse(fetch, of: session, .rejected("The schema is not valid: \(error)"))
      }
    }
    let answer = openScopes.fetch(fetch, by: session, now: now, isInUse: isInUse)
    switch answer {
    case .open(let scope): grant(scope, to: session, fetch)
    case .waits: session.subscriptions.beginOpening(fetch.name)
    case .full: refuse(fetch, of: session, .tooManyOpenScopes)
    }
    takeSteps()
  }

  /// Takes the outcome of ``ScopeStep/open(name:schema:)``: the scope, which is hosted by now, or the error for those who
  /// have fetched it.
  package func opened(
    _ name: String, _ outcome: Result<any Hostable, WireError>, now: Duration
  ) {
    self.now = now
    isHandling = true
    switch outcome {
    case .success(let scope):
      for waiter in openScopes.opened(name, scope) {
        answer(waiter) { grant(scope, to: $0, waiter.fetch) }
      }
    case .failure(let error):
      for waiter in openScopes.failed(name, wantsSchema: error == .schemaWanted) {
        answer(waiter) { session in
          let waits = error == .schemaWanted && isReader(session, of: name)
          refuse(waiter.fetch, of: session, waits ? .schemaAwaited : error)
        }
      }
    }
    takeSteps()
    isHandling = false
    flush()
  }

  /// Takes the end of ``ScopeStep/close(name:_:)``.
  package func closed(_ name: String, now: Duration) {
    self.now = now
    isHandling = true
    refuse(openScopes.closed(name, now: now, isInUse: isInUse), .tooManyOpenScopes)
    takeSteps()
    isHandling = false
    flush()
  }

  /// The scopes that are open.
  package var scopesOpenedOnDemand: [(name: String, scope: any Hostable)] { openScopes.open }

  /// Returns the scope of a name, if it is open and was opened on demand.
  package func openScope(named name: String) -> (any Hostable)? { openScopes.scope(named: name) }

  /// Closes a scope that was opened on demand, although sessions may have it: they are sent `error`. So are those for whom it
  /// would be opened again. Returns false if it is not open.
  @discardableResult
  package func closeScope(
    _ name: String, telling error: WireError = .notNow("The scope was closed", retryAfter: .zero)
  ) -> Bool {
    let isOpen = openScopes.close(name)
    if isOpen { takeSteps(telling: error) } else { refuse(openScopes.withdraw(name), error) }
    if !isHandling { flush() }
    return isOpen
  }

  /// Closes the scopes that are idle for long enough, and refuses the fetches that have waited for too long.
  func advanceOpenScopes() {
    let late = openScopes.advance(
      to: now, isShortOfMemory: isShortOfMemory, isInUse: isInUse)
    refuse(late, .notNow("The scope could not be opened in time", retryAfter: .seconds(5)))
    takeSteps()
  }

  /// Returns true if an open scope must stay open: a session that has a connection has it, or something of it is not
  /// durable yet.
  private func isInUse(_ scope: any Hostable) -> Bool {
    guard let host = hosts[ObjectIdentifier(scope)] else { return false }
    return host.audience.isPresent || host.states.isAwaited || host.order.records.isInStep
      || !host.undecided.isEmpty || !host.order.records.isCurrent || !host.content.isSealed
  }

  /// Returns true if a session may only read a scope.
  private func isReader(_ session: ServerSession, of name: String) -> Bool {
    if case .success(.readOnly)? = session.subscriptions.access[name] { true } else { false }
  }

  private func refuse(_ waiters: [OpenScopes.Waiter], _ error: WireError) {
    for waiter in waiters { answer(waiter) { refuse(waiter.fetch, of: $0, error) } }
  }

  /// Answers a fetch that has waited, unless its session has ended.
  private func answer(_ waiter: OpenScopes.Waiter, _ action: (ServerSession) -> Void) {
    let session = waiter.session
    guard !session.link.hasEnded else { return }
    session.subscriptions.endOpening(waiter.fetch.name)
    action(session)
    settle(session)
  }

  private func takeSteps(telling error: WireError? = nil) {
    for step in openScopes.takeSteps() {
      if case .close(_, let scope) = step { endHosting(scope, telling: error) }
      lastActions.append(.scope(step))
    }
  }

  /// Stops hosting a scope that is closed.
  ///
  /// - Parameter error: the error for the sessions that have it. With nil, none of them has a connection; they are told to
  ///   fetch it again when they have one.
  private func endHosting(_ scope: any Hostable, telling error: WireError?) {
    guard let host = hosts.removeValue(forKey: ObjectIdentifier(scope)) else { return }
    host.content.sealAll()
    // Change sets that were accepted in this turn are answered first.
    if isHandling { tellNews() } else { flush() }
    if let error {
      leave(host, by: sessions.values, error)
    } else {
      let present = host.audience.subscriptions.values.map(\.session)
      leave(host, by: present, .notNow("The scope was closed", retryAfter: .zero))
    }
    host.end()
  }
}

extension WireError {
  static let tooManyOpenScopes = notNow(
    "As many scopes are open as the server permits", retryAfter: .milliseconds(500))
  static let schemaAwaited = notNow(
    "The scope has no schema before a client that may change it has fetched it",
    retryAfter: .seconds(5))
}
