@testable import Jetstream

/// A generator whose whole sequence follows from its seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Any finite double, by its bits, that is not a whole number below 2^53.
  mutating func finiteDouble() -> Double {
    while true {
      let value = Double(bitPattern: next())
      if value.isFinite, value.magnitude >= 0x1p53 || value != value.rounded() { return value }
    }
  }

  /// Any finite float, by its bits.
  mutating func finiteFloat() -> Float {
    while true {
      let value = Float(bitPattern: UInt32(truncatingIfNeeded: next()))
      if value.isFinite { return value }
    }
  }

  /// Text of up to `length` characters from all over Unicode, controls and quotes among them.
  mutating func text(upTo length: Int) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0...length, using: &self) {
      let range: ClosedRange<UInt32> =
        switch next() % 4 {
        case 0: 0...0x2F
        case 1: 0x20...0x7F
        case 2: 0x80...0xFFFF
        default: 0...0x10FFFF
        }
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &self)) {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// A value as the parser would make it, at most `depth` levels deep.
  mutating func json(depth: Int) -> JSONValue {
    switch next() % (depth > 0 ? 10 : 7) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &self))
    case 2: return .integer(Int64(bitPattern: next() >> (next() % 64)))
    case 3: return .integer(-Int64(next() >> 33))
    case 4: return .unsigned(next() | 1 << 63)
    case 5: return .double(finiteFraction())
    case 6: return .string(text(upTo: 20))
    case 7: return .array((0..<Int(next() % 6)).map { _ in json(depth: depth - 1) })
    default:
      var object = JSONObject()
      for _ in 0..<Int(next() % 24) { object[text(upTo: 8)] = json(depth: depth - 1) }
      return .object(object)
    }
  }

  /// A double whose text the parser reads as a double again.
  private mutating func finiteFraction() -> Double {
    next().isMultiple(of: 2) ? finiteDouble() : Double(Int64(next() >> 40)) + 0.125
  }
}
