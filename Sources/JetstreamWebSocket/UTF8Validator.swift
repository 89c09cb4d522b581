/// Checks UTF-8 as its bytes arrive, in pieces of any size.
///
/// It refuses at the first byte that no well-formed text could have at that place: overlong forms, surrogates and
/// values past U+10FFFF are detected at their second byte at the latest.
struct UTF8Validator: Sendable {
  /// The number of continuation bytes that the current scalar still lacks.
  private var missing = 0
  /// The range in which the next continuation byte must lie.
  private var low: UInt8 = 0x80
  private var high: UInt8 = 0xBF

  /// True if the bytes so far end between two scalars, so that the text may end here.
  var isComplete: Bool { missing == 0 }

  /// Takes more bytes. Returns false when they cannot continue well-formed UTF-8; do not use the validator after that.
  /// Runs of ASCII are skipped eight bytes at a time.
  mutating func accept(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    let count = bytes.count
    while index < count {
      if missing == 0 {
        while index + 8 <= count,
          bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        {
          index += 8
        }
        if index == count { break }
      }
      guard accept(bytes[index]) else { return false }
      index += 1
    }
    return true
  }

  /// Takes one byte.
  private mutating func accept(_ byte: UInt8) -> Bool {
    if missing > 0 {
      guard byte >= low, byte <= high else { return false }
      missing -= 1
      (low, high) = (0x80, 0xBF)
      return true
    }
    switch byte {
    case 0x00...0x7F: return true
    case 0xC2...0xDF: missing = 1
    case 0xE0: (missing, low) = (2, 0xA0)
    case 0xED: (missing, high) = (2, 0x9F)
    case 0xE1...0xEF: missing = 2
    case 0xF0: (missing, low) = (3, 0x90)
    case 0xF1...0xF3: missing = 3
    case 0xF4: (missing, high) = (3, 0x8F)
    default: return false
    }
    return true
  }
}
