import Foundation
import Jetstream

/// The rights of sessions in scopes.
///
/// A fetch of a scope in which the session's rights are not known waits until the app has decided. The rights hold for as
/// long as the session has the scope, also when it fetches it again, until the app says that they have changed. The engine
/// of channel 0 asks; those of other channels are told with the session.
extension ServerEngine {
  /// The answer to the question for rights.
  package enum AccessAnswer: Sendable {
    /// All sessions may do everything.
    case unguarded
    case decided(Result<ScopeAccess, WireError>)
    /// The answer comes with ``ServerEngine/decided(_:_:_:now:)``.
    case pending
  }

  func handle(_ fetch: ScopeFetch, from session: ServerSession) {
    let access = session.subscriptions.access
    if let answer = access[fetch.name] { return take(answer, about: fetch, of: session) }
    if access.source == .channelZero { return refuse(fetch, of: session, .rightsUnknown) }
    guard access.hasRoom(for: fetch) else { return refuse(fetch, of: session, .tooManyFetches) }
    let deadline = now + configuration.openScopes.openingTime
    if access.isAsking(about: fetch.name) {
      return session.subscriptions.access.join(fetch, until: deadline)
    }
    let number = takeQuestion()
    let answer = hooks.access(session.info, fetch.name, number)
    if case .unguarded = answer { return resolve(fetch, for: session) }
    session.subscriptions.access.source = .here
    if case .decided(let answer) = answer { return take(answer, about: fetch, of: session) }
    session.subscriptions.access.wait(
      fetch, for: number, until: deadline,
      expiringAt: deadline + configuration.openScopes.openingTime * 2)
  }

  private func takeQuestion() -> Int {
    next.question += 1
    return next.question
  }

  private func take(
    _ answer: Result<ScopeAccess, WireError>, about fetch: ScopeFetch, of session: ServerSession
  ) {
    switch answer {
    case .failure(let error): refuse(fetch, of: session, error)
    case .success(let access):
      session.subscriptions.access[fetch.name] = .success(access)
      resolve(fetch, for: session)
    }
  }

  /// Takes the app's answer to the question of a number, about a session and a scope. Does nothing if nothing waits for it.
  package func decided(
    _ token: String, _ name: String, _ question: Int, _ answer: Result<ScopeAccess, WireError>,
    now: Duration
  ) {
    self.now = now
    guard let session = sessions[token] else { return }
    guard let fetches = session.subscriptions.access.answered(name, question) else {
      let number = takeQuestion()
      session.subscriptions.access.askAgain(about: name, as: number)
      if case .decided(let answer) = hooks.access(session.info, name, number) {
        decided(token, name, number, answer, now: now)
      }
      return
    }
    isHandling = true
    for fetch in fetches where !session.link.hasEnded { take(answer, about: fetch, of: session) }
    settle(session)
    isHandling = false
    flush()
  }

  /// Returns true if a session waits for the app's answer to the question of a number.
  func isAsking(_ question: Int, of token: String) -> Bool {
    sessions[token]?.subscriptions.access.isAsking(question) ?? false
  }

  /// Does for a session what is otherwise done at the end of a frame with a fetch.
  func settle(_ session: ServerSession) {
    if !session.link.hasEnded { meetDemands(of: session) }
    if !session.link.hasEnded { answerOpenFetches(of: session) }
  }

  /// Refuses the fetches of a session about which the app was asked too long ago.
  func refuseLateFetches(of session: ServerSession) {
    for fetch in session.subscriptions.access.takeLate(at: now) {
      refuse(fetch, of: session, .notNow("The server is too slow", retryAfter: .seconds(5)))
    }
  }

  // MARK: Changes

  /// The sessions and the names of their scopes in which the rights are known, of one principal or of all.
  package func knownAccess(of principal: String?) -> [(session: SessionInfo, name: String)] {
    var all = sessions(of: principal).flatMap { session in
      session.subscriptions.access.knownNames.map { (session: session.info, name: $0) }
    }
    // Sessions that have left a scope, or have ended, may have left change sets that are not decided.
    let left = work.undecidedHosts.all.flatMap { host in
      host.undecided.left { principal == nil || $0.principal?.id == principal }
    }
    var known = Set(all.map { [$0.session.token, $0.name] })
    for set in left.sorted(by: {
      ($0.origin.number, $0.scopeName) < ($1.origin.number, $1.scopeName)
    }) where known.insert([set.origin.token, set.scopeName]).inserted {
      all.append((sessions[set.origin.token]?.info ?? set.origin, set.scopeName))
    }
    return all
  }

  /// Takes the rights that a session has in a scope from change sets that are not decided, if the session has left the scope
  /// since it has sent them, or has ended.
  private func changeAccess(
    _ token: String, left name: String, _ answer: Result<ScopeAccess, WireError>
  ) {
    for host in work.undecidedHosts.all {
      for set in host.undecided.left(by: { $0.token == token }) where set.scopeName == name {
        switch answer {
        case .failure: drop(set, in: host)
        case .success(let access): set.isReadOnly = access == .readOnly
        }
      }
    }
  }

  /// Notes that the app's answers to questions that were asked before are out of date.
  package func outdateAccess(of principal: String?) {
    for session in sessions(of: principal) { session.subscriptions.access.outdateQuestions() }
  }

  /// Returns the number of times that the app has said that the rights of a session have changed.
  package func accessChanges(of token: String) -> Int {
    sessions[token]?.subscriptions.access.changes ?? 0
  }

  private func sessions(of principal: String?) -> [ServerSession] {
    sessions.values.filter { principal == nil || $0.info.principal?.id == principal }
      .sorted { $0.number < $1.number }
  }

  /// Takes the rights that a session has in a scope from now on. Without any, the scope is taken from it.
  package func changeAccess(
    _ token: String, _ name: String, _ answer: Result<ScopeAccess, WireError>, now: Duration
  ) {
    self.now = now
    changeAccess(token, left: name, answer)
    guard let session = sessions[token], session.subscriptions.access[name] != nil else {
      if !isHandling { flush() }
      return
    }
    // Also where the scope is still being opened: the session is refused then.
    session.subscriptions.access[name] = answer
    guard case .failure(let error) = answer else { return }
    // The app may have given it several scopes under the name.
    let taken = session.subscriptions.hosts.filter {
      session.subscriptions.access.name(of: $0) == name
    }
    if taken.isEmpty {
      if !isHandling { flush() }
      return
    }
    // Its change sets that were accepted in this turn are answered first.
    if !isHandling { flush() }
    for host in taken where !session.link.hasEnded { leave(host, by: [session], error) }
    session.subscriptions.access[name] = nil
    if !isHandling { flush() }
  }
}

extension WireError {
  static let rightsUnknown = notNow(
    "The scope has to be fetched once more, in channel 0", retryAfter: .zero)
  static let tooManyCalls = notNow(
    "The session has left too many calls behind that are not decided", retryAfter: .seconds(1))
  static let tooManyFetches = notNow(
    "The session has fetched too many scopes at a time", retryAfter: .milliseconds(200))
}
