/// Appends the JSON text of values to an array of bytes.
enum JSONWriter {
  /// Appends a value; `sorted` puts the keys of every object into canonical order.
  static func write(_ value: JSONValue, sorted: Bool, to bytes: inout [UInt8]) {
    switch value {
    case .null: write(fixed: "null", to: &bytes)
    case .bool(true): write(fixed: "true", to: &bytes)
    case .bool(false): write(fixed: "false", to: &bytes)
    case .integer(let value): write(value, to: &bytes)
    case .unsigned(let value): write(digitsOf: value, to: &bytes)
    case .double(let value): write(value, to: &bytes)
    case .float(let value): write(value, to: &bytes)
    case .string(let value): write(value, to: &bytes)
    case .object(let value): write(value, sorted: sorted, to: &bytes)
    case .array(let elements):
      bytes.append(UInt8(ascii: "["))
      var isFirst = true
      for element in elements {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        write(element, sorted: sorted, to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    }
  }

  /// Appends an object.
  static func write(_ object: JSONObject, sorted: Bool, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
    var isFirst = true
    func write(_ member: JSONObject.Element) {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      Self.write(member.key, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      Self.write(member.value, sorted: sorted, to: &bytes)
    }
    if sorted, !isSorted(object) {
      for member in object.sorted(by: { precedes($0.key, $1.key) }) { write(member) }
    } else {
      for member in object { write(member) }
    }
    bytes.append(UInt8(ascii: "}"))
  }

  private static func isSorted(_ object: JSONObject) -> Bool {
    zip(object, object.dropFirst()).allSatisfy { precedes($0.key, $1.key) }
  }

  /// The order of UTF-8 bytes, which `String`'s own order is not.
  private static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  /// Appends fixed text as it is.
  static func write(fixed text: StaticString, to bytes: inout [UInt8]) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends a string with its quotes, escaping no more than has to be.
  static func write(_ string: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    var string = string
    string.withUTF8 { content in
      var start = 0
      while true {
        let end = JSONScan.plainEnd(content, from: start)
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: content[start..<end]))
        guard end < content.count else { break }
        escape(content[end], to: &bytes)
        start = end + 1
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func escape(_ byte: UInt8, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\\"))
    switch byte {
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x0A: bytes.append(UInt8(ascii: "n"))
    case 0x0C: bytes.append(UInt8(ascii: "f"))
    case 0x0D: bytes.append(UInt8(ascii: "r"))
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
    default:
      write(fixed: "u00", to: &bytes)
      bytes.append(JSONScan.hexDigit(byte >> 4))
      bytes.append(JSONScan.hexDigit(byte & 15))
    }
  }
}
