import Testing

@testable import Jetstream

@Suite("The order of keys")
struct ByteOrderTests {
  @Test("It is that of the UTF-8 bytes, which the order of strings is not")
  func bytes() {
    let texts = [
      "", "a", "ab", "b", "\0", "a\0", "\u{7F}", "\u{E9}", "e\u{301}", "\u{FFFD}", "\u{10000}",
      "Z", "z", "10", "9", String(repeating: "a long one ", count: 4),
    ]
    for first in texts {
      for second in texts {
        #expect(
          first.precedesInBytes(second) == Array(first.utf8).lexicographicallyPrecedes(second.utf8),
          "\(first.debugDescription) and \(second.debugDescription)")
      }
    }
    let sorted = texts.shuffled().sortedByBytes()
    #expect(
      sorted.map { Array($0.utf8) }
        == texts.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) })
  }
}
