/// SHA-1 as RFC 3174 describes it.
///
/// The opening handshake of RFC 6455 needs this one digest, to prove that the answering side
/// understood the question. It protects nothing, so the known weakness of SHA-1 does not matter.
package enum SHA1 {
  /// Returns the 20-byte digest of `message`. Linear in the message's length.
  package static func digest(_ message: [UInt8]) -> [UInt8] {
    var padded = message
    padded.append(0x80)
    while padded.count % 64 != 56 { padded.append(0) }
    let bitCount = UInt64(message.count) * 8
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      padded.append(UInt8(truncatingIfNeeded: bitCount >> shift))
    }

    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    var words = [UInt32](repeating: 0, count: 80)
    for start in stride(from: 0, to: padded.count, by: 64) {
      absorb(padded[start..<start + 64], into: &state, using: &words)
    }

    return state.flatMap { word in
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
    }
  }

  /// Mixes one block of 64 bytes into the running state. `words` is scratch room for the schedule.
  private static func absorb(
    _ block: ArraySlice<UInt8>, into state: inout [UInt32], using words: inout [UInt32]
  ) {
    for index in 0..<16 {
      let at = block.startIndex + index * 4
      words[index] =
        UInt32(block[at]) << 24 | UInt32(block[at + 1]) << 16
        | UInt32(block[at + 2]) << 8 | UInt32(block[at + 3])
    }
    for index in 16..<80 {
      let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
      words[index] = rotate(mixed, by: 1)
    }

    var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
    for round in 0..<80 {
      let choice: UInt32
      let constant: UInt32
      switch round {
      case 0..<20: (choice, constant) = ((b & c) | (~b & d), 0x5A82_7999)
      case 20..<40: (choice, constant) = (b ^ c ^ d, 0x6ED9_EBA1)
      case 40..<60: (choice, constant) = ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
      default: (choice, constant) = (b ^ c ^ d, 0xCA62_C1D6)
      }
      let next = rotate(a, by: 5) &+ choice &+ e &+ constant &+ words[round]
      (e, d, c, b, a) = (d, c, rotate(b, by: 30), a, next)
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
    state[4] &+= e
  }

  private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}
