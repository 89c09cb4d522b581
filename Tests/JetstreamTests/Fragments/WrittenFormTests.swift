import Foundation
import Testing

@testable import JetstreamDocument

@Suite("Values that are written alike")
struct WrittenFormTests {
  static let (composed, decomposed): (JSONValue, JSONValue) = ("\u{E9}", "e\u{301}")

  static let values: [JSONValue] = [
    .null, true, false, 0, 1, -1, .unsigned(.max), 0.5, .double(1), .float(0.1), .double(0.1),
    .double(-0.0), .double(.nan), .float(1), .double(.infinity), .double(1e300), .float(1e30), "",
    "a", "1", "null", composed, decomposed, [], [1], [.double(1)], [[composed]], [[decomposed]],
    [1, 2], [2, 1], [.null], [.double(.nan)], [:], ["a": 1, "b": 2], ["b": .double(1), "a": 2],
    ["b": 2, "a": .float(1)], ["a": composed], ["a": decomposed], ["\u{E9}": 1],
    ["e\u{301}": 1],
  ]

  @Test("They are those whose canonical texts have the same bytes")
  func texts() {
    for first in Self.values {
      for second in Self.values {
        let isSame = Array(first.canonicalText.utf8) == Array(second.canonicalText.utf8)
        #expect(first.isWritten(as: second) == isSame, "\(first), \(second)")
        let contents = (PropertyContent(first), PropertyContent(second))
        #expect(contents.0.isWritten(as: contents.1) == isSame, "\(first), \(second)")
      }
    }
  }

  @Test("Collections are compared by their models, in order")
  func collections() {
    let (a, b) = (UUID(), UUID())
    let both = PropertyContent.list(CollectionContent([a, b]))
    #expect(both.isWritten(as: PropertyContent(both.json)))
    #expect(
      both.isWritten(as: .json(both.json)) && PropertyContent.json(both.json).isWritten(as: both))
    #expect(!both.isWritten(as: .list(CollectionContent([b, a]))))
    #expect(!both.isWritten(as: .json(.null)) && !both.isWritten(as: .list(CollectionContent())))
  }
}
