import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

/// Completions that come when a test says so.
private final class HeldCompletions: LogCompletions {
  private var boxes: [(ResultBox, (Outcome) -> Void)] = []

  func start(
    _ work: (@escaping @Sendable (Outcome) -> Void) -> Void, then: @escaping (Outcome) -> Void
  ) {
    let box = ResultBox()
    work { box.put($0) }
    boxes.append((box, then))
  }

  func deliver() {
    let ready = boxes.filter { $0.0.result != nil }
    boxes.removeAll { $0.0.result != nil }
    for (box, then) in ready { then(box.result!) }
  }
}

/// A keeper of numbers on a simulated disk.
private final class KeptNumbers {
  let disk = SimulatedDisk()
  let log: SimulatedLog
  let ticker = Ticker.manual()
  var keeper: RecordKeeper<Int>!
  var stored = 0
  /// The numbers of records that were reported.
  var reports: [Int] = []
  var notes: [String] = []
  /// How many records there were at each snapshot.
  var snapshots: [Int] = []
  var isInStep = false
  var carried = 0
  private let completions = HeldCompletions()
  private var last = 0

  init(snapshotEvery: Int) throws {
    log = try SimulatedLog(disk)
    keeper = RecordKeeper(
      ticker: ticker, completions: completions, tail: 0, snapshotEvery: snapshotEvery,
      owner: .init(
        append: { [log] number throws(LogError) in try log.log.append(.note, payload(number)) },
        stored: { [unowned self] in
          stored = max(stored, $0)
          reports.append($0)
        },
        snapshot: { [unowned self] in
          if isInStep { return nil }
          let count = last
          snapshots.append(count)
          return RecordSnapshot(carried: carried) { [log] in
            log.log.snapshot(at: count, standingFor: [.note], state: { [] }, then: $0)
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

@Suite("Keeping records")
struct RecordKeeperTests {
  @Test("A snapshot is taken in a turn of its own, not while a record is handed over")
  func turn() throws {
    let kept = try KeptNumbers(snapshotEvery: 1)
    kept.isInStep = true
    kept.keep(1)
    kept.isInStep = false
    #expect(kept.snapshots.isEmpty && kept.log.log.lastSequence == 1)
    kept.ticker.tick()
    #expect(kept.snapshots == [1])
  }

  @Test("Snapshots follow each other within a bounded number of records, whatever is carried along")
  func bounded() throws {
    let kept = try KeptNumbers(snapshotEvery: 10)
    for round in 0..<100 {
      kept.carried = 3
      // Now and then a turn comes in the middle of a step.
      kept.isInStep = round.isMultiple(of: 3)
      kept.keep(1)
      kept.ticker.tick()
      kept.settle()
    }
    #expect(kept.snapshots.count >= 8, "\(kept.snapshots)")
    kept.carried = 40
    kept.isInStep = false
    let before = kept.snapshots.count
    for _ in 0..<200 {
      kept.keep(1)
      kept.ticker.tick()
      kept.settle()
    }
    #expect((4...7).contains(kept.snapshots.count - before), "\(kept.snapshots)")
    #expect(kept.stored == 300)
  }

  @Test("Records that become durable together are reported together, and none twice")
  func groups() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.keep(10)
    #expect(kept.reports.isEmpty)
    kept.settle()
    kept.settle()
    #expect(kept.reports == [10])
    kept.keep(3)
    kept.settle()
    kept.keep(4)
    kept.settle()
    kept.settle()
    #expect(kept.reports == [10, 13, 17])
  }

  @Test("No snapshot is taken while the last one is being written")
  func oneAtATime() throws {
    let kept = try KeptNumbers(snapshotEvery: 1)
    for _ in 0..<5 {
      kept.keep(1)
      kept.ticker.tick()
    }
    #expect(kept.snapshots == [1])
    kept.settle()
    kept.ticker.tick()
    #expect(kept.snapshots == [1, 5])
  }

  @Test("Records are still handed to the log after a failure, and counted once it is over")
  func failure() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.disk.inject([.sync(EIO)])
    kept.keep(3)
    kept.settle()
    #expect(kept.stored == 0 && kept.notes.count == 1)
    kept.keep(2)
    #expect(kept.log.log.lastSequence == 5)
    kept.ticker.advance(by: .seconds(1))
    kept.settle()
    #expect(kept.stored == 5 && kept.notes.count == 1)
  }
}
