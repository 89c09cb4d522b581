import Testing

@testable import Jetstream

@Suite(.paced) struct OrderTreeTests {
  @Test(
    "Random insertions and removals agree with an array, and the tree stays balanced",
    arguments: [UInt64](1...6))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var tree = OrderTree()
    var model: [(slot: Int, weight: Int)] = []
    var free = Array(0..<400)
    for step in 0..<3_000 {
      let place = "seed \(seed), step \(step)"
      // Grows, shrinks and grows again.
      let grows = Int.random(in: 0..<10, using: &generator) < (step / 700 % 2 == 0 ? 7 : 3)
      if grows, !free.isEmpty {
        let slot = free.remove(at: .random(in: 0..<free.count, using: &generator))
        let position = Int.random(in: 0...model.count, using: &generator)
        let weight = Int.random(in: 0...3, using: &generator)
        if Bool.random(using: &generator) {
          tree.insert(slot, weight: weight, at: position)
        } else {
          let behind = Set(model[position...].map(\.slot))
          tree.insert(slot, weight: weight) { behind.contains($0) }
        }
        model.insert((slot, weight), at: position)
      } else if !model.isEmpty {
        let position = Int.random(in: 0..<model.count, using: &generator)
        let slot = model.remove(at: position).slot
        tree.remove(slot)
        free.append(slot)
        #expect(!tree.contains(slot), "\(place)")
      }
      if !model.isEmpty {
        let position = Int.random(in: 0..<model.count, using: &generator)
        let weight = Int.random(in: 0...3, using: &generator)
        model[position].weight = weight
        tree.setWeight(weight, of: model[position].slot)
        #expect(tree[position] == model[position].slot, "\(place)")
        #expect(tree.rank(of: model[position].slot) == position, "\(place)")
        let before = model[..<position].reduce(0) { $0 + $1.weight }
        #expect(tree.weight(before: model[position].slot) == before, "\(place)")
      }
      #expect(tree.count == model.count, "\(place)")
      #expect(tree.totalWeight == model.reduce(0) { $0 + $1.weight }, "\(place)")
      if step.isMultiple(of: 50) {
        #expect(Array(tree.slots) == model.map(\.slot), "\(place)")
        if step.isMultiple(of: 500) {
          let weights = Dictionary(uniqueKeysWithValues: model.map { ($0.slot, $0.weight) })
          tree.rebuild(model.map(\.slot)) { weights[$0]! }
        }
        let bound =
          2.5 * Double(max(1, (model.count + 1).bitWidth - (model.count + 1).leadingZeroBitCount))
        #expect(Double(tree.depth) <= bound, "\(place)")
      }
    }
  }

  @Test("Rows that only come at the end, and go from the front, keep the tree shallow")
  func sequential() {
    var tree = OrderTree()
    for slot in 0..<4_096 { tree.insert(slot, at: slot) }
    #expect(tree.depth <= 24)
    for slot in 0..<4_000 { tree.remove(slot) }
    #expect(Array(tree.slots) == Array(4_000..<4_096))
    #expect(tree.depth <= 14)
  }

  @Test("a copy of a tree stays what it is")
  func copies() {
    var tree = OrderTree()
    tree.rebuild([3, 1, 2])
    let copy = tree
    tree.remove(1)
    #expect(Array(copy.slots) == [3, 1, 2])
    #expect(Array(tree.slots) == [3, 2])
  }
}
