import Jetstream

/// The amounts that the client of a session sends: those to acknowledge before a ping is due, and those that its rates
/// allow.
///
/// A client that exceeds a rate is not refused anything. Its connection is left unread until the rate allows more:
/// what it sends then waits in its own socket, and TCP holds it up, while other connections go on. The alternatives
/// lose something. A rejected change set would be taken back on the user's screen, although nothing is wrong with it,
/// since to clients a rejection is final. Ending the session would have the client repeat everything that is pending,
/// over a new connection, so that it would cost the server more than before. A connection that is not read costs
/// nothing, and a client of any version can bear it: nothing is lost, and all comes in the order in which it was
/// sent.
///
/// It holds up everything that the connection carries, also what belongs to other scopes, and acknowledgements. That
/// is why a rate is charged once for all that was received at once, by the amounts counted until then, and never in
/// the middle of a frame.
struct ClientTraffic {
  /// The amounts that were not charged yet.
  struct Load {
    var changeSets = 0
    var bytes = 0
    var fetches = 0
    var fullStates = 0
    var pings = 0
    /// The time for which the rates of scopes hold up the client.
    var pause = Duration.zero
  }

  var load = Load()
  /// The scopes whose records are to be stored before the client is read on.
  var awaited = AwaitedStores()
  /// A large change set that is being judged; its scope keeps it.
  struct Judged {
    weak var set: LargeSet?
  }

  /// The large change sets of the session that are being judged: while there are any, it is not read on.
  var largeSets: [Judged] = []
  /// The effort of the client's change sets in the last turn of the server in which there was any.
  private var spent = (turn: 0, effort: 0)
  /// The scopes of which the client has missed more in a turn of the server than the full state has, and the others that were
  /// compared.
  private var compared: (turn: Int, isStateLess: [Int: Bool]) = (0, [:])
  /// The time until which the client's connection is not to be read, also if it is another one by then.
  private(set) var heldUntil = Duration.zero
  /// The acknowledgements that the client gets before the next ping is due.
  var acknowledgement = EarlyAcknowledgement()
  private var changeSets: TokenBucket
  private var bytes: TokenBucket
  private var fetches: TokenBucket
  private var fullStates: TokenBucket
  private var pings: TokenBucket

  init(_ limits: ServerLimits) {
    changeSets = TokenBucket(perSecond: limits.changeSetsPerSecond)
    bytes = TokenBucket(perSecond: limits.bytesPerSecond)
    fetches = TokenBucket(perSecond: limits.fetchesPerSecond)
    fullStates = TokenBucket(perSecond: limits.fullStatesPerSecond)
    pings = TokenBucket(perSecond: limits.pingsPerSecond)
  }

  /// Notes that a frame was received.
  mutating func note(bytes count: Int) {
    acknowledgement.note(bytes: count)
    load.bytes += count
  }

  /// Notes the effort of a change set; see ``ScopeOrder/Result/effort``.
  mutating func note(effort amount: Int, in turn: Int) {
    spent = (turn, amount + effort(in: turn))
  }

  /// The effort of the client's change sets in a turn of the server.
  func effort(in turn: Int) -> Int { spent.turn == turn ? spent.effort : 0 }

  /// Returns whether the full state of a scope is less than what the client has missed, if they were compared in a turn.
  func comparison(of scope: Int, in turn: Int) -> Bool? {
    compared.turn == turn ? compared.isStateLess[scope] : nil
  }

  /// Notes the outcome of such a comparison.
  mutating func note(isStateLess: Bool, of scope: Int, in turn: Int) {
    if compared.turn != turn { compared = (turn, [:]) }
    compared.isStateLess[scope] = isStateLess
  }

  /// Charges what was counted since the last call. Cost: O(1).
  ///
  /// - Parameter reached: called with each rate that is exceeded.
  /// - Returns: the time for which the connection is not to be read.
  mutating func charge(at now: Duration, _ reached: (ServerLimit) -> Void) -> Duration {
    var pause = load.pause
    func note(_ time: Duration, _ limit: ServerLimit) {
      if time > .zero { reached(limit) }
      pause = max(pause, time)
    }
    note(changeSets.take(load.changeSets, at: now), .changeSetsPerSecond)
    note(bytes.take(load.bytes, at: now), .bytesPerSecond)
    note(fetches.take(load.fetches, at: now), .fetchesPerSecond)
    note(fullStates.take(load.fullStates, at: now), .fullStatesPerSecond)
    note(pings.take(load.pings, at: now), .pingsPerSecond)
    load = Load()
    // A shorter pause lets the client go no sooner.
    if pause > .zero { heldUntil = max(heldUntil, now + pause) }
    return pause
  }
}

/// The rates of the change sets of all clients of a scope.
struct ScopeRates {
  private var changeSets: TokenBucket
  private var bytes: TokenBucket

  /// Makes rates; returns nil if there is no limit.
  init?(_ limits: ServerLimits) {
    if limits.changeSetsPerSecondInScope == nil, limits.bytesPerSecondInScope == nil { return nil }
    changeSets = TokenBucket(perSecond: limits.changeSetsPerSecondInScope)
    bytes = TokenBucket(perSecond: limits.bytesPerSecondInScope)
  }

  /// Charges a change set. Cost: O(1).
  ///
  /// - Parameter reached: called with each rate that is exceeded.
  /// - Returns: the time for which the client that has sent it is held up.
  mutating func charge(
    bytes count: Int, at now: Duration, _ reached: (ServerLimit) -> Void
  ) -> Duration {
    let times = (changeSets.take(1, at: now), bytes.take(count, at: now))
    if times.0 > .zero { reached(.changeSetsPerSecondInScope) }
    if times.1 > .zero { reached(.bytesPerSecondInScope) }
    return max(times.0, times.1)
  }
}
