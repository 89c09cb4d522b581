import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamDocument

@Suite("Values that are read member by member", .paced)
struct MemberwiseValueTests {
  private let cases: [JSONValue] = [
    .null, 1, "text", true, .object([:]), .object(["a": 1]), .object(["a": 1.0]),
    .object(["b": 1, "a": 2]), .object(["a": 2, "b": 1]), .object(["a": 2, "c": 1]),
    .object(["a": "text"]), .object(["a": .null]), .object(["é": 1]), .object(["e\u{301}": 1]),
    .object(["a": 1.5]), .double(1), .double(1.5), .unsigned(7), .integer(7),
    .object(JSONObject((0..<40).map { ("\($0)", .integer($0)) })),
  ]

  private func check<Value: PropertyValue>(_: Value.Type) {
    let codec = TypeCodec(Property<Value>.self)
    for a in cases {
      let normal = Property<Value>.normalized(a)
      #expect(codec.normalized(a)?.text == normal?.text, "\(Value.self), \(a.text)")
      #expect(codec.normalized(a) == normal, "\(Value.self), \(a.text)")
      #expect(codec.accepts(a) == Property<Value>.accepts(a), "\(Value.self), \(a.text)")
      for b in cases {
        #expect(
          codec.areSame(a, b) == Property<Value>.areSame(a, b),
          "\(Value.self), \(a.text), \(b.text)")
      }
    }
  }

  @Test("they are normal, accepted and the same as values that are made are")
  func agrees() {
    check(Int.self)
    check(String.self)
    check(Bool.self)
    check(Double.self)
    check([String: Int].self)
    check([String: Double?].self)
    check([String: JSONValue].self)
    check([String: [String: Int]].self)
  }

  @Test("an object in the order of its keys' bytes finds each of them")
  func sorted() {
    var generator = SeededGenerator(seed: 3)
    let pieces = ["", "a", "b", "ab", "long text ", "é", "e\u{301}", "\u{0}", "zz", "😀"]
    let keys = Set(
      (0..<300).map { _ in
        (0..<4).map { _ in pieces.randomElement(using: &generator)! }.joined()
      }.map { EntryName.normal($0) })
    #expect(Array(keys).sortedByBytes() == keys.sorted { $0.precedesInBytes($1) })
    let object = JSONObject(keys.enumerated().map { ($1, .integer(Int64($0))) })
    let sorted = object.sortedByKey(transforming: { $0 })!
    #expect(sorted.keys == keys.sorted { $0.precedesInBytes($1) })
    #expect(sorted == object)
    #expect(keys.allSatisfy { sorted[$0] == object[$0] })
    #expect(sorted.sortedByKey(transforming: { $0 })!.keys == sorted.keys)
    #expect(object.sortedByKey(transforming: { $0 == 7 ? nil : $0 }) == nil)
  }
}
