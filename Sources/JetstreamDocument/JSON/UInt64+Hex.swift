extension UInt64 {
  /// Reads 16 hexadecimal digits of either case; nil for anything else.
  package init?(hexText text: some StringProtocol) {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ $0 != 0x2B && $0 != 0x2D }),
      let value = UInt64(text, radix: 16)
    else { return nil }
    self = value
  }

  /// The number as 16 hexadecimal digits.
  package var hexText: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
