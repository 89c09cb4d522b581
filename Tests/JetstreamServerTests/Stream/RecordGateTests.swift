import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("What waits for records to be durable")
struct RecordGateTests {
  @Test("Actions run in the order of the calls, also those that others of them add")
  func order() {
    let gate = RecordGate()
    gate.store = { _ in }
    var order: [Int] = []
    gate.keep(ScopeRecord(sequence: 1, fragments: []))
    gate.whenStored {
      order.append(1)
      gate.whenStored { order.append(3) }
      gate.keep(ScopeRecord(sequence: 2, fragments: []))
      gate.whenStored { order.append(4) }
      // An answer may come while others are given.
      gate.stored(2)
    }
    gate.whenStored { order.append(2) }
    gate.stored(1)
    #expect(order == [1, 2, 3, 4] && gate.isCurrent && gate.checkInvariants() == [])
  }

  @Test("The inverse of a change set is left out of a record that would be too long with it")
  func longRecord() {
    let gate = RecordGate()
    var kept: [ScopeRecord] = []
    gate.store = { kept.append($0) }
    gate.longest = 1_000
    for length in [500, 1_000] {
      var record = ScopeRecord(sequence: kept.count + 1, fragments: [])
      record.undo = [
        SyncFragment(
          .change, uuid: UUID(), className: "Canvas",
          properties: ["name": .string(String(repeating: "a", count: length))])
      ]
      gate.keep(record)
    }
    #expect(kept.map(\.undo.count) == [1, 0])
    #expect(kept.map(\.sequence) == [1, 2] && gate.checkInvariants() == [])
  }
}
