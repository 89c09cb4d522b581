import Foundation
import Testing

@testable import Jetstream

/// The algebra of operations on collections: every small case, and larger ones by chance, which are shrunk if they fail.
@Suite("Contents of collections", .paced)
struct CollectionContentTests {
  private let few = CollectionCases(4)
  private let many = CollectionCases(9)

  @Test("an operation does what a naive reference does, and taking it back leaves nothing")
  func applyAndInverse() {
    for content in few.all(upTo: 3) {
      for operation in few.operations(anchors: 2) {
        let after = content.after([operation])
        #expect(
          after.elements == CollectionCases.reference(content.elements, operation),
          "\(operation) on \(content)")
        let back = content.inverse(of: operation)
        #expect(after.after(back.map { [$0] } ?? []) == content, "\(operation) on \(content)")
        #expect((back == nil) == (after == content), "\(operation) on \(content)")
      }
    }
  }

  @Test("an anchored operation does the same, and says where by what is there")
  func anchored() {
    for content in few.all(upTo: 3) {
      for operation in few.operations(anchors: 2) {
        let anchored = content.anchored(operation)
        #expect(
          content.after(anchored.map { [$0] } ?? []) == content.after([operation]),
          "\(operation) on \(content)")
        guard let anchored else { continue }
        #expect(content.anchored(anchored) == anchored, "\(operation) on \(content)")
        if case .after(let others)? = anchored.place {
          #expect(others.allSatisfy(content.elements.contains), "\(operation) on \(content)")
        }
      }
    }
  }

  @Test("two operations composed do what they do one after the other, and are no more than two")
  func composed() {
    let operations = few.operations(anchors: 1)
    for content in few.all(upTo: 3) {
      for first in operations {
        for second in operations {
          let after = content.after([first, second])
          let composed = content.operations(to: after)
          if content.after(composed) == after, composed.count <= 2 { continue }
          Issue.record("\(first), then \(second) on \(content): \(composed)")
        }
      }
    }
  }

  @Test("merging is what the operations do that name all predecessors, for all small collections")
  func merged() {
    let four = CollectionCases(4)
    let all = four.all(upTo: 4)
    // One collection of each length is enough on one side: what the models are called does not matter.
    for base in (0...4).map({ CollectionContent(Array(four.models.prefix($0))) }) {
      for before in all {
        for after in all {
          let merged = base.merging(from: before, to: after)
          if merged == base.after(before.operations(to: after, anchors: 9)) { continue }
          Issue.record("\(base) with \(before) to \(after): \(merged)")
        }
      }
    }
  }

  @Test("long sequences are composed, taken back and merged", arguments: [UInt64](1...40))
  func random(seed: UInt64) {
    typealias Input = (content: CollectionContent, operations: [PropertyOperation])
    var generator = SeededGenerator(seed: seed)
    func fails(_ input: Input) -> Bool {
      var content = input.content
      var back: [PropertyOperation] = []
      var reference = content.elements
      for operation in input.operations {
        if let inverse = content.inverse(of: operation) { back.insert(inverse, at: 0) }
        content.apply(operation)
        reference = CollectionCases.reference(reference, operation)
      }
      return content.elements != reference || content.after(back) != input.content
        || input.content.after(input.content.operations(to: content)) != content
        || content.after(content.operations(to: input.content)) != input.content
        || input.content.merging(from: input.content, to: content) != content
    }
    for _ in 0..<100 {
      let count = Int.random(in: 0...12, using: &generator)
      let input = (many.content(&generator), (0..<count).map { _ in many.operation(&generator) })
      guard fails(input) else { continue }
      let least = minimal(
        input,
        smaller: { input in
          withoutOne(input.operations).map { (input.content, $0) }
            + withoutOne(input.content.elements).map { (CollectionContent($0), input.operations) }
        }, fails: fails)
      Issue.record("seed \(seed): \(least)")
    }
  }

  @Test("many operations at once do what they do one after the other", arguments: [UInt64](1...40))
  func together(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<20 {
      let count = Int.random(in: 30...60, using: &generator)
      let operations = (0..<count).map { _ in many.operation(&generator) }
      var start = many.content(&generator)
      if Bool.random(using: &generator), let first = start.elements.first {
        // No replica makes such a content.
        start = CollectionContent(start.elements + [first])
      }
      var expected = start
      for operation in operations { expected.apply(operation) }
      var together = start
      together.apply(operations)
      #expect(together == expected, "seed \(seed): \(operations) on \(start)")
    }
  }

  @Test("elements are found at their indices, however many are looked for")
  func indices() {
    let elements = (0..<100).map { _ in UUID() }
    let content = CollectionContent(elements)
    for count in [0, 1, 32, 33, 100] {
      let wanted = Set((0..<count).map { elements[($0 * 37) % 100] } + [UUID()])
      #expect(content.indices(of: wanted) == (0..<100).filter { wanted.contains(elements[$0]) })
    }
  }

  @Test("a failure is shrunk to what it takes")
  func shrinking() {
    let found = minimal(
      [3, 1, 4, 1, 5, 9, 2, 6], smaller: withoutOne, fails: { $0.contains(4) && $0.contains(9) })
    #expect(found == [4, 9])
  }
}

extension PropertyOperation {
  fileprivate var place: Place? {
    switch self {
    case .insert(_, let place), .move(_, let place): place
    case .remove, .add: nil
    }
  }
}
