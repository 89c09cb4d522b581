import CJetstream

/// CRC-32C (Castagnoli), calculated by an instruction of the processor or else with tables, eight bytes at a time.
///
/// It detects every error within 32 consecutive bits, hence every change of a single byte, and up
/// to five flipped bits in a line of ordinary length.
package enum LogChecksum {
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var crc = UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
      tables[byte] = crc
    }
    for place in 256..<(8 * 256) {
      let before = tables[place - 256]
      tables[place] = before >> 8 ^ tables[Int(before & 0xFF)]
    }
    return tables
  }()

  /// Returns the checksum of `bytes`.
  package static func of(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBufferPointer { of($0) } }

  /// Returns the checksum of `bytes`.
  package static func of(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt32 { extend(0, by: bytes) }

  /// Returns the checksum of a sequence of bytes whose beginning has the checksum `crc` and whose
  /// rest is `bytes`.
  static func extend(_ crc: UInt32, by bytes: UnsafeBufferPointer<UInt8>) -> UInt32 {
    hasInstruction
      ? jetstream_crc32c(crc, bytes.baseAddress, bytes.count) : extendByTables(crc, by: bytes)
  }

  private static let hasInstruction = jetstream_has_crc32c()

  /// Returns the same as ``extend(_:by:)``, on a processor of whatever kind.
  static func extendByTables(
    _ crc: UInt32, by bytes: UnsafeBufferPointer<UInt8>
  ) -> UInt32 {
    tables.withUnsafeBufferPointer { table in
      let raw = UnsafeRawBufferPointer(bytes)
      var crc = ~crc
      var position = 0
      while position + 8 <= raw.count {
        let word =
          UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
          ^ UInt64(crc)
        let low = Int(truncatingIfNeeded: word & 0xFFFF_FFFF)
        let high = Int(truncatingIfNeeded: word >> 32)
        let first = table[1792 + low & 0xFF] ^ table[1536 + (low >> 8) & 0xFF]
        let second = table[1280 + (low >> 16) & 0xFF] ^ table[1024 + (low >> 24)]
        let third = table[768 + high & 0xFF] ^ table[512 + (high >> 8) & 0xFF]
        let fourth = table[256 + (high >> 16) & 0xFF] ^ table[high >> 24]
        crc = (first ^ second) ^ (third ^ fourth)
        position += 8
      }
      while position < raw.count {
        crc = crc >> 8 ^ table[Int((crc ^ UInt32(raw[position])) & 0xFF)]
        position += 1
      }
      return ~crc
    }
  }
}
