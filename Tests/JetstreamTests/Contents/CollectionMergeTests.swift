import Testing

@testable import Jetstream

@Suite(.paced) struct CollectionMergeTests {
  private func merge(_ base: String, _ before: String, _ after: String) -> String {
    String(CollectionContent.merge(base: Array(base), before: Array(before), after: Array(after)))
  }

  @Test(
    "two sides' edits are both there",
    arguments: [
      ("abx", "ab", "aby", "abxy"),  // append and append
      ("b", "ab", "aXb", "bX"),  // insert behind what the other side removed: no anchor, to the end
      ("acb", "abc", "abc", "acb"),  // only the other side moved
      ("bc", "abc", "bca", "bc"),  // move what the other side removed
      ("abx", "ab", "abx", "abx"),  // the same on both sides
      ("xab", "ab", "yab", "yxab"),  // insert at the front on both sides
      ("abcd", "abcd", "dbc", "dbc"),  // nothing on the other side
      ("", "ab", "abc", "c"),  // append to what the other side emptied
      ("s", "ls", "plqs", "pqs"),  // insert around what the other side removed: side by side
    ])
  func cases(_ base: String, _ before: String, _ after: String, _ expected: String) {
    #expect(merge(base, before, after) == expected)
  }

  @Test(
    "random merges have no duplicates, lose nothing, and are exact where one side is idle",
    arguments: [UInt64](1...5))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    func list() -> [Int] {
      Array(
        Array(0..<12).shuffled(using: &generator).prefix(Int.random(in: 0...12, using: &generator)))
    }
    for _ in 0..<2_000 {
      let (base, before, after) = (list(), list(), list())
      let result = CollectionContent.merge(base: base, before: before, after: after)
      #expect(Set(result).count == result.count, "seed \(seed)")
      let expected = Set(base).subtracting(Set(before).subtracting(after))
        .union(Set(after).subtracting(before))
      #expect(Set(result) == expected, "seed \(seed)")
      #expect(CollectionContent.merge(base: before, before: before, after: after) == after)
      #expect(CollectionContent.merge(base: base, before: after, after: after) == base)
    }
  }
}
