/// The scopes of whose records a session awaits that they are stored, also those that it has left since: what it has caused
/// there is in memory until then.
struct AwaitedStores {
  private struct Entry {
    weak var host: ScopeHost?
    /// The number of answers to messages of the client that wait.
    var answers = 0
    /// True if the client has sent change sets, or asked for something, while the scope had too much that is not durable.
    var isFilled = false
  }

  private var entries: [ObjectIdentifier: Entry] = [:]

  /// Returns the number of answers that wait for the records of a scope.
  func answers(of host: ScopeHost) -> Int { entries[ObjectIdentifier(host)]?.answers ?? 0 }

  /// Notes that an answer waits for the records of a scope.
  mutating func beginAnswer(of host: ScopeHost) {
    update(host) { $0.answers += 1 }
  }

  /// Notes that an answer waits no longer, whether it was sent or its session has left the scope.
  mutating func endAnswer(of host: ScopeHost) {
    let key = ObjectIdentifier(host)
    guard var entry = entries[key] else { return }
    entry.answers -= 1
    entries[key] = entry.answers > 0 || entry.isFilled ? entry : nil
  }

  /// Notes that the client has sent something while a scope had too much that is not durable.
  mutating func fill(_ host: ScopeHost) {
    update(host) { $0.isFilled = true }
  }

  private mutating func update(_ host: ScopeHost, _ change: (inout Entry) -> Void) {
    // A scope that is gone sends no answers any more, and a new one may have its identifier.
    if entries[ObjectIdentifier(host)]?.host == nil {
      entries = entries.filter { $0.value.host != nil }
    }
    change(&entries[ObjectIdentifier(host), default: Entry(host: host)])
  }

  /// Returns true if the client has sent something to a scope that has had too much that is not durable ever since.
  ///
  /// - Parameter hasTooMuch: tells that of a scope, given the number of the session's answers.
  mutating func holdsBack(_ hasTooMuch: (ScopeHost, Int) -> Bool) -> Bool {
    if entries.isEmpty { return false }
    var holds = false
    for (key, entry) in entries {
      // A scope that has ended sends no answers any more.
      guard let host = entry.host, !host.hasEnded else {
        entries[key] = nil
        continue
      }
      if entry.isFilled, hasTooMuch(host, entry.answers) {
        holds = true
      } else {
        entries[key]?.isFilled = false
        if entry.answers == 0 { entries[key] = nil }
      }
    }
    return holds
  }
}
