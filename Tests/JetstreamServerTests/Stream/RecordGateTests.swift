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

  @Test("An inverse that is left out is reported, with the name of the scope")
  func reportsLeftOut() throws {
    let world = InMemoryWorld()
    var records: [ScopeRecord] = []
    _ = try world.server.host(world.scope, history: nil) { records.append($0) }
    world.server.hostedScope(world.scope).order.records.longest = 3_000
    let peer = RawPeer.joined(world, protocol: 2)
    for letter in ["x", "y"] {
      let name = JSONValue.string(String(repeating: letter, count: 2_000))
      peer.send([
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": name])
      ])
      world.server.stored(records.count, of: world.scope)
    }
    #expect(records.map(\.undo.isEmpty) == [false, true])
    let reports = world.log.filter { $0.contains("cannot be undone") }
    #expect(reports.count == 1 && reports.allSatisfy { $0.hasPrefix("scope Canvas: ") })
  }

  @Test("A record with an inverse fits a log, also if each byte of its text takes six in JSON")
  func longestRecord() {
    #expect(RecordGate().longest <= JSONLimits.trusted.maxBytes / 6)
  }
}
