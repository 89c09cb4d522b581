/// The course of a bench, as the parent of the workers follows it: a state machine without I/O and clock.
struct BenchConductor {
  /// The end of a worker process.
  enum End: Hashable, Sendable {
    case status(Int32)
    case signal(Int32)
  }

  /// An input. Workers are numbered from 1.
  enum Event: Sendable {
    case line(Int, BenchLine)
    case ended(Int, End)
    /// The user wants the bench to end.
    case interrupted
    /// Time has passed.
    case tick
  }

  /// An output.
  enum Step: Hashable {
    /// Send an order to all workers.
    case order(BenchOrder)
    /// Print a line of progress.
    case progress(String)
    /// End all workers.
    case finish(Outcome)
  }

  /// The outcome of a bench.
  enum Outcome: Hashable {
    case measured
    case interrupted
    /// The bench has failed, for this reason.
    case failed(String)
  }

  private enum Phase {
    case connecting
    case writing(since: Int)
    case draining
    case stopping(since: Int)
    case over
  }

  /// The time that workers have beyond their own limits, in nanoseconds.
  private static let slack = 5 * BenchClock.second
  /// The time from the order to begin until the begin.
  private static let lead = BenchClock.second / 10

  let options: BenchOptions
  /// The measurements until now.
  private(set) var report: BenchReport
  private var phase = Phase.connecting
  private var deadline: Int
  /// The time at which the bench was started.
  private let start: Int
  /// The workers that have come to the end of the phase.
  private var arrived: Set<Int> = []
  /// The tallies of seconds that not all workers have sent.
  private var seconds: [Int: (workers: Int, tally: BenchTally)] = [:]
  /// The number of accepted change sets of each scope.
  private var accepted: [Int]

  init(_ options: BenchOptions, now: Int) {
    self.options = options
    report = BenchReport(options)
    start = now
    deadline = now + options.connectLimit * BenchClock.second + Self.slack
    accepted = Array(repeating: 0, count: options.scopes)
  }

  /// Takes an input.
  ///
  /// - Parameter now: The time of ``BenchClock``.
  /// - Returns: What there is to do.
  mutating func take(_ event: Event, now: Int) -> [Step] {
    switch (phase, event) {
    case (.over, _): return []
    case (_, .line(let worker, let line)): return take(line, of: worker, now: now)
    case (.stopping, .ended(let worker, _)): return arrive(worker, now: now)
    case (.draining, .ended(let worker, _)) where arrived.contains(worker): return []
    case (_, .ended(let worker, let end)):
      switch end {
      case .status(let status): return fail("worker \(worker) has ended with status \(status).")
      case .signal(let signal): return fail("worker \(worker) was ended by signal \(signal).")
      }
    case (.stopping(let since), .interrupted):
      // Right behind the first one, it is the same request: see StopRequests.
      let passed = Duration.nanoseconds(now - since)
      return passed >= StopRequests.echo ? finish(.interrupted) : []
    case (_, .interrupted):
      if case .writing(let since) = phase { report.measure(nanoseconds: now - since) }
      report.isInterrupted = true
      arrived = []
      phase = .stopping(since: now)
      deadline = now + 2 * BenchClock.second
      return [.order(.stop)]
    case (.stopping, .tick): return now > deadline ? finish(.interrupted) : []
    case (_, .tick):
      guard now > deadline else { return [] }
      let late = (1...options.processes).filter { !arrived.contains($0) }.map(String.init)
      let names = late.joined(separator: ", ")
      return fail("worker\(late.count == 1 ? "" : "s") \(names) took too long to answer.")
    }
  }

  private mutating func take(_ line: BenchLine, of worker: Int, now: Int) -> [Step] {
    switch (phase, line) {
    case (_, .failed(let reason)): return fail(reason)
    case (.connecting, .ready): return arrive(worker, now: now)
    case (.writing, .second(let second, let tally)): return take(tally, second)
    case (.writing, .written(let tally, let accepted, let undecided)):
      report.add(tally, isInTime: false)
      report.undecided += undecided
      for (scope, count) in zip(self.accepted.indices, accepted) { self.accepted[scope] += count }
      return arrive(worker, now: now)
    case (.draining, .done(let tally, let missed)):
      report.add(tally, isInTime: false)
      report.missed = (report.missed ?? 0) + (missed ?? 0)
      return arrive(worker, now: now)
    case (.stopping, .second(_, let tally)), (.stopping, .done(let tally, _)):
      report.add(tally, isInTime: true)
      if case .done = line { return arrive(worker, now: now) }
      return []
    case (.stopping, .written(let tally, _, _)):
      report.add(tally, isInTime: false)
      return []
    default: return []
    }
  }

  /// Takes the tally of a worker's second. When all workers have sent it, there is a line of progress.
  private mutating func take(_ tally: BenchTally, _ second: Int) -> [Step] {
    report.add(tally, isInTime: true)
    var (workers, sum) = seconds.removeValue(forKey: second) ?? (0, BenchTally())
    sum.merge(tally)
    workers += 1
    guard workers == options.processes else {
      seconds[second] = (workers, sum)
      return []
    }
    return [.progress(Self.progress(second, sum))]
  }

  /// Returns the line about a second of all workers.
  static func progress(_ second: Int, _ tally: BenchTally) -> String {
    func slowest(_ histogram: LatencyHistogram) -> String {
      histogram.quantile(0.99).map(LatencyText.text) ?? "-"
    }
    let counts =
      LatencyText.padded(LatencyText.grouped(tally.accepted), 9) + " change sets/s"
      + LatencyText.padded(LatencyText.grouped(tally.deliveries), 11) + " deliveries/s"
    return LatencyText.padded("\(second)", 5) + " s" + counts
      + "   p99 accepted \(slowest(tally.acceptance)), seen \(slowest(tally.sight))"
  }

  // MARK: Phases

  /// Notes that a worker has come to the end of the phase. When all have, the next one begins.
  private mutating func arrive(_ worker: Int, now: Int) -> [Step] {
    arrived.insert(worker)
    guard arrived.count == options.processes else { return [] }
    arrived = []
    let drainLimit = BenchClients.drainLimit
    switch phase {
    case .connecting:
      phase = .writing(since: now + Self.lead)
      deadline = now + options.seconds * BenchClock.second + drainLimit + Self.slack
      let time = LatencyText.text(now - start)
      return [
        .progress("\(options.clients) clients have their scopes, after \(time)"),
        .order(.begin(at: now + Self.lead)),
      ]
    case .writing:
      report.measure(nanoseconds: options.seconds * BenchClock.second)
      phase = .draining
      deadline = now + drainLimit + Self.slack
      return [.order(.drain(accepted: accepted))]
    case .draining: return finish(.measured)
    case .stopping: return finish(.interrupted)
    case .over: return []
    }
  }

  private mutating func fail(_ reason: String) -> [Step] { finish(.failed(reason)) }

  private mutating func finish(_ outcome: Outcome) -> [Step] {
    phase = .over
    return [.finish(outcome)]
  }
}
