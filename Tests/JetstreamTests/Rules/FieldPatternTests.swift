import Testing

@testable import Jetstream

/// The automaton that patterns of properties are.
@Suite(.paced) struct FieldPatternTests {
  private func matches(_ pattern: String, _ text: String) throws -> Bool {
    try FieldPattern(pattern).matches(text)
  }

  private func problem(_ pattern: String) -> String? {
    do throws(FieldPattern.Problem) {
      _ = try FieldPattern(pattern)
      return nil
    } catch {
      return error.text
    }
  }

  @Test(
    "A pattern matches the text as a whole",
    arguments: [
      ("[a-z0-9-]+", ["a", "a-1", "-"], ["", "A", "a b", "a\n"]),
      ("", [""], ["a"]),
      ("a|bc", ["a", "bc"], ["", "ab", "abc", "ac"]),
      ("(?:ab?){2}", ["aa", "aba", "aab", "abab"], ["a", "ab", "abb", "aaa"]),
      ("a{2,}", ["aa", "aaaa"], ["", "a"]),
      ("a{0,2}b", ["b", "ab", "aab"], ["aaab", "aa"]),
      ("(a|b*)*c", ["c", "abbac"], ["", "ab"]),
      ("a{0}b{0}", [""], ["a", "b"]),
      (#"\d{4}-\d\d"#, ["2026-11"], ["2026-1", "٢٠٢٦-11"]),
      (#"\w+\s\S"#, ["a_1 -", "Z\té"], ["é a", "a  "]),
      (#"[\d.]+"#, ["1.5"], ["1,5"]),
      (#"[^\W_]"#, ["a", "9"], ["_", "-", "é"]),
      (#"\(\\\)"#, [#"(\)"#], ["()"]),
      ("[a\\]^-]+", ["]-a^"], ["b"]),
      (".", ["a", "é", "🙂"], ["", "\n", "ab", "e\u{301}"]),
      ("[α-ω]+", ["λόγοσ".filter { $0 != "ό" }], ["a", "λa"]),
    ] as [(String, [String], [String])])
  func whole(_ pattern: String, _ matching: [String], _ others: [String]) throws {
    for text in matching { #expect(try matches(pattern, text), "\(pattern) \(text)") }
    for text in others { #expect(try !matches(pattern, text), "\(pattern) \(text)") }
  }

  @Test("Patterns match what Swift's regular expressions match", arguments: UInt64(1)...40)
  func sameAsRegex(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }
    func pattern(_ depth: Int) -> String {
      switch depth == 0 ? 0 : number(0...4) {
      case 0: return ["a", "b", ".", "[ab]", "[^a]", "c"][number(0...5)]
      case 1:
        return "(\(pattern(depth - 1)))\(["?", "*", "+", "{2}", "{1,2}", "{2,}"][number(0...5)])"
      case 2: return "(\(pattern(depth - 1))|\(pattern(depth - 1)))"
      default: return pattern(depth - 1) + pattern(depth - 1)
      }
    }
    for _ in 0..<10 {
      let text = pattern(3)
      guard let ours = try? FieldPattern(text) else { continue }
      let regex = try Regex(text)
      for _ in 0..<30 {
        let word = String(
          (0..<number(0...6)).map { _ in ["a", "b", "c"][number(0...2)] as Character })
        #expect(try ours.matches(word) == (regex.wholeMatch(in: word) != nil), "\(text) \(word)")
      }
    }
  }

  @Test(
    "A pattern that makes others try every way takes one step for each character",
    arguments: [
      "(a*)*b", "(a|a)*b", "(a|aa)+b", "((a+)+)+b", "(.*.*.*.*.*.*)*b", "(a?){60}a{60}b",
      "([a-f]|[a-z]|\\w)*b",
    ])
  func hostile(_ pattern: String) throws {
    let text = String(repeating: "a", count: 5_000)
    #expect(try !matches(pattern, text))
    #expect(try matches(pattern, text + "b") || pattern.contains("{60}"))
  }

  @Test("A pattern of too many characters is refused before it is made")
  func limits() {
    #expect(problem("a{128}") == nil)
    let many = "has more than 128 characters, each repetition counted."
    #expect(problem("a{129}") == many)
    #expect(problem("(((a{99}){99}){99}){9999}") == many)
    // Nothing is repeated as often as one likes.
    #expect(problem("((((){9999}){9999}){9999}|){9999}") == nil)
    #expect(problem(String(repeating: "(", count: 128) + String(repeating: ")", count: 128)) == nil)
    #expect(problem(String(repeating: "(", count: 257)) == "is longer than 256 bytes.")
  }

  @Test(
    "A text that is no pattern is refused with the reason",
    arguments: [
      ("a)", "has a ) without its (."),
      ("(a", "has a ( without its )."),
      ("[a", "has a [ without its ]."),
      ("[]", "has a class of no characters."),
      ("[^]", "has a class of no characters."),
      ("[z-a]", "has a range in a class that does not go from a character to a later one."),
      (#"[a-\d]"#, "has a range in a class that does not go from a character to a later one."),
      ("[[:alpha:]]", #"has a [ in a class; a character is \[."#),
      ("*a", #"has a * behind nothing; a character is \*."#),
      ("a|+", #"has a + behind nothing; a character is \+."#),
      ("a+?", "has a quantifier behind a quantifier."),
      ("a**", "has a quantifier behind a quantifier."),
      ("a{", "has a { without a number of repetitions."),
      ("a{,2}", "has a { without a number of repetitions."),
      ("a{3,2}", "has a { without a number of repetitions."),
      ("a{99999}", "has a { without a number of repetitions."),
      ("^a$", #"has a ^, and always matches as a whole; a character is \^."#),
      ("(?=a)b", "has a (? that is not (?:."),
      (#"(a)\1"#, #"has a \1, which has no meaning here."#),
      (#"\bword"#, #"has a \b, which has no meaning here."#),
      (#"a\"#, #"ends with a \."#),
    ])
  func noPattern(_ pattern: String, _ expected: String) {
    #expect(problem(pattern) == expected)
  }
}
