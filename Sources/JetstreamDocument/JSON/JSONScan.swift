/// Byte scans that reading and writing JSON share.
package enum JSONScan {
  /// The place of the first byte at or after `start` that a JSON string cannot hold as it is: a
  /// quote, a backslash or a control character. Looks at eight bytes at a time.
  static func plainEnd(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
    var position = start
    let raw = UnsafeRawBufferPointer(bytes)
    while position + 8 <= bytes.count {
      let word = UInt64(
        littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      let marks = zeroBytes(word ^ (ones &* 0x22)) | zeroBytes(word ^ (ones &* 0x5C))
      let special = marks | ((word &- (ones &* 0x20)) & ~word & highBits)
      // A borrow can only mark bytes after the first true one, so the lowest mark is right.
      guard special == 0 else { return position + special.trailingZeroBitCount / 8 }
      position += 8
    }
    while position < bytes.count {
      let byte = bytes[position]
      if byte < 0x20 || byte == 0x22 || byte == 0x5C { break }
      position += 1
    }
    return position
  }

  private static var ones: UInt64 { 0x0101_0101_0101_0101 }
  private static var highBits: UInt64 { 0x8080_8080_8080_8080 }

  @inline(__always)
  private static func zeroBytes(_ word: UInt64) -> UInt64 {
    (word &- ones) & ~word & highBits
  }

  /// The four bytes that eight hexadecimal digits of either case stand for, or nil if one of the
  /// characters is not such a digit. The first digit is the lowest byte of `digits`, the first byte
  /// the lowest of the result.
  @inline(__always)
  static func hexBytes(_ digits: UInt64) -> UInt32? {
    let isLetter = digits >> 6 & ones
    let nibbles = (digits & (ones &* 0x0F)) &+ isLetter &* 9
    // Only digits give themselves when they are written again, in the case that they came in.
    let isAboveNine = (nibbles &+ (ones &* 0x76)) >> 7 & ones
    let written = nibbles &+ (ones &* 0x30) &+ isAboveNine &* 0x27
    guard written == digits | isLetter << 5, nibbles & (ones &* 0xF0) == 0 else { return nil }
    let pairs = (nibbles << 4 | nibbles >> 8) & 0x00FF_00FF_00FF_00FF
    let words = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: words | words >> 16)
  }

  /// The eight hexadecimal digits in lower case of four bytes, in the same order as in ``hexBytes(_:)``.
  @inline(__always)
  static func hexDigits(_ bytes: UInt32) -> UInt64 {
    var nibbles = UInt64(bytes)
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles >> 4 | nibbles << 8) & (ones &* 0x0F)
    let isLetter = (nibbles &+ ones &* 6) >> 4 & ones
    return nibbles &+ ones &* 0x30 &+ isLetter &* 0x27
  }

  /// The value of a hexadecimal digit of either case, or nil for any other byte.
  @inline(__always)
  package static func hexValue(_ byte: UInt8) -> UInt8? {
    let digit = byte &- UInt8(ascii: "0")
    if digit < 10 { return digit }
    let letter = (byte | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : nil
  }

  /// The lower-case hexadecimal digit of a value below 16.
  @inline(__always)
  package static func hexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// The bytes as a string, or nil if they are not well-formed UTF-8.
  ///
  /// Faster than `String(validating:as:)`, which looks up generic metadata on every call.
  /// Here the string is made with repairs, and if it is not all ASCII, compared with the original:
  /// a repair always changes bytes.
  @inline(__always)
  static func string(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
    var string = String(decoding: bytes, as: UTF8.self)
    if bytes.reduce(0, |) < 0x80 { return string }
    let isUnchanged = string.withUTF8 { copy in
      copy.count == bytes.count && copy.elementsEqual(bytes)
    }
    return isUnchanged ? string : nil
  }

  /// The number of bytes before the first that is not part of well-formed UTF-8.
  static func validUTF8Length(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var decoder = Unicode.UTF8.ForwardParser()
    var iterator = bytes.makeIterator()
    var length = 0
    while case .valid(let scalar) = decoder.parseScalar(from: &iterator) {
      length += scalar.count
    }
    return length
  }
}
