import Jetstream
import JetstreamServer

/// The history of a simulated server's scope: a log on a simulated disk, or a storage that servers share.
protocol SimulatedStore: AnyObject {
  /// The lease of the process that runs.
  var lease: any ScopeLease { get }
  /// The sequence number of the last record.
  var last: Int { get }
  func read() throws -> StoredHistory
  /// Has records appended, up to one with a sequence number.
  ///
  /// - Parameter outlivesProcess: whether they must be there if the process is killed right after.
  func append(_ last: Int, outlivesProcess: Bool, _ append: (any ScopeLease) -> Void)
  /// Sets the time at which work is asked for from now on.
  func setTime(_ now: Duration)
  /// Does the work that is due until `now`.
  func work(until now: Duration)
  /// Does all work that was asked for, at once.
  func settle()
  /// The time at which the next piece of work is done; nil if there is none.
  var deadline: Duration? { get }
  /// True while there is work that was asked for.
  var isBusy: Bool { get }
  /// Makes the next operation of some kind fail.
  func fail(_ pick: Int)
  /// Ends the process while work may be under way, and takes the lease for the next one.
  func crash(now: Duration)
  /// A copy of all that is stored.
  var copy: SimulatedCopy { get }
  /// Ends the process, puts a copy in place of what is stored, and takes the lease for the next one.
  func restore(_ copy: SimulatedCopy)
  func note(_ problem: String)
  /// Removes and returns the descriptions of what has gone wrong.
  func takeProblems() -> [String]
}

/// A copy of what is stored.
enum SimulatedCopy {
  case files([String: [UInt8]])
  case shared(MemoryStorage.Copy)
}

/// A server's log on a simulated disk.
final class SimulatedServerLog: SimulatedStore {
  private let log: SimulatedLog

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    log = SimulatedLog(random: random, delay: delay)
  }

  var lease: any ScopeLease { LogLease(FragmentLog(log.records)) }
  var last: Int { log.records.lastSequence }
  func read() throws -> StoredHistory { try LogLease(FragmentLog(log.records)).readNow() }

  func append(_ last: Int, outlivesProcess: Bool, _ append: (any ScopeLease) -> Void) {
    log.append(last, outlivesProcess: outlivesProcess) { append(LogLease(FragmentLog($0))) }
  }

  func setTime(_ now: Duration) { log.setTime(now) }
  func work(until now: Duration) { _ = log.durable(now: now) }
  func settle() { log.settle() }
  var deadline: Duration? { log.deadline }
  var isBusy: Bool { log.isBusy }
  func fail(_ pick: Int) { log.fail(pick) }
  func crash(now: Duration) { _ = log.crash(now: now) }
  var copy: SimulatedCopy { .files(log.files) }

  func restore(_ copy: SimulatedCopy) {
    guard case .files(let files) = copy else {
      preconditionFailure("A log is restored from files.")
    }
    log.restore(files)
  }

  func note(_ problem: String) { log.note(problem) }
  func takeProblems() -> [String] { log.takeProblems() }
}

/// A storage that servers share. A server that has crashed may have left requests that still arrive, before or after the
/// next server has taken the lease.
final class SimulatedSharedStore: SimulatedStore {
  private static let scope = "scope"

  private let storage: MemoryStorage
  private let delay: ClosedRange<Int>
  private var random: SimulationRandom
  private var queue: SimulatedLogQueue
  /// The queues of processes that have ended, of which something may still arrive.
  private var old: [SimulatedLogQueue] = []
  private var current: MemoryLease
  private var now: Duration = .zero
  private var problems: [String] = []

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    var random = random
    storage = MemoryStorage(keepsRecords: random.chance(0.5))
    queue = SimulatedLogQueue(random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    self.delay = delay
    self.random = random
    do { current = try storage.takeLease(of: Self.scope, on: queue) } catch {
      preconditionFailure("A lease that was never taken is not free: \(error)")
    }
  }

  var lease: any ScopeLease { current }
  var last: Int { current.readNow().last }
  func read() -> StoredHistory { current.readNow() }

  func append(_ last: Int, outlivesProcess: Bool, _ append: (any ScopeLease) -> Void) {
    append(current)
  }

  func setTime(_ now: Duration) {
    self.now = now
    queue.setTime(now)
  }

  func work(until now: Duration) {
    setTime(now)
    while old.contains(where: { $0.step(until: now) }) || queue.step(until: now) {}
    old.removeAll { $0.deadline == nil }
  }

  func settle() { while queue.step() {} }

  var deadline: Duration? { queue.deadline }
  var isBusy: Bool { queue.isBusy }

  func fail(_ pick: Int) {
    let kinds = MemoryStorage.Fault.allCases
    storage.inject([kinds[pick % kinds.count]])
  }

  func crash(now: Duration) {
    setTime(now)
    // Requests that are on their way arrive before the lease has run out, or after that.
    while random.chance(0.5), queue.step() {}
    takeOver()
  }

  var copy: SimulatedCopy { .shared(storage.copy) }

  func restore(_ copy: SimulatedCopy) {
    guard case .shared(let copy) = copy else {
      preconditionFailure("A shared storage is restored from a copy of one.")
    }
    storage.restore(copy)
    takeOver()
  }

  private func takeOver() {
    storage.clearFaults()
    old.append(queue)
    queue = SimulatedLogQueue(random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    storage.expireLease(of: Self.scope)
    do { current = try storage.takeLease(of: Self.scope, on: queue) } catch {
      note("The lease of a server that has crashed cannot be taken: \(error)")
    }
  }

  func note(_ problem: String) { problems.append(problem) }

  func takeProblems() -> [String] {
    defer { problems = [] }
    return problems
  }
}
