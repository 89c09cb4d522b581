import Testing

@testable import Jetstream

@Suite("Writing JSON", .paced)
struct CanonicalJSONTests {
  @Test(
    "Numbers have one text each",
    arguments: [
      (JSONValue.integer(0), "0"),
      (.integer(-7), "-7"),
      (.integer(1234567890), "1234567890"),
      (.integer(.max), "9223372036854775807"),
      (.integer(.min), "-9223372036854775808"),
      (.unsigned(.max), "18446744073709551615"),
      (.double(0), "0"),
      (.double(-0.0), "0"),
      (.double(1), "1"),
      (.double(-100), "-100"),
      (.double(0.1), "0.1"),
      (.double(-0.5), "-0.5"),
      (.double(12.25), "12.25"),
      (.double(12.125), "12.125"),
      (.double(1.001), "1.001"),
      (.double(0.0001), "0.0001"),
      (.double(0.00001), "1e-05"),
      (.double(1_420_070_400.123), "1420070400.123"),
      (.double(3.141592653589793), "3.141592653589793"),
      (.double(9_007_199_254_740_991), "9007199254740991"),
      (.double(9_007_199_254_740_992), "9007199254740992"),
      (.double(1e16), "1e+16"),
      (.double(1e17), "1e+17"),
      (.double(1e300), "1e+300"),
      (.double(.greatestFiniteMagnitude), "1.7976931348623157e+308"),
      (.double(.leastNonzeroMagnitude), "5e-324"),
      (.float(0.1), "0.1"),
      (.float(-0.0), "0"),
      (.float(100), "100"),
      (.float(0.123456), "0.123456"),
      (.float(16_777_216), "16777216"),
      (.float(1e10), "10000000000"),
      (.float(1e20), "1e+20"),
      (.float(.pi), "3.1415925"),
      (.float(.leastNonzeroMagnitude), "1e-45"),
    ])
  func numbers(value: JSONValue, text: String) {
    #expect(value.canonicalText == text)
    #expect(value.text == text)
  }

  @Test(
    "Numbers that JSON cannot say are null",
    arguments: [
      JSONValue.double(.nan), .double(.infinity), .double(-.infinity), .float(.nan),
      .float(.infinity),
    ])
  func nonFinite(value: JSONValue) {
    #expect(value.canonicalText == "null")
  }

  @Test(
    "Strings escape only what they must",
    arguments: [
      ("", #""""#),
      ("a/b", #""a/b""#),
      ("\"\\", #""\"\\""#),
      ("\u{8}\t\n\u{C}\r", #""\b\t\n\f\r""#),
      ("\u{0}\u{1F}\u{B}", #""\u0000\u001f\u000b""#),
      ("\u{7F}\u{2028}é😀", "\"\u{7F}\u{2028}é😀\""),
    ])
  func strings(value: String, text: String) {
    #expect(JSONValue.string(value).canonicalText == text)
  }

  @Test("Canonical keys are in the order of their UTF-8 bytes")
  func keyOrder() {
    let value: JSONValue = [
      "b": 1, "a": ["z": 1, "y": 2], "B": 3, "": 4, "\u{FF5E}": 5, "\u{1F600}": 6, "ab": 7,
      "z": 8, "\u{E9}": 9, "e\u{302}": 10,
    ]
    #expect(
      value.canonicalText
        == "{\"\":4,\"B\":3,\"a\":{\"y\":2,\"z\":1},\"ab\":7,\"b\":1,\"e\u{302}\":10,\"z\":8,"
        + "\"\u{E9}\":9,\"\u{FF5E}\":5,\"\u{1F600}\":6}")
  }

  @Test("The ordinary text keeps the order of keys")
  func storedOrder() {
    let value: JSONValue = ["b": 1, "a": [.null, true, false]]
    #expect(value.text == #"{"b":1,"a":[null,true,false]}"#)
    #expect(value.canonicalText == #"{"a":[null,true,false],"b":1}"#)
  }

  @Test("Writing appends")
  func appends() {
    var bytes = Array("x".utf8)
    JSONValue.array([1, 2]).write(to: &bytes)
    JSONValue.null.writeCanonical(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == "x[1,2]null")
  }

  @Test("Random values read back equal, and have one canonical text")
  func roundTrip() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let value = generator.json(depth: 4)
      let copy = try JSONValue(parsing: value.text)
      #expect(copy == value, "seed \(seed)")
      #expect(copy.hashValue == value.hashValue, "seed \(seed)")
      #expect(copy.text == value.text, "seed \(seed)")
      let canonical = try JSONValue(parsing: value.canonicalText)
      #expect(canonical == value, "seed \(seed)")
      #expect(canonical.hashValue == value.hashValue, "seed \(seed)")
      #expect(canonical.text == value.canonicalText, "seed \(seed)")
    }
  }

  @Test("Random doubles survive their text")
  func doubles() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<20_000 {
      let value =
        round.isMultiple(of: 2)
        ? generator.finiteDouble() : Double(Int64(generator.next() >> 20)) / 1000
      let text = JSONValue.double(value).text
      #expect(Double(text) == value, "seed \(seed)")
      if value != value.rounded() { #expect(text == value.description, "seed \(seed)") }
    }
  }

  @Test("The one float whose shortest text would be rounded twice is written longer")
  func doubleRounding() throws {
    for value in [Float(bitPattern: 0x15AE_43FD), -Float(bitPattern: 0x15AE_43FD)] {
      #expect(Float(Double(value.description)!) != value)
      #expect(Float(Double(JSONValue.float(value).text)!) == value)
    }
    for bits in UInt32(0x15AE_4000)..<0x15AE_5000 {
      let value = Float(bitPattern: bits)
      #expect(Float(Double(JSONValue.float(value).text)!) == value)
    }
  }

  @Test("Random floats survive being read as doubles")
  func floats() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<50_000 {
      let value =
        round.isMultiple(of: 2)
        ? generator.finiteFloat() : Float(Int32(truncatingIfNeeded: generator.next() >> 44)) / 1000
      let text = JSONValue.float(value).text
      #expect(Float(Double(text)!) == value, "seed \(seed)")
      if value != value.rounded(), value.magnitude != Float(bitPattern: 0x15AE_43FD) {
        #expect(text == value.description, "seed \(seed)")
      }
    }
  }
}
