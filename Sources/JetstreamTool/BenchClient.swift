import Foundation
import Jetstream

/// The tally since the worker has sent the last one.
final class BenchMeter {
  private(set) var tally = BenchTally()

  /// True while the clients' work counts.
  var isRunning = false

  func change(_ body: (inout BenchTally) -> Void) { if isRunning { body(&tally) } }

  /// Returns the tally and begins another one.
  func take() -> BenchTally {
    defer { tally = BenchTally() }
    return tally
  }
}

/// A client of the bench with its scope. It lives on the actor on which it is made.
final class BenchClient {
  let part: BenchOptions.Part
  /// The number of this writer's change sets that were accepted.
  private(set) var accepted = 0
  /// The number of this writer's change sets that are not decided.
  private(set) var undecided = 0
  /// The number of other clients' change sets that were seen.
  private(set) var seen = 0

  private let options: BenchOptions
  private let text: BenchText
  private let meter: BenchMeter
  private let client: Client
  private let scope: Scope
  private var notes: [BenchNote] = []
  /// True once the client has its scope and, as a writer, the models that it changes.
  private(set) var isOpen = false
  /// True after the client was connected for the first time.
  private var wasOnline = false
  /// The last reason why there is no connection or no scope.
  private(set) var problem: String?
  /// Continues the writer that waits until it may make another change set.
  private var waiting: CheckedContinuation<Void, Never>?

  /// The number of models that a writer changes in turn.
  private static let noteCount = 4
  /// The largest number of undecided change sets of a writer that makes them at a rate.
  private static let rateLimit = 10_000
  /// The time after the end in which a writer at a rate still makes what was due: timers are a little late.
  private static let delay = BenchClock.second / 10

  init(
    _ part: BenchOptions.Part, _ plan: BenchPlan, _ meter: BenchMeter,
    isolation: isolated (any Actor) = #isolation
  ) {
    (self.part, self.meter, options) = (part, meter, plan.options)
    text = BenchText(run: plan.run, size: plan.options.size)
    client = Client(
      url: plan.options.url,
      backoff: Backoff(first: .milliseconds(100), limit: .seconds(1)), isolation: isolation)
    scope = Scope(name: "bench/\(part.scope)", root: BenchBoard(), isolation: isolation)
    client.onStatusChange.listen(self) { me, status in me.take(status) }
    client.onSyncStateChange.listen(self) { me, scope in
      if case .refused(let reason) = me.client.syncState(of: scope)?.stall { me.problem = reason }
    }
    client.onDiagnostic.listen(self) { me, diagnostic in me.take(diagnostic) }
    client.onSessionDenied.listen(self) { me, error in
      me.meter.change {
        $0.errors += 1
        $0.note("\(error)")
      }
    }
    scope.onRemoteChanges.listen(self) { me, changes in me.take(changes) }
  }

  /// Connects, fetches the scope and, as a writer, adds models to it.
  func open() async throws {
    try await client.connect()
    try await client.fetch(scope)
    if part.isWriter {
      let notes = (0..<Self.noteCount).map { _ in BenchNote() }
      try await scope.modify { board?.notes.append(contentsOf: notes) }.finished()
      self.notes = notes
    }
    isOpen = true
  }

  /// Removes the models of a writer. Waits for the server at most until a time.
  func removeNotes(until limit: Int) async {
    guard !notes.isEmpty else { return }
    var isDecided = false
    let handle = scope.modify {
      for note in notes { board?.notes.remove(note) }
      board?.edits += accepted
    }
    handle.whenFinished { _ in isDecided = true }
    while !isDecided, BenchClock.now < limit { await BenchClient.pause() }
  }

  /// Closes the connection.
  func close() { client.close() }

  /// The root of the scope. The server's state has another one than the client began with.
  private var board: BenchBoard? { scope.root as? BenchBoard }

  // MARK: Writing

  /// Makes change sets from one time to another.
  func write(from start: Int, until end: Int) async {
    await BenchClock.sleep(until: start)
    let schedule = options.rate.map { BenchSchedule(start: start, end: end, rate: $0) }
    let limit = schedule == nil ? options.inFlight : Self.rateLimit
    var (count, last) = (0, 0)
    while !Task.isCancelled {
      var time = BenchClock.now
      if let schedule {
        // The latency counts from the time at which the edit was due, so that it contains the wait for a writer that is
        // behind.
        guard let due = schedule.time(of: count) else { return }
        if due > time {
          await BenchClock.sleep(until: due)
          continue
        }
        time = due
      }
      let now = BenchClock.now
      if now >= end + (schedule == nil ? 0 : Self.delay) || (now >= end && undecided >= limit) {
        // The edits that would have waited longest: the latencies say nothing of them.
        if let schedule { meter.change { $0.unmade += schedule.count - count } }
        return
      }
      if undecided >= limit {
        await withCheckedContinuation { waiting = $0 }
        continue
      }
      // The same text would be no change.
      last = max(time, last + 1)
      edit(at: last, notes[count % notes.count])
      count += 1
    }
  }

  /// Continues a writer that waits, so that it notices its end.
  func wake() {
    let waiting = self.waiting
    self.waiting = nil
    waiting?.resume()
  }

  private func edit(at time: Int, _ note: BenchNote) {
    undecided += 1
    let handle = scope.modify { note.text = text.text(at: time) }
    handle.whenFinished { [weak self] error in self?.decided(time, error) }
  }

  private func decided(_ time: Int, _ error: ChangeSetError?) {
    let latency = BenchClock.now - time
    switch error {
    case nil:
      undecided -= 1
      accepted += 1
      meter.change {
        $0.accepted += 1
        $0.acceptance.record(latency)
      }
    case .abandoned?, .cancelled?: return
    case let error?:
      undecided -= 1
      meter.change {
        $0.rejected += 1
        $0.note("\(error)")
      }
    }
    wake()
  }

  /// Lets others do something, for a few milliseconds.
  static func pause() async { await BenchClock.sleep(until: BenchClock.now + 5_000_000) }

  // MARK: Listening

  private func take(_ changes: RemoteChanges) {
    if changes.isFullState { return }
    for fragment in changes.fragments where fragment.kind == .change {
      guard case .string(let value)? = fragment.properties["text"], let time = text.time(of: value)
      else { continue }
      // Another client of the scope may write whatever it likes.
      let now = BenchClock.now
      guard (0...now).contains(time) else { continue }
      let latency = now - time
      seen += 1
      meter.change {
        $0.deliveries += 1
        $0.sight.record(latency)
      }
    }
  }

  private func take(_ status: ClientStatus) {
    guard status == .online else { return }
    if wasOnline { meter.change { $0.reconnects += 1 } }
    wasOnline = true
  }

  /// Notes that there is no connection, if that is so.
  func noteLostConnection() {
    guard client.status != .online else { return }
    // The time of the next attempt would make each reason another one.
    let reason = problem.map { ": " + $0.prefix { $0 != ";" } } ?? ""
    meter.change {
      $0.errors += 1
      $0.disconnected += 1
      $0.note("not connected at the end\(reason)")
    }
  }

  private func take(_ diagnostic: Diagnostic) {
    if diagnostic.level > .debug { problem = diagnostic.text() }
    guard diagnostic.level >= .warning else { return }
    meter.change {
      $0.errors += 1
      $0.note(diagnostic.text())
    }
  }
}
