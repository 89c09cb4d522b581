import Testing

@testable import Jetstream

@Suite("Reading JSON", .paced)
struct JSONParsingTests {
  @Test(
    "Every kind of value is read",
    arguments: [
      ("null", JSONValue.null),
      (" true ", true),
      ("\t\r\nfalse\n", false),
      ("0", 0),
      ("-1", -1),
      ("1.5", 1.5),
      ("1.0", 1.0),
      ("1e2", 100.0),
      ("1E+2", 100.0),
      ("25e-1", 2.5),
      ("\"\"", ""),
      ("\"a\"", "a"),
      ("[]", .array([])),
      ("[ ]", .array([])),
      ("{}", .object([:])),
      ("{ }", .object([:])),
      ("[1,[2],{}]", .array([1, .array([2]), .object([:])])),
      (#"{ "a" : 1 , "b" : [ null ] }"#, ["a": 1, "b": .array([.null])]),
    ] as [(String, JSONValue)])
  func reads(text: String, value: JSONValue) throws {
    #expect(try JSONValue(parsing: text) == value)
  }

  @Test(
    "Whole numbers keep all 64 bits",
    arguments: [
      ("-0", JSONValue.integer(0)),
      ("9007199254740993", .integer(9_007_199_254_740_993)),
      ("9223372036854775807", .integer(.max)),
      ("-9223372036854775808", .integer(.min)),
      ("999999999999999999", .integer(999_999_999_999_999_999)),
      ("-999999999999999999", .integer(-999_999_999_999_999_999)),
      ("1000000000000000000", .integer(1_000_000_000_000_000_000)),
      ("9223372036854775808", .unsigned(1 << 63)),
      ("10000000000000000000", .unsigned(10_000_000_000_000_000_000)),
      ("18446744073709551615", .unsigned(.max)),
      ("18446744073709551616", .double(0x1p64)),
      ("99999999999999999999", .double(1e20)),
      ("-9223372036854775809", .double(-0x1p63)),
      ("-18446744073709551615", .double(-0x1p64)),
      ("100000000000000000000000000000000000000", .double(1e38)),
    ])
  func wholeNumbers(text: String, value: JSONValue) throws {
    #expect(try JSONValue(parsing: text) == value)
  }

  @Test(
    "Fractions are read as the nearest double",
    arguments: [
      "0.1", "-0.1", "3.141592653589793", "123456789.123456789", "1e22", "1e23", "1e-22", "1e-23",
      "9007199254740993.0", "1.7976931348623157e308", "5e-324", "2.2250738585072011e-308",
      "0.000000000000000000000000000001", "184467440737095516150.5", "1e-400", "0e999999999999",
      "0.1e1", "8.41e+21", "2.4703282292062327e-324", "2.4703282292062329e-324",
      "2.2250738585072014e-308", "1.7976931348623158e308", "0.3e-323", "9007199254740992.5",
      "9007199254740993e0", "1234567890123456789.5", "12345678901234567890.5", "1e-99999999999",
    ])
  func fractions(text: String) throws {
    #expect(try JSONValue(parsing: text) == .double(Double(text)!))
  }

  @Test(
    "Zero keeps its sign in a fraction only",
    arguments: [
      ("-0.0", FloatingPointSign.minus), ("-0e0", .minus), ("-0e-99", .minus), ("-1e-400", .minus),
      ("-0.000000000000000000000000", .minus), ("0.0", .plus), ("0e5", .plus),
    ])
  func zeros(text: String, sign: FloatingPointSign) throws {
    guard case .double(let value) = try JSONValue(parsing: text) else {
      Issue.record("\(text) is not a fraction")
      return
    }
    #expect(value == 0)
    #expect(value.sign == sign)
    #expect(try JSONValue(parsing: "-0") == .integer(0))
  }

  @Test("However many digits, the nearest double is found")
  func manyDigits() throws {
    let zeros = String(repeating: "0", count: 5_000)
    let nines = String(repeating: "9", count: 5_000)
    #expect(try JSONValue(parsing: "0.\(zeros)1e5001") == .double(1))
    #expect(try JSONValue(parsing: "1\(zeros)e-5000") == .double(1))
    #expect(try JSONValue(parsing: "0.\(nines)") == .double(1))
    #expect(try JSONValue(parsing: "1.\(zeros)1") == .double(1))
    // Half way between two doubles, and just above.
    #expect(try JSONValue(parsing: "9007199254740993.\(zeros)") == .double(9_007_199_254_740_992))
    #expect(try JSONValue(parsing: "9007199254740993.\(zeros)1") == .double(9_007_199_254_740_994))
    #expect(throws: JSONError(.numberOutOfRange, at: 0)) { try JSONValue(parsing: nines) }
  }

  @Test("Random doubles are read as Swift reads them")
  func randomDoubles() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<20_000 {
      let value = generator.finiteDouble()
      let text = value.description
      #expect(try JSONValue(parsing: "[\(text),0]") == [.double(value), 0], "seed \(seed)")
    }
  }

  @Test(
    "Escapes stand for their characters",
    arguments: [
      (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
      (#""\u0041\u00e9\u00E9\u20ac""#, "Aéé€"),
      (#""\u0000""#, "\u{0}"),
      (#""\ud83d\ude00""#, "😀"),
      (#""x\uDBFF\uDFFFy""#, "x\u{10FFFF}y"),
      (#""\ud7ff\ue000""#, "\u{D7FF}\u{E000}"),
      ("\"é€😀\u{7F}\"", "é€😀\u{7F}"),
      (
        #""long enough for words of eight \n and more, é""#,
        "long enough for words of eight \n and more, é"
      ),
    ])
  func escapes(text: String, value: String) throws {
    #expect(try JSONValue(parsing: text) == .string(value))
  }

  @Test("A special byte is found at every distance")
  func scanning() throws {
    for length in 0..<40 {
      for special in [#"\""#, #"\\"#, #"\n"#, "é", "\u{7F}", "!", "#", "["] {
        let content = String(repeating: "a", count: length) + special + "tail of the string"
        let value = try JSONValue(parsing: "\"\(content)\"")
        let plain = content.replacing(#"\""#, with: "\"").replacing(#"\\"#, with: #"\"#)
          .replacing(#"\n"#, with: "\n")
        #expect(value == .string(plain))
        #expect(value.text == "\"\(content)\"")
      }
    }
  }

  @Test("Collections that are not contiguous are read too")
  func otherCollections() throws {
    let bytes = Array("[1,\"é\"]".utf8)
    #expect(try JSONValue(parsing: bytes) == [1, "é"])
    #expect(try JSONValue(parsing: bytes[...]) == [1, "é"])
    #expect(try JSONValue(parsing: bytes.lazy.map { $0 }) == [1, "é"])
    #expect(try JSONValue(parsing: bytes.span) == [1, "é"])
  }

  @Test("Keys keep their order")
  func order() throws {
    let value = try JSONValue(parsing: #"{"b":1,"a":2,"":3}"#)
    guard case .object(let object) = value else { return #expect(Bool(false)) }
    #expect(object.keys == ["b", "a", ""])
  }
}
