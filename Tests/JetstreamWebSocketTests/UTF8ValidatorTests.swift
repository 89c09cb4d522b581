import Testing

@testable import JetstreamWebSocket

@Suite struct UTF8ValidatorTests {
  private func isValid(_ bytes: [UInt8], cutAt cut: Int) -> Bool {
    var validator = UTF8Validator()
    return bytes.withUnsafeBytes { whole in
      validator.accept(.init(rebasing: whole[..<cut]))
        && validator.accept(.init(rebasing: whole[cut...]))
    } && validator.isComplete
  }

  @Test func agreesWithTheStandardLibraryOnRandomBytes() {
    var generator = SeededGenerator()
    // Bytes near the borders of the encoding's ranges meet far more often than by pure chance.
    let alphabet: [UInt8] = [
      0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
      0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
    ]
    for round in 0..<20_000 {
      var bytes = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
        alphabet.randomElement(using: &generator)!
      }
      if round % 4 == 0 {
        bytes = Array(repeating: 0x61, count: round % 40) + bytes
      }
      if round % 8 == 1 {
        let scalars = (0..<8).compactMap { _ in
          Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &generator))
        }
        bytes = scalars.flatMap { Array(String($0).utf8) }
      }
      let expected = String(validating: bytes, as: UTF8.self) != nil
      let cut = Int.random(in: 0...bytes.count, using: &generator)
      #expect(isValid(bytes, cutAt: cut) == expected, "seed \(generator.seed), bytes \(bytes)")
    }
  }

  /// Each prefix is fine but for its last byte, after which no text could continue.
  @Test(
    arguments: [
      [0x80], [0xC0], [0xC1], [0xF5], [0xFF], [0xE0, 0x9F], [0xED, 0xA0], [0xF0, 0x8F],
      [0xF4, 0x90],
      [0xC2, 0x41], [0xE1, 0x80, 0xC0],
    ] as [[UInt8]])
  func refusesAtTheFirstByteThatCannotBe(bytes: [UInt8]) {
    var validator = UTF8Validator()
    for (index, byte) in bytes.enumerated() {
      let accepted = withUnsafeBytes(of: byte) { validator.accept($0) }
      #expect(accepted == (index < bytes.count - 1))
    }
  }
}
