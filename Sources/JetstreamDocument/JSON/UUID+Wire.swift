import Foundation

extension UUID {
  /// Reads the 36 characters of a UUID, hexadecimal digits of either case with dashes in their
  /// places. Anything else gives nil.
  package init?(wireText text: String) {
    var text = text
    guard let uuid = text.withUTF8({ UUID(wireBytes: UnsafeRawBufferPointer($0)) }) else {
      return nil
    }
    self = uuid
  }

  /// Reads the UTF-8 of such text.
  init?(wireBytes text: UnsafeRawBufferPointer) {
    let dash = UInt8(ascii: "-")
    guard text.count == 36, text[8] == dash, text[13] == dash, text[18] == dash, text[23] == dash
    else { return nil }
    func four(_ offset: Int) -> UInt64 {
      UInt64(UInt32(littleEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
    func eight(_ offset: Int) -> UInt64 {
      UInt64(littleEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    guard let first = JSONScan.hexBytes(eight(0)),
      let second = JSONScan.hexBytes(four(9) | four(14) << 32),
      let third = JSONScan.hexBytes(four(19) | four(24) << 32),
      let fourth = JSONScan.hexBytes(eight(28))
    else { return nil }
    let bytes = (first.littleEndian, second.littleEndian, third.littleEndian, fourth.littleEndian)
    // Both are sixteen bytes without padding.
    self.init(uuid: unsafeBitCast(bytes, to: uuid_t.self))
  }

  /// Returns true if the UTF-8 of a UUID has digits in upper case.
  @inline(__always)
  static func hasCapitals(_ text: UnsafeRawBufferPointer) -> Bool {
    // Of digits, dashes and letters, only capitals have the one bit and not the other.
    func marks(_ offset: Int) -> UInt64 {
      let word = text.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      return word & ~(word << 1)
    }
    return (marks(0) | marks(8) | marks(16) | marks(24) | marks(28)) & 0x4040_4040_4040_4040 != 0
  }

  /// The UUID in lower case, as it goes over the wire.
  package var wireText: String {
    String(unsafeUninitializedCapacity: 36) { characters in
      write(to: characters)
      return 36
    }
  }

  /// Appends ``wireText``.
  package func writeWireText(to output: inout JSONOutput) {
    output.append(upTo: 36) { characters in
      write(to: UnsafeMutableBufferPointer(start: characters, count: 36))
      return 36
    }
  }

  private func write(to characters: UnsafeMutableBufferPointer<UInt8>) {
    withUnsafeBytes(of: uuid) { bytes in
      let text = UnsafeMutableRawBufferPointer(characters)
      func digits(_ offset: Int) -> UInt64 {
        let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return JSONScan.hexDigits(UInt32(littleEndian: word))
      }
      func eight(_ digits: UInt64, at place: Int) {
        text.storeBytes(of: digits.littleEndian, toByteOffset: place, as: UInt64.self)
      }
      func four(_ digits: UInt64, at place: Int) {
        let word = UInt32(truncatingIfNeeded: digits)
        text.storeBytes(of: word.littleEndian, toByteOffset: place, as: UInt32.self)
      }
      let (second, third) = (digits(4), digits(8))
      eight(digits(0), at: 0)
      four(second, at: 9)
      four(second >> 32, at: 14)
      four(third, at: 19)
      four(third >> 32, at: 24)
      eight(digits(12), at: 28)
      let dash = UInt8(ascii: "-")
      (characters[8], characters[13], characters[18], characters[23]) = (dash, dash, dash, dash)
    }
  }
}
