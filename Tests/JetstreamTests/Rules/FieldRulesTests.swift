import Foundation
import Testing

@testable import Jetstream

/// The rules of properties, on plain values.
@Suite struct FieldRulesTests {
  private func problem(_ options: PropertyOptions, _ json: JSONValue) -> String? {
    options.rules.problem(with: json, called: "it")
  }

  @Test(
    "A number outside of its range is told with the range",
    arguments: [
      (.range(0...100), 100, nil),
      (.range(0...100), 101, "it has to be from 0 to 100, not 101"),
      (.range(0...100), 100.5, "it has to be from 0 to 100, not 100.5"),
      (.range(0...), -1, "it has to be at least 0, not -1"),
      (.range(...0.5), 0.75, "it has to be at most 0.5, not 0.75"),
      (.range(5...5), 4, "it has to be 5, not 4"),
      (.range(0...100), "NaN", #"it has to be from 0 to 100, not "NaN""#),
      (.range(0...100), .null, nil),
      (.range(Decimal(0)...Decimal(1)), "0.999999999999999999999", nil),
      (
        .range(Decimal(0)...Decimal(1)), "1.000000000000000000001",
        #"it has to be from 0 to 1, not "1.000000000000000000001""#
      ),
    ] as [(PropertyOptions, JSONValue, String?)])
  func range(_ options: PropertyOptions, _ json: JSONValue, _ expected: String?) {
    #expect(problem(options, json) == expected)
  }

  @Test("Numbers are compared with all their digits, whatever their types")
  func exactNumbers() {
    let large: PropertyOptions = .range(...(Int64.max - 1))
    #expect(problem(large, .integer(.max - 1)) == nil)
    #expect(problem(large, .integer(.max)) != nil)
    #expect(problem(large, .unsigned(.max)) != nil)
    #expect(problem(large, .double(9.3e18)) != nil)
    #expect(problem(large, .double(-1e300)) == nil)
    #expect(problem(.range(UInt64.max...), .unsigned(.max)) == nil)
    #expect(problem(.range(UInt64.max...), .integer(.max)) != nil)
    // As a replica reads it from its text.
    #expect(problem(.range(...Float(0.1)), .double(0.1)) == nil)
    #expect(problem(.range(0.1...), .float(0.1)) == nil)
    #expect(problem(.range(1...2), .double(0.999_999)) != nil)
    #expect(problem(.range(1...2), .double(2.000_001)) != nil)
    #expect(problem(.range(0.5...1.5), 1) == nil && problem(.range(0.5...1.5), 2) != nil)
    #expect(problem(.range(0.5...1.5), 0) != nil)
  }

  @Test(
    "A text or a list of another length is told with the lengths",
    arguments: [
      (.length(1...500), "", "it has to have 1 to 500 characters, not 0"),
      (.length(1...500), "a", nil),
      (.length(1...), "", "it has to have at least 1 character, not 0"),
      (.length(...2), "abc", "it has to have at most 2 characters, not 3"),
      (.length(3...3), "ab", "it has to have 3 characters, not 2"),
      (.length(...2), [1, 2, 3], "it has to have at most 2 elements, not 3"),
      (.length(...1), ["a": 1, "b": 2], "it has to have at most 1 element, not 2"),
      (.length(1...), .null, nil),
      // Scalars, which all systems count alike.
      (.length(...1), "e\u{301}", "it has to have at most 1 character, not 2"),
    ] as [(PropertyOptions, JSONValue, String?)])
  func length(_ options: PropertyOptions, _ json: JSONValue, _ expected: String?) {
    #expect(problem(options, json) == expected)
  }

  @Test("A text that does not match is told with the pattern, in short")
  func pattern() {
    let options: PropertyOptions = .pattern("[a-z]+")
    #expect(problem(options, "abc") == nil && problem(options, .null) == nil)
    #expect(problem(options, "A b") == #"it has to match [a-z]+, which "A b" does not"#)
    let long = problem(options, .string(String(repeating: "A", count: 1_000_000)))
    #expect(long?.utf8.count ?? 0 < 200)
    #expect(long?.contains("AAA...") == true)
  }

  @Test("Later options replace rules of the same kind, and keep the others")
  func merging() {
    let options: PropertyOptions = [.range(0...1), .immutable, .range(0...5), .unique]
    #expect(options.rules.words == "from 0 to 5, immutable, unique")
    #expect(
      ([.length(1...), .pattern("a+")] as PropertyOptions).rules.words
        == "of at least 1 part, matching a+")
  }

  @Test(
    "A rule that a type cannot break is a mistake",
    arguments: [
      (.range(0...1), .string, "has a range, and is no number."),
      (.range(0...1), .array(.integer("Int")), "has a range, and is no number."),
      (.length(1...), .integer("Int"), "has a length, and is neither a text nor a list."),
      (.length(1...), .collection("A"), "has a length, and is neither a text nor a list."),
      (
        .length(1...), .dictionary(.reference("A")),
        "has a length, and is neither a text nor a list."
      ),
      (.pattern("a"), .uuid, "has a pattern, and is no text."),
      (.immutable, .reference("A"), "is immutable, and holds models."),
      (.unique, .collection("A"), "is unique, and holds models."),
    ] as [(PropertyOptions, _PropertyType, String)])
  func misuse(_ options: PropertyOptions, _ type: _PropertyType, _ expected: String) {
    #expect(options.rules.misuse(of: type, isCounter: false) == expected)
  }

  @Test("Rules fit the types that they are made for, and optionals of these")
  func fitting() {
    for type: _PropertyType in [.integer("Int"), .number("Double"), .decimal] {
      #expect(PropertyOptions.range(0...1).rules.misuse(of: type, isCounter: true) == nil)
      #expect(
        PropertyOptions.range(0...1).rules.misuse(of: .optional(type), isCounter: false) == nil)
    }
    for type: _PropertyType in [.string, .array(.string), .set(.uuid), .dictionary(.string)] {
      #expect(PropertyOptions.length(0...1).rules.misuse(of: type, isCounter: false) == nil)
    }
    let text: PropertyOptions = [.pattern("a"), .immutable, .unique]
    #expect(text.rules.misuse(of: .optional(.string), isCounter: false) == nil)
    #expect(
      PropertyOptions.unique.rules.misuse(of: .integer("Int"), isCounter: true)
        == "is unique, and is a counter.")
  }

  @Test("Rules are no part of the fingerprint, and are differences of schemas")
  func fingerprint() {
    let (with, without) = (ModelSchema.of(With.Item.self), ModelSchema.of(Without.Item.self))
    #expect(with.fingerprint == without.fingerprint)
    #expect(
      with.differences(from: without) == [
        "Item.count is from 0 to 9, was without rules.",
        "Item.name is of 1 to 5 parts, unique, was without rules.",
      ])
  }

  @Test("A property that cannot have its rule traps with a sentence")
  func trap() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Mistaken().uuid
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("Mistaken.flag has a range, and is no number."))
  }

  @Test("Bounds that do not belong to the range trap with a sentence")
  func openRange() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = PropertyOptions.range(0..<5)
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("needs finite bounds that belong to it, such as 0...100"))
  }
}

private final class Mistaken: ModelObject {
  @Property(.range(0...1)) var flag = false
}

private enum With {
  final class Item: ModelObject {
    @Property(.range(0...9)) var count = 0
    @Property([.length(1...5), .unique]) var name = ""
  }
}

private enum Without {
  final class Item: ModelObject {
    @Property var count = 0
    @Property var name = ""
  }
}
