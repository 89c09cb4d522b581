import Testing

@testable import Jetstream

@Suite("Contents of counters", .paced)
struct CounterContentTests {
  private func counter<Number: FixedWidthInteger>(_ number: Number) throws -> CounterContent {
    let range = try #require(CounterRange(Number.self))
    let json: JSONValue =
      Int64(exactly: number).map { .integer($0) } ?? .unsigned(UInt64(clamping: number))
    return try #require(CounterContent(json, within: range))
  }

  private static let steps: [Int64] = [.min, -200, -128, -3, -1, 0, 1, 2, 127, 200, .max]

  @Test("every sum of a small type stays in its range, is taken back, and is composed of one step")
  func small() throws {
    for number in Int8.min...Int8.max {
      let before = try counter(number)
      for first in Self.steps {
        for second in Self.steps {
          var after = before
          after.apply([.add(first), .add(second)])
          // The reference: Swift's own clamping, one step at a time.
          let middle = Int8(clamping: Int128(number) + Int128(first))
          #expect(after.number == Int128(Int8(clamping: Int128(middle) + Int128(second))))
          let way = before.operations(to: after)
          var composed = before
          composed.apply(way)
          #expect(composed == after && way.count <= 1, "\(number) \(first) \(second)")
          composed.apply(after.operations(to: before))
          #expect(composed == before, "\(number) \(first) \(second)")
        }
      }
    }
  }

  @Test("the whole range of 64 bits, signed or not, takes three steps up and two down")
  func large() throws {
    for (one, other) in [
      (try counter(Int64.min), try counter(Int64.max)),
      (try counter(UInt64.min), try counter(UInt64.max)),
    ] {
      for (from, to) in [(one, other), (other, one)] {
        let way = from.operations(to: to)
        var result = from
        result.apply(way)
        #expect(result == to && way.count == (from.number < to.number ? 3 : 2))
      }
    }
  }

  @Test("operations on collections, and JSON that is no whole number, have no effect")
  func others() throws {
    var content = try counter(5)
    content.apply(.remove(CollectionCases(1).models[0]))
    #expect(content.json == .integer(5))
    for json: JSONValue in [.string("5"), .null, .double(5.5)] {
      #expect(CounterContent(json, within: .unknown) == nil)
    }
  }
}
