import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

private final class Knot: ModelObject {
  @Property var left: ModelArray<Knot> = []
  @Property var right: ModelArray<Knot> = []
  @Property var only: Knot?
}

/// Many moves at once, decided by one walk over all models above them, and by a search for each.
@Suite("Which moves are lost", .paced)
struct MoveReachTests {
  /// Knots that hold each other in any way, with cycles, and a root that leads to all of them.
  private static func web(_ generator: inout SeededGenerator) -> (RowsContent, [UUID]) {
    let content = RowsContent(name: "Web", ScopeSchema(of: Knot.self))
    let root = content.root!.uuid
    let knots = (0..<12).map { _ in UUID() }
    let additions = knots.indices.map { at in
      let held = knots.shuffled(using: &generator).prefix(Int.random(in: 0...3, using: &generator))
      return SyncFragment(
        .add, uuid: knots[at], className: "Knot",
        properties: ["right": .array(held.map { .string($0.wireText) })])
    }
    let change = SyncFragment(
      .change, uuid: root, className: "Knot",
      properties: ["left": .array(knots.map { .string($0.wireText) })])
    #expect(content.apply(additions + [change]) { _ in nil }.isEmpty)
    // Then it leads to most of them by others only.
    let rest = SyncFragment(
      .change, uuid: root, className: "Knot", properties: [:],
      operations: ["left": knots.dropFirst(3).map { .remove($0) }])
    #expect(content.apply([rest]) { _ in nil }.isEmpty)
    return (content, [root] + knots.filter { content.sharedModel($0) != nil })
  }

  private static func moves(
    in content: RowsContent, _ models: [UUID], _ generator: inout SeededGenerator
  ) -> [UUID: MoveReach.Move] {
    var moves: [UUID: MoveReach.Move] = [:]
    for uuid in models.dropFirst() where Int.random(in: 0..<3, using: &generator) > 0 {
      let holders = content.holders(of: content.sharedModel(uuid)!)
      let sources = holders.filter { _ in Int.random(in: 0..<4, using: &generator) > 0 }
      if sources.isEmpty { continue }
      let targets = models.shuffled(using: &generator)
        .prefix(Int.random(in: 0...2, using: &generator))
      moves[uuid] = MoveReach.Move(
        sources: Set(sources), targets: Set(targets.map { PropertyKey(uuid: $0, name: "left") }))
    }
    return moves
  }

  @Test("One walk and a search for each decide alike", arguments: [UInt64](1...30))
  func alike(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var lostCount = 0
    for _ in 0..<20 {
      let (content, models) = Self.web(&generator)
      let moves = Self.moves(in: content, models, &generator)
      var change = SyncFragment(
        .change, uuid: models.randomElement(using: &generator)!, className: "Knot",
        properties: [:])
      if Bool.random(using: &generator) {
        change.properties["only"] = .string(models.randomElement(using: &generator)!.wireText)
      }
      let check = FragmentValidator(content: content, memory: NoMemory(), fragments: [change])
      let reach = MoveReach(of: moves, by: [change], in: check)
      let first = Set(moves.keys.filter { _ in Int.random(in: 0..<8, using: &generator) == 0 })
      var (each, together) = (first, first)
      reach.findLost(among: Set(moves.keys), &each, few: .max)
      reach.findLost(among: Set(moves.keys), &together, few: 0)
      #expect(each == together, "seed \(seed): \(moves) in \(content.sharedState())")
      lostCount += each.count - first.count
    }
    #expect(lostCount > 0)
  }
}
