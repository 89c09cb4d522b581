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
      (#""\ud800"#, .unexpectedEnd, 7),
      (#""\ud800\"#, .unexpectedEnd, 8),
      (#""\ud800\udc0"#, .unexpectedEnd, 12),
      (#""\ud800\udc0g""#, .invalidEscape, 12),
      (#""\U0041""#, .invalidEscape, 2),
      (#""\'""#, .invalidEscape, 2),
      (#"{"a":1,"\u0061":2}"#, .duplicateKey("a"), 7),
      (#"{"a":{"a":1},"a":2}"#, .duplicateKey("a"), 13),
      (#"{"":1,"":2}"#, .duplicateKey(""), 6),
      (#"{"a":1,"a"}"#, .unexpectedCharacter, 10),
      ("[1]\u{0}", .trailingCharacters, 3),
      ("[1\u{0}]", .unexpectedCharacter, 2),
      ("[\u{B}1]", .unexpectedCharacter, 1),
      ("[\u{2028}1]", .unexpectedCharacter, 1),
      ("1\u{FEFF}", .trailingCharacters, 1),
      ("/**/1", .unexpectedCharacter, 0),
      ("\u{1E}1\n", .unexpectedCharacter, 0),
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
      ("[0,1.7976931348623159e308]", .numberOutOfRange, 3),
      ("-00", .invalidNumber, 2),
      ("-", .unexpectedEnd, 1),
      ("[-]", .invalidNumber, 2),
      ("[1.5e+]", .invalidNumber, 6),
      ("1e5.5", .trailingCharacters, 3),
      ("1e1e1", .trailingCharacters, 3),
      ("0e", .unexpectedEnd, 2),
      ("\u{661}", .unexpectedCharacter, 0),
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
      ([0x7B, 0x22, 0x61, 0xFF, 0x22, 0x3A, 0x31, 0x7D], 3),
      ([0x22, 0xF0, 0x9F, 0x98, 0x22], 1),
      ([0x22, 0xE0, 0x9F, 0xBF, 0x22], 1),
    ] as [([UInt8], Int)])
  func invalidUTF8(bytes: [UInt8], offset: Int) {
    #expect(throws: JSONError(.invalidUTF8, at: offset)) { try JSONValue(parsing: bytes) }
  }

  @Test(
    "Bytes beyond ASCII and other encodings are refused outside of strings",
    arguments: [
      ([0xFF], 0), ([0x5B, 0x80, 0x5D], 1), ([0xEF, 0xBB, 0xBF, 0x31], 0),
      ([0xFE, 0xFF, 0, 0x31], 0),
      ([0x31, 0xC2, 0xA0], 1), ([0, 0x31], 0),
    ] as [([UInt8], Int)])
  func otherEncodings(bytes: [UInt8], offset: Int) {
    #expect(
      throws: JSONError(
        offset == 1 && bytes[0] == 0x31
          ? .trailingCharacters : .unexpectedCharacter, at: offset)
    ) { try JSONValue(parsing: bytes) }
    // UTF-16, of which every ASCII character has a byte of zero.
    #expect(throws: JSONError(.unexpectedCharacter, at: 1)) {
      try JSONValue(parsing: [0x5B, 0, 0x31, 0, 0x5D, 0])
    }
  }

  @Test("A key that occurs twice is found at every number of keys, of whatever length")
  func duplicates() {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      var keys: [String] = []
      for _ in 0..<Int(generator.next() % 100) {
        let key =
          "\(generator.next() % 1000)\(String(repeating: "k", count: Int(generator.next() % 20)))"
        if !keys.contains(key) { keys.append(key) }
      }
      func text(_ keys: [String]) -> String {
        // The inner objects make keys give way to others while the outer object is open.
        "{" + keys.map { "\"\($0)\":{\"x\($0)\":0}" }.joined(separator: ",") + "}"
      }
      #expect((try? JSONValue(parsing: text(keys))) != nil, "seed \(seed)")
      guard let key = keys.randomElement(using: &generator) else { continue }
      let offset = text(keys).utf8.count
      #expect(throws: JSONError(.duplicateKey(key), at: offset), "seed \(seed)") {
        try JSONValue(parsing: text(keys + [key]))
      }
    }
  }

  @Test("Every beginning of a valid text is refused")
  func truncated() throws {
    let text = #"{"a":[1.5e3,"x\u00e9\n\ud83d\ude00",{"b":null,"c":[true,false]}],"d":{}}"#
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
