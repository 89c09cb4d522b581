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
}
