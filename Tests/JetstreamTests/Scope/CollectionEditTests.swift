import Foundation
import Testing

@testable import Jetstream

/// What a change set says of a changed collection.
@Suite(.paced) struct CollectionEditTests {
  private let nodes = (0..<40).map { Node("\($0)") as ModelObject }

  private func texts(_ list: ModelList) -> [UUID] { list.models.map(\.uuid) }

  private func steps(on list: inout ModelList, _ generator: inout SeededGenerator)
    -> [ListOperation]
  {
    var steps: [ListOperation] = []
    for _ in 0..<Int.random(in: 1...12, using: &generator) {
      let count = list.count
      switch Int.random(in: 0..<4, using: &generator) {
      case 0 where count > 0:
        let at = Int.random(in: 0..<count, using: &generator)
        steps.append(.remove(list.remove(at: at), at: at))
      case 1 where count > 1:
        let from = Int.random(in: 0..<count, using: &generator)
        let to = Int.random(in: 0..<count, using: &generator)
        if from == to { continue }
        steps.append(.move(list[from], from: from, to: to))
        list.move(from: from, to: to)
      default:
        let node = nodes.randomElement(using: &generator)!
        let at =
          Bool.random(using: &generator) ? count : Int.random(in: 0...count, using: &generator)
        if list.insert(node, at: at) { steps.append(.insert(node, at: at)) }
      }
    }
    return steps
  }

  @Test(
    "the operations lead from the old content to the new one, and back",
    arguments: 1...200 as ClosedRange<UInt64>)
  func thereAndBack(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var list = ModelList(nodes.prefix(Int.random(in: 0...20, using: &generator)))
    for round in 0..<20 {
      let old = list
      let steps = steps(on: &list, &generator)
      let edit = CollectionEdit(steps, now: list)
      var result = CollectionContent(texts(old))
      result.apply(edit.forward)
      #expect(result.elements == texts(list), "seed \(seed), round \(round): \(edit.forward)")
      result.apply(edit.backward)
      #expect(result.elements == texts(old), "seed \(seed), round \(round): \(edit.backward)")
      #expect(edit.forward.count <= steps.count, "seed \(seed), round \(round)")
      #expect(edit.forward.isEmpty == old.isSame(as: list), "seed \(seed), round \(round)")
    }
  }
}
