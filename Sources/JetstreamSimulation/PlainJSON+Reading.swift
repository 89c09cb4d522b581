/// Reads JSON (RFC 8259) byte by byte, in the plainest way: shares no code with the engines' parser.
struct PlainJSONReader {
  private static let words = (
    null: Array("null".utf8), yes: Array("true".utf8), no: Array("false".utf8)
  )

  private let bytes: [UInt8]
  private var at = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the value that the bytes contain; nil if they are anything but one JSON value.
  mutating func read() -> PlainJSON? {
    guard let value = value() else { return nil }
    skipSpace()
    return at == bytes.count ? value : nil
  }

  // MARK: Bytes

  private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    at += 1
    return true
  }

  private mutating func take(_ word: [UInt8], as value: PlainJSON) -> PlainJSON? {
    guard bytes[at...].starts(with: word) else { return nil }
    at += word.count
    return value
  }

  // MARK: Values

  private mutating func value() -> PlainJSON? {
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return object()
    case UInt8(ascii: "["): return array()
    case UInt8(ascii: "\""): return string().map { .string($0) }
    case UInt8(ascii: "t"): return take(Self.words.yes, as: .bool(true))
    case UInt8(ascii: "f"): return take(Self.words.no, as: .bool(false))
    case UInt8(ascii: "n"): return take(Self.words.null, as: .null)
    default: return number()
    }
  }

  /// Reads an object; nil if it has a key twice.
  private mutating func object() -> PlainJSON? {
    at += 1
    skipSpace()
    if take(UInt8(ascii: "}")) { return .object([:]) }
    // As many as most objects have: growing costs more than reading.
    var members = [String: PlainJSON](minimumCapacity: 6)
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\""), let key = string() else { return nil }
      skipSpace()
      guard take(UInt8(ascii: ":")), let value = value(),
        members.updateValue(value, forKey: key) == nil
      else { return nil }
      skipSpace()
      if take(UInt8(ascii: ",")) { continue }
      return take(UInt8(ascii: "}")) ? .object(members) : nil
    }
  }

  private mutating func array() -> PlainJSON? {
    at += 1
    var elements: [PlainJSON] = []
    skipSpace()
    if take(UInt8(ascii: "]")) { return .array(elements) }
    while true {
      guard let value = value() else { return nil }
      elements.append(value)
      skipSpace()
      if take(UInt8(ascii: ",")) { continue }
      return take(UInt8(ascii: "]")) ? .array(elements) : nil
    }
  }

  /// Reads a number. Equal numbers have the same text, however they were written.
  private mutating func number() -> PlainJSON? {
    let start = at
    _ = take(UInt8(ascii: "-"))
    let first = at
    guard digits() > 0, bytes[first] != UInt8(ascii: "0") || at == first + 1 else { return nil }
    var isWhole = true
    if take(UInt8(ascii: ".")) {
      isWhole = false
      guard digits() > 0 else { return nil }
    }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      isWhole = false
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard digits() > 0 else { return nil }
    }
    let text = String(decoding: bytes[start..<at], as: UTF8.self)
    if isWhole, text != "-0", Int(text) != nil { return .number(text) }
    guard let value = Double(text), value.isFinite else { return nil }
    let isShort = value == value.rounded() && value.magnitude < 0x1p53
    return .number(isShort ? String(Int64(value)) : "\(value)")
  }

  private mutating func digits() -> Int {
    let start = at
    while let byte = next, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { at += 1 }
    return at - start
  }

  // MARK: Strings

  private mutating func string() -> String? {
    at += 1
    let start = at
    // Most have no escapes.
    var all: UInt8 = 0
    while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
      all |= byte
      at += 1
    }
    if next == UInt8(ascii: "\"") {
      defer { at += 1 }
      let text = bytes[start..<at]
      return all < 0x80
        ? String(decoding: text, as: UTF8.self) : String(validating: text, as: UTF8.self)
    }
    var unescaped = Array(bytes[start..<at])
    while let byte = next, byte >= 0x20 {
      at += 1
      switch byte {
      case UInt8(ascii: "\""): return String(validating: unescaped, as: UTF8.self)
      case UInt8(ascii: "\\"): guard escape(into: &unescaped) else { return nil }
      default: unescaped.append(byte)
      }
    }
    return nil
  }

  private mutating func escape(into text: inout [UInt8]) -> Bool {
    guard let byte = next else { return false }
    at += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      guard let unit = codeUnit() else { return false }
      guard let scalar = Unicode.Scalar(unit) ?? pair(behind: unit) else { return false }
      text.append(contentsOf: String(scalar).utf8)
    default: return false
    }
    return true
  }

  /// Reads four hexadecimal digits.
  private mutating func codeUnit() -> UInt16? {
    guard at + 4 <= bytes.count else { return nil }
    let digits = bytes[at..<at + 4]
    guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
    at += 4
    return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  /// Reads the second half of a surrogate pair.
  private mutating func pair(behind high: UInt16) -> Unicode.Scalar? {
    guard (0xD800..<0xDC00).contains(high), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")),
      let low = codeUnit(), (0xDC00..<0xE000).contains(low)
    else { return nil }
    let value = 0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
    return Unicode.Scalar(value)
  }
}
