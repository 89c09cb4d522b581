import Jetstream

extension FuzzTarget {
  /// The JSON reader and writer.
  static let json = FuzzTarget(
    "json",
    seeds: [
      #"{"a":[1.5e3,"x\u00e9\ud83d\ude00\n",{"b":-12}],"d":"é€😀","e":[true,false,null,[],{}]}"#,
      "[0,-0,-0.0,9223372036854775807,-9223372036854775808,18446744073709551615,1e308,5e-324]",
      "[0.1,12.25,123456789.123456789,9007199254740993,1e22,1e-23,100000000000000000000]",
      " [ 1 , [ 2 , { \"a\" : { } } ] ]\r\n\t",
      #"{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"a":1,"b":1,"c":1,"d":1,"#
        + #""e":1,"f":1,"g":1,"A long key, above sixteen bytes":[{"0":0,"1":1},{"0":0,"1":1}]}"#,
    ],
    words: jsonWords
  ) { bytes in
    let value: JSONValue
    do throws(JSONError) {
      value = try JSONValue(parsing: bytes)
    } catch {
      return try checkError(error, of: bytes)
    }
    try require(JSONGrammar.accepts(bytes), "reads what is not JSON")
    try checkText(value)
  }

  /// Pieces of JSON.
  static let jsonWords = [
    "{\"a\":", "\"a\":", "[[", "]]", "{}", ",", ":", "\\u0000", "\\ud83d", "\\ude00", "\\\"", "\\/",
    "true", "false", "null", "1e400", "1e-400", "-0", "0.1", "9223372036854775808",
    "18446744073709551616", "é", "e\u{301}", "\u{FEFF}", "\u{0}", "\u{2028}", "😀", "\"\":",
  ]

  /// An error is at a byte of the text, or at its end if that came too early; and a text is refused
  /// for its grammar only if there is something wrong with that.
  static func checkError(_ error: JSONError, of bytes: [UInt8]) throws {
    switch error.reason {
    case .unexpectedEnd: try require(error.offset == bytes.count, "\(error) is not the end")
    default: try require(bytes.indices.contains(error.offset), "\(error) is outside")
    }
    switch error.reason {
    case .numberOutOfRange, .loneSurrogate, .duplicateKey, .tooDeep, .tooLong: break
    default: try require(!JSONGrammar.accepts(bytes), "refuses JSON: \(error)")
    }
  }

  /// What is written reads back as what it was, in either form.
  private static func checkText(_ value: JSONValue) throws {
    let text = value.text
    try require(try JSONValue(parsing: text).text == text, "\(text) changes")
    let canonical = value.canonicalText
    let copy = try JSONValue(parsing: canonical)
    try require(copy.text == canonical, "\(canonical) is read in another order")
    try require(copy.canonicalText == canonical, "\(canonical) changes")
  }
}
