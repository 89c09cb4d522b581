import Foundation

/// The hash of UUIDs for one table, keyed with random numbers, since the UUIDs may come from a hostile peer.
///
/// It costs much less than `Hasher`, which mixes a UUID byte by byte.
package struct UUIDHash {
  @usableFromInline let keys: (UInt64, UInt64)

  /// Draws new keys.
  package init() { keys = (.random(in: 0 ... .max), .random(in: 0 ... .max)) }

  /// Returns the folded product of the two halves, each mixed with a random number, and mixed once more: without that,
  /// the hashes of UUIDs that count up would now and then lie close together.
  @inlinable @inline(__always)
  package func callAsFunction(_ uuid: UUID) -> UInt32 {
    let halves = unsafeBitCast(uuid.uuid, to: (UInt64, UInt64).self)
    let (high, low) = (halves.0 ^ keys.0).multipliedFullWidth(by: halves.1 ^ keys.1)
    // The golden ratio as a fraction of 2^64, whose multiples are spread evenly.
    return UInt32(truncatingIfNeeded: ((high ^ low) &* 0x9E37_79B9_7F4A_7C15) >> 32)
  }
}
