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
