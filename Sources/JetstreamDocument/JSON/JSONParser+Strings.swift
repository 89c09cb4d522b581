extension JSONParser {
  /// Reads a string whose opening quote is the next byte.
  package mutating func string() throws(JSONError) -> String {
    position += 1
    let start = position
    position = JSONScan.plainEnd(bytes, from: position)
    guard next == UInt8(ascii: "\"") else { return try escapedString(from: start) }
    let plain = UnsafeBufferPointer(rebasing: bytes[start..<position])
    guard let string = JSONScan.string(plain) else { throw invalidUTF8(from: start) }
    position += 1
    return string
  }

  /// Reads a string that is likely to occur again: the key of an object, or the name of a class. Its
  /// opening quote is the next byte. For the bit see ``JSONKeys``.
  @inline(__always)
  mutating func key() throws(JSONError) -> (string: String, bit: UInt64) {
    let start = position + 1
    let end = JSONScan.plainEnd(bytes, from: start)
    guard end < bytes.count, bytes[end] == UInt8(ascii: "\""), end - start <= JSONKeys.maxLength,
      let key = keys.string(bytes, from: start, to: end)
    else { return (try string(), 0) }
    position = end + 1
    return key
  }

  /// Goes on with a string that has an escape, or an error, at the position.
  private mutating func escapedString(from start: Int) throws(JSONError) -> String {
    isCanonical = false
    var content = Array(bytes[start..<position])
    while true {
      switch next {
      case UInt8(ascii: "\""):
        guard let string = content.withUnsafeBufferPointer({ JSONScan.string($0) }) else {
          throw invalidUTF8(from: start)
        }
        position += 1
        return string
      case UInt8(ascii: "\\"):
        try escape(into: &content)
      default:
        throw failure(.controlCharacter)
      }
      let plainStart = position
      position = JSONScan.plainEnd(bytes, from: position)
      content.append(contentsOf: bytes[plainStart..<position])
    }
  }

  private mutating func escape(into content: inout [UInt8]) throws(JSONError) {
    let start = position
    position += 1
    let escaped: UInt8
    switch next {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): escaped = next
    case UInt8(ascii: "b"): escaped = 0x08
    case UInt8(ascii: "f"): escaped = 0x0C
    case UInt8(ascii: "n"): escaped = 0x0A
    case UInt8(ascii: "r"): escaped = 0x0D
    case UInt8(ascii: "t"): escaped = 0x09
    case UInt8(ascii: "u"):
      position += 1
      content.append(contentsOf: String(try escapedScalar(from: start)).utf8)
      return
    default: throw failure(.invalidEscape)
    }
    position += 1
    content.append(escaped)
  }

  /// Reads the digits after `\u`, and a second escape if the first is half of a pair.
  private mutating func escapedScalar(from start: Int) throws(JSONError) -> Unicode.Scalar {
    let unit = try hexUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard unit < 0xDC00 else { throw JSONError(.loneSurrogate, at: start) }
    if next == UInt8(ascii: "\\"), position + 1 == bytes.count { position += 1 }
    guard position < bytes.count else { throw failure() }
    guard next == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u") else {
      throw JSONError(.loneSurrogate, at: start)
    }
    position += 2
    let low = try hexUnit()
    guard (0xDC00..<0xE000).contains(low) else { throw JSONError(.loneSurrogate, at: start) }
    let combined = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
    guard let scalar = Unicode.Scalar(combined) else { throw JSONError(.loneSurrogate, at: start) }
    return scalar
  }

  private mutating func hexUnit() throws(JSONError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = JSONScan.hexValue(next) else { throw failure(.invalidEscape) }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }

  private func invalidUTF8(from start: Int) -> JSONError {
    let string = UnsafeBufferPointer(rebasing: bytes[start..<position])
    return JSONError(.invalidUTF8, at: start + JSONScan.validUTF8Length(string))
  }
}
