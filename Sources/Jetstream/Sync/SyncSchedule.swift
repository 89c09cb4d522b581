/// The timing of one scope: its sync mode, the running sync, and the next poll.
///
/// A poll is due only in the mode ``SyncMode/polling(every:)``.
struct SyncSchedule {
  /// The sync mode.
  private(set) var mode: SyncMode
  /// The running sync, if there is one.
  private(set) var round: SyncRound?
  /// The time at which the next poll is due.
  private(set) var pollDue: Duration?

  init(_ mode: SyncMode) { self.mode = mode }

  /// True if pending change sets may be sent.
  var pushes: Bool { appliesRemote || mode == .pushOnly }

  /// True if remote changes are to be applied.
  var appliesRemote: Bool { mode == .realtime || round != nil }

  /// True if the app waits for the running sync.
  var isForced: Bool { round?.isForced == true }

  /// True if the running sync has not asked for the missed changes.
  var hasToAsk: Bool { round?.isAsked == false }

  /// True if the scope needs no connection. `pause` is the time between two pings.
  func mayRest(between pause: Duration) -> Bool {
    guard round == nil else { return false }
    return switch mode {
    case .manual: true
    case .polling(let every): every >= pause
    case .realtime, .pushOnly, .paused: false
    }
  }

  /// Changes the mode. A poll that was due, or is running, belongs to the previous one.
  mutating func change(to new: SyncMode, now: Duration) {
    mode = new
    if new != .realtime { askAgain() }
    if !isForced { round = nil }
    schedulePoll(now: now)
  }

  /// Begins a sync, or extends the running one, of all change sets up to a number.
  ///
  /// - Parameter waiter: the completion of the caller that waits for it, with the caller's number; nil for a poll.
  mutating func begin(
    upTo number: Int, waiter: (number: Int, completion: (Result<Void, SyncError>) -> Void)?
  ) {
    var next = round ?? SyncRound(upTo: number, isForced: false)
    next.upTo = number
    next.isAsked = false
    if let waiter {
      next.isForced = true
      next.waiting[waiter.number] = waiter.completion
    }
    round = next
    pollDue = nil
  }

  /// Makes the running sync ask for the missed changes again, because those on their way are ignored.
  mutating func askAgain() { round?.isAsked = false }

  /// Notes that the running sync has asked for the missed changes.
  mutating func noteAsked() { round?.isAsked = true }

  /// Removes and returns a caller that waits. The sync ends with the last one.
  mutating func cancel(_ waiter: Int, now: Duration) -> ((Result<Void, SyncError>) -> Void)? {
    guard let completion = round?.waiting.removeValue(forKey: waiter) else { return nil }
    if round?.waiting.isEmpty == true { _ = end(now: now) }
    return completion
  }

  /// Ends the running sync. Returns it, for its callers to be told the result; nil if there is none.
  mutating func end(now: Duration) -> SyncRound? {
    guard let ended = round else { return nil }
    round = nil
    schedulePoll(now: now)
    return ended
  }

  /// Schedules the next poll, if the mode is one that polls.
  mutating func schedulePoll(now: Duration) {
    if case .polling(let every) = mode { pollDue = now + every } else { pollDue = nil }
  }

  /// Moves the poll that is due to another time; nil for when the app permits it.
  mutating func postponePoll(until time: Duration?) { pollDue = time }

  /// Makes a poll due that the app has not permitted until now.
  mutating func resumePoll(now: Duration) {
    if case .polling = mode, pollDue == nil, round == nil { pollDue = now }
  }
}
