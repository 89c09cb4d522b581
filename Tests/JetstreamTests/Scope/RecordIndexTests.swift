import Foundation
import Testing

@testable import Jetstream

@Suite(.paced) struct RecordIndexTests {
  @Test(
    "the index finds what a dictionary finds, after any additions and removals",
    arguments: [UInt64](1...4))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let index = RecordIndex()
    var expected: [UUID: Node] = [:]
    let nodes = (0..<600).map { _ in Node(uuid: UUID.random(using: &generator)) }
    for step in 0..<6_000 {
      let node = nodes.randomElement(using: &generator)!
      // Waves, so that the table is now nearly empty and now full.
      if Int.random(in: 0..<600, using: &generator) < (step / 1_000 % 2 == 0 ? 450 : 150) {
        #expect(
          index.insert(node.ensureRecord()) == (expected[node.uuid] == nil), "seed \(seed), \(step)"
        )
        expected[node.uuid] = node
      } else {
        index.remove(node.uuid)
        expected[node.uuid] = nil
      }
      #expect(index.count == expected.count, "seed \(seed), \(step)")
      if step % 100 == 0 {
        for node in nodes {
          #expect(
            index.record(of: node.uuid)?.model === expected[node.uuid], "seed \(seed), \(step)")
        }
        var found: Set<UUID> = []
        index.forEach { found.insert($0.uuid) }
        #expect(found == Set(expected.keys), "seed \(seed), \(step)")
      }
    }
  }

  @Test("another record with the same UUID is refused, and the first one stays")
  func duplicate() {
    let uuid = UUID()
    let (first, second) = (Node(uuid: uuid), Node(uuid: uuid))
    let index = RecordIndex()
    let inserted = [first, second].map { index.insert($0.ensureRecord()) }
    #expect(inserted == [true, false])
    #expect(index.record(of: uuid)?.model === first)
    #expect(index.count == 1)
  }

  @Test("a model that comes and goes many times in an interval is kept once")
  func toggled() {
    let root = Node("root")
    let child = Node("child")
    root.left = child
    let scope = manualScope(root)
    for _ in 0..<1_000 {
      root.left = nil
      root.left = child
    }
    root.left = nil
    #expect(scope.interval.departed.models.count == 1)
    #expect(scope.modelThatLeft(child.uuid) === child)
    root.left = child
    #expect(scope.modelThatLeft(child.uuid) == nil)
    #expect(scope.takeFragments().isEmpty)
    #expect(scope.interval.departed.models.isEmpty)
  }
}

extension UUID {
  fileprivate static func random(using generator: inout SeededGenerator) -> UUID {
    let halves = (generator.next(), generator.next())
    return UUID(uuid: unsafeBitCast(halves, to: uuid_t.self))
  }
}
