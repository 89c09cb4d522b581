import Testing

@testable import Jetstream

@Suite("The queue of pending sets", .paced)
struct PendingSetsTests {
  private func entry(_ number: Int) -> PendingEntry {
    PendingEntry(
      number: number, PendingChangeSet(ChangeSet(fragments: [], undo: [])), basis: nil,
      madeAt: .zero)
  }

  @Test("Whatever is done to it, it holds what an array would", arguments: [1, 2, 3] as [UInt64])
  func likeAnArray(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var (queue, model, next) = (PendingQueue(), [Int](), 1)
    for step in 0..<5000 {
      // Long at first, then short again and again.
      switch Int.random(in: 0..<(step < 1000 ? 12 : 18), using: &generator) {
      case 0..<8:
        queue.append(entry(next))
        model.append(next)
      case 8:
        let place = Int.random(in: 0...model.count, using: &generator)
        let before = place == 0 ? 0 : model[place - 1]
        let number = place == model.count ? before + 1 : (before + model[place]) / 2
        guard number > before else { continue }
        queue.insert(entry(number))
        model.insert(number, at: place)
        next = max(next, number)
      case 9 where !model.isEmpty:
        let place = Int.random(in: 0..<model.count, using: &generator)
        #expect(queue.remove(at: place).number == model.remove(at: place))
      case 10 where step.isMultiple(of: 97):
        queue.removeAll()
        model.removeAll()
      default:
        if !model.isEmpty { #expect(queue.remove(at: 0).number == model.remove(at: 0)) }
      }
      next += 64
      for place in queue.indices.suffix(1) { queue[place].seen = model[place] }
      guard queue.map(\.number) == model, queue.count == model.count else {
        Issue.record("seed \(seed), step \(step): \(queue.map(\.number)) instead of \(model)")
        return
      }
    }
    #expect(queue.allSatisfy { $0.seen == 0 || $0.seen == $0.number })
  }
}
