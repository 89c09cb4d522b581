/// RFC 8259 once more, as plainly as it can be said: whether bytes are JSON, and nothing else.
///
/// It is here to disagree with the reader if that is wrong. Surrogates, sizes and keys that occur
/// twice are no matter of the grammar.
struct JSONGrammar {
  private var rest: ArraySlice<UInt8>

  /// Whether all of the bytes are one JSON text.
  static func accepts(_ bytes: [UInt8]) -> Bool {
    guard String(validating: bytes, as: UTF8.self) != nil else { return false }
    var grammar = JSONGrammar(rest: bytes[...])
    guard grammar.element() else { return false }
    return grammar.rest.isEmpty
  }

  private mutating func element() -> Bool {
    skip(" \n\r\t")
    guard value() else { return false }
    skip(" \n\r\t")
    return true
  }

  private mutating func value() -> Bool {
    switch rest.first {
    case UInt8(ascii: "{"):
      list(end: "}") { grammar in
        grammar.skip(" \n\r\t")
        guard grammar.string() else { return false }
        grammar.skip(" \n\r\t")
        return grammar.take(":") && grammar.element()
      }
    case UInt8(ascii: "["): list(end: "]") { grammar in grammar.element() }
    case UInt8(ascii: "\""): string()
    default: take("true") || take("false") || take("null") || number()
    }
  }

  private mutating func list(end: String, _ member: (inout JSONGrammar) -> Bool) -> Bool {
    rest.removeFirst()
    let start = rest
    skip(" \n\r\t")
    if take(end) { return true }
    rest = start
    repeat {
      guard member(&self) else { return false }
      skip(" \n\r\t")
    } while take(",")
    return take(end)
  }

  private mutating func string() -> Bool {
    guard take("\"") else { return false }
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return true
      case 0..<0x20: return false
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst() else { return false }
        if escaped == UInt8(ascii: "u") {
          for _ in 0..<4 where !take(oneOf: "0123456789abcdefABCDEF") { return false }
        } else if !#""\/bfnrt"#.utf8.contains(escaped) {
          return false
        }
      default: break
      }
    }
    return false
  }

  private mutating func number() -> Bool {
    _ = take("-")
    guard take("0") || digits() else { return false }
    if take("."), !digits() { return false }
    if take(oneOf: "eE") {
      _ = take(oneOf: "+-")
      return digits()
    }
    return true
  }

  private mutating func digits() -> Bool {
    guard take(oneOf: "0123456789") else { return false }
    skip("0123456789")
    return true
  }

  private mutating func take(_ text: String) -> Bool {
    guard rest.starts(with: text.utf8) else { return false }
    rest.removeFirst(text.utf8.count)
    return true
  }

  private mutating func take(oneOf characters: String) -> Bool {
    guard let first = rest.first, characters.utf8.contains(first) else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func skip(_ characters: String) {
    rest = rest.drop { characters.utf8.contains($0) }
  }
}
