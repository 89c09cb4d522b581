import Jetstream

/// The rights of a session in a scope; see ``Server/access``.
public enum ScopeAccess: Sendable, Hashable {
  /// The client sees the scope and changes it.
  case readWrite
  /// The client sees the scope. Whatever it changes is rejected.
  case readOnly
}

/// The rights of one session, by the names under which it has fetched scopes.
///
/// A scope whose rights are not known is being asked about, or it is not: the next fetch asks. Known rights are kept for as
/// long as the session has the scope, or is getting it. Where rights are asked for, a session has none that are not known:
/// a scope is not granted without them, and only read.
struct SessionAccess {
  /// The engine that asks the app for the rights.
  enum Source {
    /// None: all sessions may do everything.
    case none
    case here
    /// The engine of channel 0, which has to be asked first.
    case channelZero
  }

  /// The fetches of one scope that wait for the app's answer.
  private struct Question {
    /// The number of the question: answers to others come too late.
    var number: Int
    var fetches: [ScopeFetch]
    /// The time at which they are refused. The question stays for later ones until it has expired: a slow app would
    /// answer each of them too late.
    var deadline: Duration
    let expiresAt: Duration
    /// True if the app has to be asked again, since rights have changed after it was asked.
    var isOutdated = false
  }

  /// The largest number of fetches that wait, and of their bytes.
  private static let most = (fetches: 64, bytes: 1 << 20)

  /// The rights; an error if they were taken while the session was getting the scope.
  private var known: [String: Result<ScopeAccess, WireError>] = [:]
  /// The names under which scopes were fetched.
  private var names: [ObjectIdentifier: String] = [:]
  private var questions: [String: Question] = [:]
  /// The number of times that the app has said that rights have changed.
  private(set) var changes = 0
  var source = Source.none

  /// The rights in the scope of a name; nil if they are not known.
  subscript(name: String) -> Result<ScopeAccess, WireError>? {
    get { known[name] }
    set { known[name] = newValue }
  }

  /// Returns the error with which the scope of a name is not granted; nil if the session may have it.
  func objection(to name: String) -> WireError? {
    switch known[name] {
    case .success: nil
    case .failure(let error): error
    // Another fetch of the scope was refused while it was being opened.
    case nil: source == .none ? nil : .rightsUnknown
    }
  }

  /// The names of the scopes in which the rights are known.
  var knownNames: [String] { known.keys.sorted() }

  /// The number of fetches that wait.
  var waitingCount: Int { questions.values.reduce(0) { $0 + $1.fetches.count } }

  /// Returns the number of names under which fetches wait, except for one.
  func waitingNames(besides name: String) -> Int {
    questions.count { $0.key != name && !$0.value.fetches.isEmpty }
  }

  /// Returns the name under which a scope was fetched; nil if that is not known.
  func name(of host: ScopeHost) -> String? { names[ObjectIdentifier(host)] }

  // MARK: Questions

  /// Returns true if the app is being asked about a scope.
  func isAsking(about name: String) -> Bool { questions[name] != nil }

  /// Returns true if the answer to the question of a number is waited for.
  func isAsking(_ number: Int) -> Bool { questions.values.contains { $0.number == number } }

  /// Returns true if one more fetch can wait.
  func hasRoom(for fetch: ScopeFetch) -> Bool {
    let waiting = questions.values.lazy.flatMap(\.fetches)
    // One that has been given up waits for the app's answer, too.
    let count = questions.values.reduce(0) { $0 + max(1, $1.fetches.count) }
    return count < Self.most.fetches
      && waiting.reduce(Self.size(of: fetch)) { $0 + Self.size(of: $1) } <= Self.most.bytes
  }

  private static func size(of fetch: ScopeFetch) -> Int {
    Message.scopeFetch(fetch).roughSize + (fetch.schema?.roughSize ?? 0)
  }

  /// Leaves a fetch until the app has answered the question of a number, or until a time.
  mutating func wait(
    _ fetch: ScopeFetch, for number: Int, until deadline: Duration, expiringAt expiresAt: Duration
  ) {
    questions[fetch.name] = Question(
      number: number, fetches: [fetch], deadline: deadline, expiresAt: expiresAt)
  }

  /// Leaves a fetch until the app has answered a question that it was asked already, or until a time, unless others wait.
  mutating func join(_ fetch: ScopeFetch, until deadline: Duration) {
    if questions[fetch.name]?.fetches.isEmpty == true { questions[fetch.name]?.deadline = deadline }
    questions[fetch.name]?.fetches.append(fetch)
  }

  /// Takes the app's answer to the question of a number about a scope.
  ///
  /// - Returns: the fetches that have waited for it; nil if the app has to be asked again.
  mutating func answered(_ name: String, _ number: Int) -> [ScopeFetch]? {
    guard let question = questions[name], question.number == number else { return [] }
    if question.isOutdated { return nil }
    questions[name] = nil
    return question.fetches
  }

  /// Notes that the app is asked again, by the question of a number.
  mutating func askAgain(about name: String, as number: Int) {
    questions[name]?.number = number
    questions[name]?.isOutdated = false
  }

  /// Notes that the app may answer in another way by now.
  mutating func outdateQuestions() {
    changes += 1
    for name in questions.keys { questions[name]?.isOutdated = true }
  }

  /// Removes and returns the fetches that have waited for too long.
  mutating func takeLate(at now: Duration) -> [ScopeFetch] {
    if questions.isEmpty { return [] }
    let late = questions.filter { $0.value.deadline <= now }.sorted { $0.key < $1.key }
    for (name, question) in late {
      questions[name]?.fetches = []
      if question.expiresAt <= now { questions[name] = nil }
    }
    return late.flatMap(\.value.fetches)
  }

  // MARK: Scopes

  /// Notes that the session has fetched a scope under a name.
  mutating func note(_ host: ScopeHost, as name: String) {
    if source == .none { return }
    let old = names.updateValue(name, forKey: ObjectIdentifier(host))
    // The app may give a scope several names: the rights are those under the last one.
    if let old, old != name, !names.values.contains(old) { known[old] = nil }
  }

  /// Returns true if the session may only read a scope.
  func isReadOnly(_ host: ScopeHost) -> Bool {
    if source == .none { return false }
    guard let name = names[ObjectIdentifier(host)], case .success(.readWrite)? = known[name] else {
      return true
    }
    return false
  }

  /// Forgets the rights in a scope that the session no longer has.
  mutating func forget(_ host: ScopeHost) {
    guard let name = names.removeValue(forKey: ObjectIdentifier(host)) else { return }
    if !names.values.contains(name) { known[name] = nil }
  }

  /// Forgets the rights in a scope that the session has not got, unless it has the scope already. Where another engine
  /// decides, it has told them once.
  mutating func forget(_ name: String) {
    if source == .here, !names.values.contains(name) { known[name] = nil }
  }
}
