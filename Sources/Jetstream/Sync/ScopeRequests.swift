/// The requests for scopes in one session.
///
/// The app may leave a scope before the server has answered the request for it. The server still grants it, so the
/// client has to give the grant back.
struct ScopeRequests {
  /// A request, with the sequence of the replica when it was made.
  struct Request {
    let replica: Replica
    let tell: ScopeFetch.Tell
    let since: Int
    /// True if the request has brought the schema of the scope.
    let hasSchema: Bool
  }

  /// The requests that the server has not answered, by message index.
  private var open: [Int: Request] = [:]
  /// The number of open requests of each replica that has any: with many scopes, each message of the server asks for it.
  private var counts: [ObjectIdentifier: Int] = [:]
  /// The indexes of unanswered requests for scopes that the app left.
  private var left: Set<Int> = []
  /// The scope indexes that the server has granted to such requests.
  private var leftGrants: Set<Int> = []

  /// The sequences that the server has named when the session was resumed, by scope index, until the answers come that it
  /// has sent before.
  private var latest: [Int: Int] = [:]

  /// True if no scope waits for an answer.
  var isEmpty: Bool { open.isEmpty }

  /// Returns true if a replica waits for an answer.
  func contains(_ replica: Replica) -> Bool { counts[ObjectIdentifier(replica)] != nil }

  /// Adds the request that a message carries.
  mutating func add(_ index: Int, _ request: Request) {
    open[index] = request
    counts[ObjectIdentifier(request.replica), default: 0] += 1
  }

  /// Removes and returns the request that message `index` has carried; nil if it was another message.
  mutating func take(_ index: Int) -> Request? {
    guard let request = open.removeValue(forKey: index) else { return nil }
    let key = ObjectIdentifier(request.replica)
    let count = (counts[key] ?? 0) - 1
    counts[key] = count > 0 ? count : nil
    return request
  }

  /// Returns the replica whose request message `index` has carried; nil if it was another message.
  func replica(of index: Int) -> Replica? { open[index]?.replica }

  /// Notes the sequences that the server has when the session is resumed: an answer that is on its way is older, and has an
  /// earlier one.
  mutating func noteLatest(_ places: [Ping.Place]) {
    latest = [:]
    if isEmpty { return }
    for place in places { latest[place.scopeIndex] = place.sequence }
  }

  /// Removes and returns the sequence that a scope is known to have; nil if there is none.
  mutating func takeLatest(of scopeIndex: Int) -> Int? { latest.removeValue(forKey: scopeIndex) }

  /// Handles the end of a replica's syncing.
  mutating func leave(_ replica: Replica) {
    guard contains(replica) else { return }
    for (index, request) in open where request.replica === replica {
      _ = take(index)
      left.insert(index)
    }
  }

  /// Handles the answer to a request for a scope that the app has left meanwhile. Returns false if the request is
  /// another one.
  mutating func takeLeft(_ reply: ScopeFetchReply) -> Bool {
    guard left.remove(reply.replyTo) != nil else { return false }
    if let scopeIndex = reply.scopeIndex { leftGrants.insert(scopeIndex) }
    return true
  }

  /// Removes and returns the grants to scopes that the app has left, besides those that are `used`. A scope that was
  /// fetched again since may have got the same scope index, so this waits until all requests are answered.
  mutating func takeUnwanted(besides used: [Int]) -> [Int] {
    guard open.isEmpty else { return [] }
    defer { leftGrants = [] }
    return leftGrants.subtracting(used).sorted()
  }
}
