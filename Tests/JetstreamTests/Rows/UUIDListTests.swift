import Foundation
import Testing

@testable import JetstreamDocument

@Suite("The list of UUIDs with a hash table", .paced)
struct UUIDListTests {
  @Test(
    "it finds what a dictionary of indices finds, in the order of the additions", arguments: 1...4)
  func random(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let uuids = (0..<400).map { _ in UUID() }
    var list = UUIDList()
    var expected: [UUID] = []
    var indices: [UUID: Int] = [:]
    for step in 0..<1_200 {
      if step % 300 == 100 { list.reserve(Int.random(in: 0..<600, using: &generator)) }
      let uuid = uuids.randomElement(using: &generator)!
      let (isNew, index) = list.insert(uuid)
      #expect(isNew == (indices[uuid] == nil), "seed \(seed), \(step)")
      if isNew {
        indices[uuid] = expected.count
        expected.append(uuid)
      }
      #expect(index == indices[uuid], "seed \(seed), \(step)")
      #expect(list.count == expected.count, "seed \(seed), \(step)")
      if step % 50 == 0 {
        #expect(uuids.allSatisfy { list.index(of: $0) == indices[$0] }, "seed \(seed), \(step)")
      }
    }
    #expect(Array(list.elements) == expected)
  }

  @Test("of UUIDs that occur several times, it has the first ones")
  func repeated() {
    let uuids = (0..<20).map { _ in UUID() }
    #expect(Array(UUIDList(uuids + uuids.reversed()).elements) == uuids)
    #expect(UUIDList([]).isEmpty)
  }
}
