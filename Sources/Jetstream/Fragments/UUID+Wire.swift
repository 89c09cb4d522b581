import Foundation

extension UUID {
  /// Reads the 36 characters of a UUID, hexadecimal digits of either case with dashes in their
  /// places. Anything else gives nil.
  init?(wireText text: String) {
    var text = text
    let bytes: uuid_t? = text.withUTF8 { characters in
      guard characters.count == 36 else { return nil }
      var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
      let isValid = withUnsafeMutableBytes(of: &bytes) { bytes in
        var position = 0
        for offset in 0..<16 {
          if Self.isDashBefore(offset) {
            guard characters[position] == UInt8(ascii: "-") else { return false }
            position += 1
          }
          guard let high = JSONScan.hexValue(characters[position]),
            let low = JSONScan.hexValue(characters[position + 1])
          else { return false }
          bytes[offset] = high << 4 | low
          position += 2
        }
        return true
      }
      return isValid ? bytes : nil
    }
    guard let bytes else { return nil }
    self.init(uuid: bytes)
  }

  /// The UUID in lower case, as it goes over the wire.
  var wireText: String {
    String(unsafeUninitializedCapacity: 36) { characters in
      write(to: characters)
      return 36
    }
  }

  /// Appends ``wireText`` to UTF-8 bytes.
  func writeWireText(to bytes: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { characters in
      write(to: characters)
      bytes.append(contentsOf: UnsafeBufferPointer(characters))
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
