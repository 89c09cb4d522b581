/// A hash of the wire names and types of a class, or of all classes of a scope. Two programs with
/// equal fingerprints use the same names and types on the wire; others differ, as far as 64 bits
/// can tell.
///
/// It depends on nothing else: not on the order of declarations, local properties, source names
/// that differ from wire names, default values, the process or the platform.
package struct SchemaFingerprint: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The hash.
  package let rawValue: UInt64

  /// Makes a fingerprint from its number.
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Parses a ``description``. Returns nil for anything but 16 hexadecimal digits.
  package init?(_ text: String) {
    guard let value = UInt64(hexText: text) else { return nil }
    rawValue = value
  }

  /// The hash as 16 hexadecimal digits.
  package var description: String { rawValue.hexText }

  /// Hashes strings in order: FNV-1a over their UTF-8, each followed by a byte that UTF-8 does not
  /// contain.
  package init(of texts: some Sequence<String>) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func feed(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    for text in texts {
      for byte in text.utf8 { feed(byte) }
      feed(0xFF)
    }
    rawValue = hash
  }
}
