import Foundation
import Testing

@testable import Jetstream

/// Sets of elements that a hash table does not tell apart by their hashes.
@Suite("Sets of elements with one hash", .paced)
struct EqualHashTests {
  /// Numbers that are the same up to the digit behind which a `Double` sees no difference.
  private func decimals(_ count: Int) -> JSONValue {
    .array(
      (0..<count).map { .string("1." + String(repeating: "0", count: 20) + "\(100_000 + $0)") })
  }

  /// Bytes that are the same in front of the last ones.
  private func data(_ count: Int) -> JSONValue {
    .array(
      (0..<count).map { number in
        Data((String(repeating: "a", count: 96) + "\(100_000 + number)").utf8)._jsonValue
      })
  }

  private func expectLinear<Element: PropertyValue & Hashable>(
    _ type: Element.Type, _ isExpected: @escaping (Set<Element>?) -> Bool,
    _ elements: (Int) -> JSONValue
  ) {
    let found = growth(from: 1_000) { count in
      let json = elements(count)
      return { #expect(isExpected(Set<Element>._decode(json)), "\(type)") }
    }
    #expect(found < mostLinearGrowth, "\(type)")
  }

  @Test("Those that are not a number become one, in linear time")
  func notNumbers() {
    func check<Element: PropertyValue & Hashable>(_ type: Element.Type, _ element: JSONValue) {
      expectLinear(type, { $0?.count == 1 }) { .array(Array(repeating: element, count: $0)) }
    }
    check(Double.self, "NaN")
    check(Float.self, "NaN")
    check(Date.self, "NaN")
    check(Decimal.self, "NaN")
    check(Double?.self, "NaN")
    check([Double].self, [1, "NaN"])
    check([String: Double].self, ["a": "NaN"])
    check(Set<Double>.self, ["NaN"])
    #expect(Set<Double>._decode(["NaN", 1, "NaN", 2, 1])?.count == 3)
    #expect(Set<[Double]>._decode([["NaN", 1], ["NaN", 2], ["NaN", 1]])?.count == 2)
  }

  @Test("More than a hundred of them are refused, in linear time")
  func refused() {
    expectLinear(Decimal.self, { $0 == nil }, decimals)
    expectLinear(Data.self, { $0 == nil }, data)
    expectLinear([Decimal].self, { $0 == nil }) { count in
      guard case .array(let elements) = decimals(count) else { return .null }
      return .array(elements.map { [$0] })
    }
    let sentence = "more than 100 elements of the set have the same hash"
    #expect(Set<Decimal>._problem(with: decimals(101)) == sentence)
    #expect(Set<Data>._problem(with: data(101)) == sentence)
    #expect(Set<Decimal>._problem(with: decimals(100)) == nil)
    #expect(Set<Decimal>._problem(with: ["x"]) == "\"x\" is no decimal number")
  }

  @Test("A hundred of them are taken, each however often it comes")
  func taken() {
    guard case .array(let numbers) = decimals(100), case .array(let bytes) = data(100) else {
      return
    }
    #expect(Set<Decimal>._decode(.array(numbers + numbers + [2, "NaN"]))?.count == 102)
    #expect(Set<Data>._decode(.array(bytes + bytes))?.count == 100)
    let many = (0..<10_000).map { JSONValue.integer(Int64($0)) }
    #expect(Set<Int>._decode(.array(many + many))?.count == 10_000)
  }
}
