import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

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

  @Test("A snapshot that has failed is due again after a sixteenth of the records between two")
  func failedSnapshot() throws {
    let kept = try KeptNumbers(snapshotEvery: 32)
    func keep(_ count: Int) {
      kept.keep(count)
      kept.ticker.tick()
      kept.settle()
    }
    kept.snapshotRefusal = .file(LogFileError(.write, LogNames.newSnapshot, code: ENOSPC))
    keep(32)
    #expect(kept.snapshots == [32] && kept.notes.count == 1)
    keep(1)
    #expect(kept.snapshots == [32])
    kept.snapshotRefusal = nil
    keep(1)
    #expect(kept.snapshots == [32, 34] && kept.notes.count == 1)
    keep(31)
    #expect(kept.snapshots == [32, 34])
    keep(1)
    #expect(kept.snapshots == [32, 34, 66])
  }

  @Test("The number of records until the next attempt doubles with each snapshot that fails")
  func failedSnapshots() throws {
    let kept = try KeptNumbers(snapshotEvery: 32)
    var count = 0
    func keep(until last: Int) {
      while count < last {
        count += 1
        kept.keep(1)
        kept.ticker.tick()
        kept.settle()
      }
    }
    let refusal = LogError.file(LogFileError(.write, LogNames.newSnapshot, code: ENOSPC))
    kept.snapshotRefusal = refusal
    keep(until: 200)
    #expect(kept.snapshots == [32, 34, 38, 46, 62, 94, 126, 158, 190])
    kept.snapshotRefusal = nil
    keep(until: 230)
    kept.snapshotRefusal = refusal
    keep(until: 259)
    #expect(kept.snapshots.suffix(4) == [190, 222, 254, 256])
    // A state that cannot be copied has cost nothing on the disk.
    kept.isInStep = true
    keep(until: 261)
    kept.isInStep = false
    keep(until: 262)
    #expect(kept.snapshots.suffix(2) == [256, 262])
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

  @Test(
    "The first record of a turn starts the disk, and those behind it are one batch, or several of 16"
  )
  func batches() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.outlives = false
    kept.keep(4)
    #expect(kept.batches == [1])
    kept.ticker.tick()
    #expect(kept.batches == [1, 3])
    kept.keep(2)
    kept.outlives = true
    kept.keep(1)
    #expect(kept.batches == [1, 3, 3])
    kept.outlives = false
    kept.keep(40)
    kept.ticker.tick()
    #expect(kept.batches == [1, 3, 3, 16, 16, 8])
    kept.settle()
    kept.keep(2)
    kept.ticker.tick()
    kept.settle()
    #expect(kept.stored == 49 && kept.batches.suffix(2) == [1, 1])
    #expect(try numbers(LogReader(kept.disk).all()) == Array(1...49))
  }

  @Test("While records have to be repeated first, later ones wait, and nothing is appended twice")
  func refusal() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.refusal = .backlog(bytes: 1)
    kept.keep(1)
    kept.settle()
    kept.keep(4)
    #expect(kept.batches == [1] && kept.notes.count == 1)
    kept.refusal = nil
    kept.ticker.advance(by: .seconds(1))
    kept.settle()
    #expect(kept.batches == [1, 1, 4] && kept.stored == 5 && kept.notes.count == 1)
    #expect(try numbers(LogReader(kept.disk).all()) == [1, 2, 3, 4, 5])
  }

  @Test("Records behind one for which a log has no room wait with it, and come in their order")
  func backlog() throws {
    let kept = try KeptNumbers(snapshotEvery: 0, backlogBytes: 500)
    kept.disk.isFull = true
    kept.keep(20)
    #expect(kept.log.log.lastSequence < 20)
    kept.settle()
    #expect(kept.stored == 0 && kept.notes.count == 1)
    kept.disk.isFull = false
    kept.keep(1)
    for _ in 1...5 {
      kept.ticker.advance(by: .seconds(1))
      kept.settle()
    }
    #expect(kept.stored == 21)
    #expect(try numbers(LogReader(kept.disk).all()) == Array(1...21))
  }

  @Test("A keeper that is left hands over what the log has refused")
  func leave() throws {
    for isFailureKnown in [false, true] {
      let kept = try KeptNumbers(snapshotEvery: 0, backlogBytes: 500)
      kept.disk.isFull = true
      kept.keep(20)
      #expect(kept.log.log.lastSequence < 20)
      if isFailureKnown { kept.settle() }
      var outcomes: [Result<Void, LogError>] = []
      kept.keeper.leave { outcomes.append($0) }
      #expect(kept.log.log.lastSequence == 20)
      kept.settle()
      #expect(outcomes.count == 1 && outcomes.map(failure(of:)) != [nil] && kept.stored == 0)
      kept.disk.isFull = false
      kept.keeper.finish { outcomes.append($0) }
      kept.settle()
      #expect(outcomes.count == 2 && outcomes.last.map(failure(of:)) == .some(nil))
      #expect(kept.stored == 20)
      #expect(try numbers(LogReader(kept.disk).all()) == Array(1...20))
    }
  }

  @Test("Records that did not come from the keeper are not reported")
  func foreign() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.keep(2)
    try kept.log.log.append(.note, payload(100))
    kept.settle()
    #expect(kept.reports == [2])
  }

  @Test(
    "Where nothing can be appended any more, that is said once, and what is left is not waited for")
  func end() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.keep(2)
    kept.settle()
    kept.refusal = .inUse(path: "elsewhere")
    kept.keep(1)
    kept.settle()
    kept.keep(1)
    kept.ticker.advance(by: .seconds(5))
    kept.settle()
    #expect(kept.stored == 2 && kept.notes.count == 1 && kept.batches == [1, 1, 1])
    var outcome: Result<Void, LogError>?
    kept.keeper.finish { outcome = $0 }
    #expect(outcome.map(failure(of:)) == .inUse(path: "elsewhere"))
  }

  @Test("Finishing waits until all is durable, says if that fails, and can be tried again at once")
  func finish() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.outlives = false
    kept.disk.inject([.sync(EIO)])
    kept.keep(3)
    var outcomes: [Result<Void, LogError>] = []
    kept.keeper.finish { outcomes.append($0) }
    #expect(kept.batches == [1, 2] && outcomes.isEmpty)
    kept.settle()
    #expect(outcomes.count == 1 && kept.stored == 0)
    kept.keeper.finish { outcomes.append($0) }
    kept.settle()
    #expect(
      outcomes.count == 2 && outcomes.last.map(failure(of:)) == .some(nil) && kept.stored == 3)
    kept.keeper.finish { outcomes.append($0) }
    #expect(outcomes.count == 3)
  }

  @Test("All who wait for a history to finish are told")
  func finishTwice() throws {
    let kept = try KeptNumbers(snapshotEvery: 0)
    kept.keep(1)
    var told: [Int] = []
    for caller in 0..<2 { kept.keeper.finish { _ in told.append(caller) } }
    #expect(told.isEmpty)
    kept.settle()
    #expect(told == [0, 1])
  }
}

private func failure(of result: Result<Void, LogError>) -> LogError? {
  if case .failure(let error) = result { error } else { nil }
}
