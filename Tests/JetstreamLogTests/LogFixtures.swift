import Foundation
import JetstreamSimulation
import Synchronization

@testable import Jetstream

/// A queue whose work is done when a test says so.
final class ManualLogQueue: LogQueue {
  private let work = Mutex<[@Sendable () -> Void]>([])
  private let later = Mutex<[@Sendable () -> Void]>([])

  func run(_ work: @escaping @Sendable () -> Void) { self.work.withLock { $0.append(work) } }

  func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    later.withLock { $0.append(work) }
  }

  var isEmpty: Bool { work.withLock { $0.isEmpty } }

  /// The number of pieces that wait until time passes.
  var waitingCount: Int { later.withLock { $0.count } }

  var isWaiting: Bool { waitingCount > 0 }

  /// Does one piece. False if there is none.
  @discardableResult
  func step() -> Bool {
    guard let next = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
    next()
    return true
  }

  func drain() { while step() {} }

  /// Lets the time pass that was asked for.
  func passTime() {
    let due = later.withLock { later in
      defer { later = [] }
      return later
    }
    for work in due { work() }
  }
}

/// A log on a simulated disk, with queues that a test drives.
struct SimulatedLog {
  let log: RecordLog
  let queue = ManualLogQueue()
  let snapshots = ManualLogQueue()

  init(_ disk: SimulatedDisk, _ configuration: LogConfiguration = LogConfiguration()) throws {
    log = try RecordLog(
      disk, configuration: configuration, queue: queue, snapshotQueue: snapshots)
  }

  /// Does all work, also what comes of it.
  func drain() {
    while !queue.isEmpty || !snapshots.isEmpty {
      queue.drain()
      snapshots.drain()
    }
  }

  /// Appends records and has them written.
  func write(_ range: ClosedRange<Int>) throws {
    for number in range { try log.append(.note, payload(number)) }
    drain()
  }

  /// Makes a snapshot of all that was appended.
  func snapshot(at sequence: Int? = nil) throws {
    let box = ResultBox()
    let last = sequence ?? log.lastSequence
    log.snapshot(
      at: last, standingFor: [.note],
      state: { (0..<last).map { RecordContent(.state, payload($0 + 1)) } }, then: { box.put($0) })
    drain()
    try box.result?.get()
  }

  func close() throws {
    let box = ResultBox()
    log.close { box.put($0) }
    drain()
    try box.result?.get()
  }
}

/// Where a result that comes later is put.
final class ResultBox: Sendable {
  private let stored = Mutex<Result<Void, LogError>?>(nil)
  var result: Result<Void, LogError>? { stored.withLock { $0 } }
  func put(_ result: Result<Void, LogError>) { stored.withLock { $0 = result } }
  func put(_ result: Result<WrittenSnapshot<LogError>, LogError>) { put(result.map { _ in }) }
}

extension LogKind {
  static let note = LogKind("note")
  static let state = LogKind("state")
  static let other = LogKind("other")
}

/// A payload that tells its number.
func payload(_ number: Int, length: Int = 40) -> [UInt8] {
  let text = String(repeating: "abcdefgh\(number)-", count: length / 10 + 1).prefix(length)
  return Array(#"{"n":\#(number),"text":"\#(text)"}"#.utf8)
}

/// The numbers that payloads tell.
func numbers(_ records: [LogRecord]) -> [Int] {
  records.map { record in
    guard case .object(let object)? = try? JSONValue(parsing: record.payload),
      case .integer(let number)? = object["n"], payload(Int(number)) == record.payload
    else { return -1 }
    return Int(number)
  }
}

extension LogReader {
  /// All records from one on.
  func all(from sequence: Int? = nil) throws -> [LogRecord] {
    var cursor = try read(from: sequence)
    var records: [LogRecord] = []
    while let record = try cursor.next() { records.append(record) }
    return records
  }
}

/// How often a test repeats what it does: a number in the environment, or the default.
func count(_ variable: String, default number: Int) -> Int {
  ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? number
}
