import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamDocument

@Suite("The table of a document's rows", .paced)
struct RowIndexTests {
  @Test(
    "it finds what a dictionary finds, after any additions, replacements and removals",
    arguments: [UInt64](1...4))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let uuids = (0..<600).map { _ in UUID.random(using: &generator) }
    let first = Row.make(.base, uuids[0])
    var index = RowIndex(first)
    var expected = [uuids[0]: first]
    for step in 0..<6_000 {
      if step % 500 == 0 { index.reserve(Int.random(in: 0..<900, using: &generator)) }
      let uuid = uuids.randomElement(using: &generator)!
      // Waves, so that the table is now nearly empty and now full.
      if Int.random(in: 0..<600, using: &generator) < (step / 1_000 % 2 == 0 ? 450 : 150) {
        let row = Row.make(.base, uuid)
        index.insert(row)
        expected[uuid] = row
      } else {
        index.remove(uuid)
        expected[uuid] = nil
      }
      #expect(index.count == expected.count, "seed \(seed), \(step)")
      #expect(index[uuid] === expected[uuid], "seed \(seed), \(step)")
      if step % 100 == 0 {
        #expect(uuids.allSatisfy { index[$0] === expected[$0] }, "seed \(seed), \(step)")
        #expect(Set(index.all.map(\.uuid)) == Set(expected.keys), "seed \(seed), \(step)")
        #expect(index.checkInvariants() == [], "seed \(seed), \(step)")
      }
    }
  }

  @Test("a search reads few slots, for random UUIDs and for those that count up", arguments: 0...4)
  func search(_ counted: Int) {
    var generator = SeededGenerator(seed: 5)
    let start = (generator.next(), generator.next())
    let uuids = (0..<2_000 as Range<UInt64>).map { number in
      switch counted {
      case 0: UUID.random(using: &generator)
      case 1: UUID(halves: (start.0, start.1 &+ number))
      case 2: UUID(halves: (start.0 &+ number, start.1))
      case 3: UUID(halves: (start.0 &+ number << 32, start.1))
      default: UUID(halves: (start.0, start.1 &+ number << 48))
      }
    }
    var index = RowIndex(Row.make(.base, uuids[0]))
    for uuid in uuids.dropFirst() { index.insert(Row.make(.base, uuid)) }
    #expect(index.count == uuids.count)
    #expect(index.averageSearch < 5)
  }

  @Test("it keeps its rows, and lets go of those that are removed")
  func ownership() {
    let uuids = (0..<100).map { _ in UUID() }
    var index: RowIndex? = RowIndex(Row.make(.base, uuids[0]))
    for uuid in uuids.dropFirst() { index?.insert(Row.make(.base, uuid)) }
    weak let removed = index?[uuids[50]]
    weak let kept = index?[uuids[51]]
    #expect(removed != nil)
    index?.remove(uuids[50])
    #expect(removed == nil)
    #expect(kept != nil)
    index = nil
    #expect(kept == nil)
  }
}

extension UUID {
  /// Makes a UUID of two numbers, the digits of the first one in front.
  fileprivate init(halves: (UInt64, UInt64)) {
    self.init(
      uuid: unsafeBitCast((halves.0.bigEndian, halves.1.bigEndian), to: uuid_t.self))
  }

  fileprivate static func random(using generator: inout SeededGenerator) -> UUID {
    UUID(halves: (generator.next(), generator.next()))
  }
}
