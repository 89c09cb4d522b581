import Foundation
import JetstreamSimulation
import Synchronization

@testable import Jetstream

/// Completions that come when a test says so.
private final class HeldCompletions: LogCompletions {
  private var boxes: [(isReady: () -> Bool, deliver: () -> Void)] = []

  func start<Success: Sendable, Failure>(
    _ work: (@escaping @Sendable (Result<Success, Failure>) -> Void) -> Void,
    then: @escaping (Result<Success, Failure>) -> Void
  ) {
    let box = HeldResult<Success, Failure>()
    work { box.put($0) }
    boxes.append(({ box.result != nil }, { if let result = box.result { then(result) } }))
  }

  func deliver() {
    let ready = boxes.filter { $0.isReady() }
    boxes.removeAll { $0.isReady() }
    for box in ready { box.deliver() }
  }
}

private final class HeldResult<Success: Sendable, Failure: Error>: Sendable {
  private let stored = Mutex<Result<Success, Failure>?>(nil)
  var result: Result<Success, Failure>? { stored.withLock { $0 } }
  func put(_ result: Result<Success, Failure>) { stored.withLock { $0 = result } }
}

/// A keeper of numbers on a simulated disk.
final class KeptNumbers {
  let disk = SimulatedDisk()
  let log: SimulatedLog
  let ticker = Ticker.manual()
  var keeper: RecordKeeper<Int, LogError>!
  var stored = 0
  /// The numbers of records that were reported.
  var reports: [Int] = []
  var notes: [String] = []
  /// The numbers of records at the snapshots.
  var snapshots: [Int] = []
  var isInStep = false
  var carried = 0
  /// True if each record is handed over at once.
  var outlives = true
  /// The error with which the log refuses everything; nil if it does not.
  var refusal: LogError?
  /// The error with which snapshots fail; nil if they do not.
  var snapshotRefusal: LogError?
  /// The number of records in each batch that was handed over.
  var batches: [Int] = []
  private let completions = HeldCompletions()
  private var last = 0

  init(snapshotEvery: Int, backlogBytes: Int = 1 << 20) throws {
    log = try SimulatedLog(
      disk, LogConfiguration(segmentBytes: 1 << 20, backlogBytes: backlogBytes))
    keeper = RecordKeeper(
      ticker: ticker, completions: completions, after: 0, tail: 0, snapshotEvery: snapshotEvery,
      owner: .init(
        encode: { RecordContent(.note, payload($0)) },
        mustOutliveProcess: { [unowned self] _ in outlives },
        append: { [log, unowned self] batch, done in
          batches.append(batch.records.count)
          if let refusal { return done(.failure(refusal)) }
          ClientLog(log.log).append(
            batch.records, after: batch.expected, ignoringBacklog: batch.ignoresBacklog, then: done)
        },
        stored: { [unowned self] in
          stored = max(stored, $0)
          reports.append($0)
        },
        snapshot: { [unowned self] in
          if isInStep { return nil }
          let count = last
          snapshots.append(count)
          if let snapshotRefusal { return RecordSnapshot { $1(.failure(snapshotRefusal)) } }
          return RecordSnapshot(carried: carried) { [log] in
            log.log.snapshot(at: $0, standingFor: [.note], state: { [] }, then: $1)
          }
        }, note: { [unowned self] in notes.append($0) }))
    keeper.begin()
  }

  func keep(_ count: Int) {
    for _ in 0..<count {
      last += 1
      keeper.keep(last)
    }
  }

  /// The disk does its work, and the results come home.
  func settle() {
    log.drain()
    completions.deliver()
  }
}
