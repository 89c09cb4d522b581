import Testing

@testable import Jetstream

@Suite("Refusing JSON", .paced)
struct JSONErrorTests {
  @Test(
    "Malformed text is refused where it breaks",
    arguments: [
      ("", JSONError.Reason.unexpectedEnd, 0),
      ("  ", .unexpectedEnd, 2),
      ("x", .unexpectedCharacter, 0),
      ("\u{FEFF}1", .unexpectedCharacter, 0),
      ("\u{A0}1", .unexpectedCharacter, 0),
      ("'a'", .unexpectedCharacter, 0),
      ("\u{0}", .unexpectedCharacter, 0),
      ("1\u{0}", .trailingCharacters, 1),
      ("nul", .unexpectedEnd, 3),
      ("nulx", .unexpectedCharacter, 3),
      ("True", .unexpectedCharacter, 0),
      ("NaN", .unexpectedCharacter, 0),
      ("Infinity", .unexpectedCharacter, 0),
      ("truefalse", .trailingCharacters, 4),
      ("1 2", .trailingCharacters, 2),
      ("{}]", .trailingCharacters, 2),
      ("[", .unexpectedEnd, 1),
      ("[1", .unexpectedEnd, 2),
      ("[1,", .unexpectedEnd, 3),
      ("[1,]", .unexpectedCharacter, 3),
      ("[,1]", .unexpectedCharacter, 1),
      ("[1 2]", .unexpectedCharacter, 3),
      ("[1}", .unexpectedCharacter, 2),
      ("[1]//", .trailingCharacters, 3),
      ("{", .unexpectedEnd, 1),
      ("{1:2}", .unexpectedCharacter, 1),
      (#"{"a"}"#, .unexpectedCharacter, 4),
      (#"{"a":}"#, .unexpectedCharacter, 5),
      (#"{"a":1,}"#, .unexpectedCharacter, 7),
      (#"{"a":1"#, .unexpectedEnd, 6),
      (#"{"a":1]"#, .unexpectedCharacter, 6),
      (#"{"a":1,"b":2,"a":3}"#, .duplicateKey("a"), 13),
      ("{\"\u{E9}\":1,\"e\u{301}\":2}", .duplicateKey("\u{E9}"), 8),
      ("\"a", .unexpectedEnd, 2),
      ("\"a\\", .unexpectedEnd, 3),
      ("\"a\nb\"", .controlCharacter, 2),
      ("\"\u{0}\"", .controlCharacter, 1),
      ("\"long enough for words\u{1F}\"", .controlCharacter, 22),
      (#""\x""#, .invalidEscape, 2),
      (#""\u12g4""#, .invalidEscape, 5),
      (#""\u12"#, .unexpectedEnd, 5),
      (#""a\ud800""#, .loneSurrogate, 2),
      (#""a\ud800x""#, .loneSurrogate, 2),
      (#""a\ud800\n""#, .loneSurrogate, 2),
      (#""a\ud800\u0041""#, .loneSurrogate, 2),
      (#""a\ud800\ud800""#, .loneSurrogate, 2),
      (#""a\udc00""#, .loneSurrogate, 2),
      (#""a\udfff\ud800""#, .loneSurrogate, 2),
    ])
  func malformed(text: String, reason: JSONError.Reason, offset: Int) {
    #expect(throws: JSONError(reason, at: offset)) { try JSONValue(parsing: text) }
  }

  @Test(
    "Malformed numbers are refused",
    arguments: [
      ("01", JSONError.Reason.invalidNumber, 1),
      ("-01", .invalidNumber, 2),
      ("00", .invalidNumber, 1),
      ("-", .unexpectedEnd, 1),
      ("-x", .invalidNumber, 1),
      ("--1", .invalidNumber, 1),
      ("+1", .unexpectedCharacter, 0),
      (".5", .unexpectedCharacter, 0),
      ("1.", .unexpectedEnd, 2),
      ("[1.]", .invalidNumber, 3),
      ("1.e3", .invalidNumber, 2),
      ("1e", .unexpectedEnd, 2),
      ("1e+", .unexpectedEnd, 3),
      ("[1e]", .invalidNumber, 3),
      ("1.5.5", .trailingCharacters, 3),
      ("0x10", .trailingCharacters, 1),
      ("1_000", .trailingCharacters, 1),
      ("-Infinity", .invalidNumber, 1),
      ("1e309", .numberOutOfRange, 0),
      ("[-1e400]", .numberOutOfRange, 1),
      ("1e99999999999999999999999", .numberOutOfRange, 0),
    ])
  func malformedNumbers(text: String, reason: JSONError.Reason, offset: Int) {
    #expect(throws: JSONError(reason, at: offset)) { try JSONValue(parsing: text) }
  }

  @Test("A whole number too large for a double is refused")
  func hugeInteger() {
    let text = "1" + String(repeating: "0", count: 400)
    #expect(throws: JSONError(.numberOutOfRange, at: 0)) { try JSONValue(parsing: text) }
  }

  @Test(
    "Bytes that are not UTF-8 are refused at the first wrong one",
    arguments: [
      ([0x22, 0x61, 0xFF, 0x22], 2),
      ([0x22, 0x80, 0x22], 1),
      ([0x22, 0x61, 0x62, 0xC3, 0x22], 3),
      ([0x22, 0xC0, 0x80, 0x22], 1),
      ([0x22, 0xC3, 0xA9, 0xE2, 0x82, 0x22], 3),
      ([0x22, 0xED, 0xA0, 0x80, 0x22], 1),
      ([0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], 1),
      ([0x22, 0x5C, 0x6E, 0xC3, 0x22], 3),
      ([0x22, 0xC3, 0x5C, 0x6E, 0x22], 1),
    ] as [([UInt8], Int)])
  func invalidUTF8(bytes: [UInt8], offset: Int) {
    #expect(throws: JSONError(.invalidUTF8, at: offset)) { try JSONValue(parsing: bytes) }
  }

  @Test("Every beginning of a valid text is refused")
  func truncated() throws {
    let text = #"{"a":[1.5e3,"x\u00e9\n",{"b":null,"c":[true,false]}],"d":{}}"#
    let bytes = Array(text.utf8)
    _ = try JSONValue(parsing: bytes)
    for length in 0..<bytes.count {
      #expect(throws: JSONError(.unexpectedEnd, at: length)) {
        try JSONValue(parsing: bytes[..<length])
      }
    }
  }

  @Test("Random damage never traps, and what is accepted writes and reads the same")
  func damaged() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    let original = Array(#"{"a":[1.5e3,"x\u00e9\ud83d\ude00",{"b":-12}],"d":"é€😀"}"#.utf8)
    for _ in 0..<20_000 {
      var bytes = original
      for _ in 0...Int(generator.next() % 3) {
        bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(
          truncatingIfNeeded: generator.next())
      }
      guard let value = try? JSONValue(parsing: bytes) else { continue }
      #expect(try JSONValue(parsing: value.text).text == value.text, "seed \(seed)")
    }
  }

  @Test("Nesting is bounded")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try JSONValue(parsing: nested(64))
    #expect(throws: JSONError(.tooDeep, at: 64)) { try JSONValue(parsing: nested(65)) }
    #expect(throws: JSONError(.tooDeep, at: 64)) { try JSONValue(parsing: nested(10_000)) }
    let objects = String(repeating: #"{"a":"#, count: 10_000)
    #expect(throws: JSONError(.tooDeep, at: 320)) { try JSONValue(parsing: objects) }
    let generous = JSONLimits(maxDepth: .max)
    _ = try JSONValue(parsing: nested(256), limits: generous)
    #expect(throws: JSONError(.tooDeep, at: 256)) {
      try JSONValue(parsing: nested(257), limits: generous)
    }
    #expect(throws: JSONError(.tooDeep, at: 0)) {
      try JSONValue(parsing: "[]", limits: JSONLimits(maxDepth: 0))
    }
  }

  @Test("Length is bounded")
  func length() throws {
    let limits = JSONLimits(maxBytes: 4)
    _ = try JSONValue(parsing: "1234", limits: limits)
    #expect(throws: JSONError(.tooLong, at: 4)) { try JSONValue(parsing: "12345", limits: limits) }
  }

  @Test("A description names reason and byte")
  func description() {
    #expect(
      JSONError(.unexpectedCharacter, at: 17).description == "unexpected character at byte 17")
    #expect(
      JSONError(.duplicateKey("x"), at: 3).description == "duplicate key \"x\" at byte 3")
  }
}
