import Foundation

extension UUID {
  /// Reads the 36 characters of a UUID, hexadecimal digits of either case with dashes in their
  /// places. Anything else gives nil.
  package init?(wireText text: String) {
    var text = text
    let halves: (high: UInt64, low: UInt64)? = text.withUTF8 { characters in
      guard characters.count == 36, characters[8] == UInt8(ascii: "-"),
        characters[13] == UInt8(ascii: "-"), characters[18] == UInt8(ascii: "-"),
        characters[23] == UInt8(ascii: "-")
      else { return nil }
      // Without branches: whether a digit is a letter cannot be predicted.
      var invalid: UInt8 = 0
      func number(_ range: Range<Int>) -> UInt64 {
        var number: UInt64 = 0
        for position in range {
          let digit = characters[position] &- UInt8(ascii: "0")
          let letter = (characters[position] | 0x20) &- UInt8(ascii: "a")
          invalid |= (digit < 10 ? 0 : 1) & (letter < 6 ? 0 : 1)
          number = number << 4 | UInt64((digit < 10 ? digit : letter &+ 10) & 15)
        }
        return number
      }
      let high = number(0..<8) << 32 | number(9..<13) << 16 | number(14..<18)
      let low = number(19..<23) << 48 | number(24..<36)
      return invalid == 0 ? (high, low) : nil
    }
    guard let halves else { return nil }
    let bytes = (halves.high.bigEndian, halves.low.bigEndian)
    self.init(uuid: unsafeBitCast(bytes, to: uuid_t.self))
  }

  /// The UUID in lower case, as it goes over the wire.
  package var wireText: String {
    String(unsafeUninitializedCapacity: 36) { characters in
      write(to: characters)
      return 36
    }
  }

  /// Appends ``wireText``.
  func writeWireText(to output: inout JSONOutput) {
    output.append(upTo: 36) { characters in
      write(to: UnsafeMutableBufferPointer(start: characters, count: 36))
      return 36
    }
  }

  private func write(to characters: UnsafeMutableBufferPointer<UInt8>) {
    withUnsafeBytes(of: uuid) { bytes in
      var position = 0
      for offset in 0..<16 {
        if Self.isDashBefore(offset) {
          characters[position] = UInt8(ascii: "-")
          position += 1
        }
        characters[position] = JSONScan.hexDigit(bytes[offset] >> 4)
        characters[position + 1] = JSONScan.hexDigit(bytes[offset] & 15)
        position += 2
      }
    }
  }

  @inline(__always)
  private static func isDashBefore(_ offset: Int) -> Bool {
    offset == 4 || offset == 6 || offset == 8 || offset == 10
  }
}
