import Jetstream

/// The scopes that a server has for clients: those that the app hosts, by their names, and the opener of all others.
struct ScopeOffers {
  /// The place in which a scope is served.
  enum Place {
    /// On the server's actor, with the treatment of what the scope does not know.
    case here(any Hostable, unknown: UnknownContent)
    case shard(ServerShard)
  }

  private var places: [String: Place] = [:]
  /// The content that was served with a history which is not written any more.
  private var closed: [ObjectIdentifier: Closed] = [:]

  private struct Closed {
    weak var content: (any Hostable)?
  }

  /// The number of entries in ``closed`` at which those of released content are removed: twice the number that was left the
  /// last time. A server that stops closes all its scopes, one after the other.
  private var pruneAt = 64

  /// Opens scopes that clients fetch and that the app does not host; nil unless the app has set one.
  private(set) var opener: ScopeOpener?
  /// The opener that the app has set while the server closes the scopes of ``opener``, which takes its place then.
  private var nextOpener: ScopeOpener?
  private var lastShard = 0
  /// The names under which scopes with histories are being hosted, and have no place yet.
  private var beginnings: [String: Beginning] = [:]

  private struct Beginning {
    var count = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  /// The place of the scope that the app hosts under a name.
  subscript(name: String) -> Place? {
    get { places[name] }
    set {
      if case .here(let content, _)? = newValue { closed[ObjectIdentifier(content)] = nil }
      places[name] = newValue
    }
  }

  /// Notes content whose history is not written any more. It is served again once the app hosts it again: before, nothing
  /// of it would be written. Until then, or until the app removes it, it keeps its name: opened on demand, a scope of
  /// that name would have another history.
  mutating func close(_ content: any Hostable) {
    if closed.count >= pruneAt {
      closed = closed.filter { $1.content != nil }
      pruneAt = max(64, 2 * closed.count)
    }
    closed[ObjectIdentifier(content)] = Closed(content: content)
  }

  /// The content on the server's actor that is served, with the treatment of what it does not know.
  var served: [(content: any Hostable, unknown: UnknownContent)] {
    places.values.compactMap { place in
      if case .here(let content, let unknown) = place, !isClosed(content) {
        (content, unknown)
      } else {
        nil
      }
    }
  }

  /// Returns true if another scope may be hosted under a name.
  ///
  /// - Parameter left: a shard that does not serve the scope any more that it has under the name.
  func isFree(_ name: String, leftBy left: ServerShard? = nil) -> Bool {
    !isBeginning(name) && hasNoPlace(name, leftBy: left)
  }

  /// Returns true if content may be hosted under a name, or is already.
  func isFree(
    _ name: String, for content: any Hostable, leftBy left: ServerShard? = nil
  ) -> Bool {
    if case .here(let held, _)? = places[name], held === content { return true }
    return hasNoPlace(name, leftBy: left)
  }

  private func hasNoPlace(_ name: String, leftBy left: ServerShard?) -> Bool {
    switch places[name] {
    case nil: true
    case .here(let content, _): isClosed(content)
    case .shard(let shard): shard === left
    }
  }

  /// Returns true if a scope is being hosted under a name, which gets its place when its history is there.
  func isBeginning(_ name: String) -> Bool { beginnings[name] != nil }

  /// Notes that a scope is being hosted under a name, until ``end(_:)``.
  mutating func begin(_ name: String) { beginnings[name, default: Beginning()].count += 1 }

  /// Notes that a scope was hosted under a name, or could not be.
  mutating func end(_ name: String) {
    beginnings[name]?.count -= 1
    guard beginnings[name]?.count == 0 else { return }
    for caller in beginnings.removeValue(forKey: name)?.waiting ?? [] { caller.resume() }
  }

  /// Resumes a caller once no scope is being hosted under a name any more.
  mutating func whenHosted(_ name: String, _ caller: CheckedContinuation<Void, Never>) {
    if isBeginning(name) { beginnings[name]?.waiting.append(caller) } else { caller.resume() }
  }

  /// Returns true if content had a history that is not written any more.
  func isClosed(_ content: any Hostable) -> Bool {
    closed[ObjectIdentifier(content)]?.content != nil
  }

  /// Sets the opener, or the next one while the server closes what it has opened. Traps if the app has set one already.
  mutating func use(_ opener: ScopeOpener) {
    guard let current = self.opener else { return self.opener = opener }
    precondition(
      current.isStopped && nextOpener == nil, "The server opens scopes in a directory already.")
    nextOpener = opener
  }

  /// Has the opener give up: the server stops. Returns it, for ``closed(_:)``.
  mutating func stopOpener() -> ScopeOpener? {
    opener?.giveUp()
    nextOpener = nil
    return opener
  }

  /// Notes that an opener has closed all its scopes: the one that the app has set meanwhile takes its place.
  mutating func closed(_ opener: ScopeOpener) {
    guard self.opener === opener else { return }
    (self.opener, nextOpener) = (nextOpener, nil)
  }

  /// Returns true if the scope of a name is opened when it is fetched.
  func opens(_ name: String) -> Bool {
    opener != nil && places[name] == nil && !isBeginning(name)
  }

  /// Returns the shard for one more scope, in turn; nil if there are none.
  mutating func nextShard(of shards: ServerShards) -> ServerShard? {
    guard !shards.all.isEmpty else { return nil }
    lastShard += 1
    return shards.all[lastShard % shards.all.count]
  }
}

extension WireError {
  static let notServed = notNow("The scope is not served at the moment", retryAfter: .seconds(1))
}
