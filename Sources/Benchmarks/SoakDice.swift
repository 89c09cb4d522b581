import Synchronization

/// A seeded generator of random numbers: SplitMix64.
struct SoakDice: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// Returns true with a probability in percent.
  mutating func hits(percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

  /// Returns a duration in a range of seconds.
  mutating func seconds(_ range: ClosedRange<Double>) -> Duration {
    .seconds(Double.random(in: range, using: &self))
  }
}

/// A generator for code that runs outside the actor of its owner.
final class SharedDice: Sendable {
  private let dice: Mutex<SoakDice>

  init(seed: UInt64) { dice = Mutex(SoakDice(seed: seed)) }

  func hits(percent: Int) -> Bool { dice.withLock { $0.hits(percent: percent) } }

  func seconds(_ range: ClosedRange<Double>) -> Double {
    dice.withLock { Double.random(in: range, using: &$0) }
  }
}

/// A short text that stands for a long one: its FNV-1a hash.
struct SoakDigest: Equatable, CustomStringConvertible {
  let description: String

  init(_ text: String) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    description = String(hash, radix: 16)
  }
}
