/// The key with which a client masks a frame's payload.
struct MaskKey: Sendable, Equatable {
  /// The four key bytes in wire order, the first in the lowest eight bits.
  var bits: UInt32

  /// Appends the next byte of the key in wire order.
  mutating func append(_ byte: UInt8) {
    bits = bits >> 8 | UInt32(byte) << 24
  }

  /// The four bytes in wire order.
  var bytes: [UInt8] {
    [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: bits >> UInt32($0)) }
  }

  /// Masks or unmasks `bytes` in place, eight at a time. `offset` is the number of payload bytes of the same frame
  /// before these.
  func apply(to bytes: UnsafeMutableRawBufferPointer, offset: Int) {
    let shift = UInt32(offset & 3) * 8
    let turned = shift == 0 ? bits : bits >> shift | bits << (32 - shift)
    let wide = (UInt64(turned) << 32 | UInt64(turned)).littleEndian
    var index = 0
    while index + 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      bytes.storeBytes(of: word ^ wide, toByteOffset: index, as: UInt64.self)
      index += 8
    }
    while index < bytes.count {
      bytes[index] ^= UInt8(truncatingIfNeeded: turned >> (UInt32(index & 3) * 8))
      index += 1
    }
  }
}
