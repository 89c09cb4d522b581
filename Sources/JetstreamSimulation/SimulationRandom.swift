import Foundation
import Jetstream

/// A random number generator whose whole sequence is derived from its seed (SplitMix64), the same
/// on every machine and in every process.
///
/// All chance in a ``Simulation`` comes from such generators, so that a seed replays exactly. That
/// includes the UUIDs of models, which edits have to take from here:
///
/// ```swift
/// canvas.shapes.append(random.make(Shape.init(uuid:)))
/// ```
public struct SimulationRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates the generator of a seed.
  public init(seed: UInt64) { state = seed }

  /// Creates the generator of a branch of a seed. The sequences of different branches are
  /// unrelated.
  public init(seed: UInt64, branch: Int...) {
    state = seed
    for step in branch {
      state = next() ^ (UInt64(bitPattern: Int64(step)) &* 0xD1B5_4A32_D192_ED03)
    }
    state = next()
  }

  /// Returns the next 64 bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns true with the probability `share`, from 0 to 1.
  public mutating func chance(_ share: Double) -> Bool { unit() < share }

  /// Returns a number from 0 up to, but not including, 1.
  public mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// Returns an integer of the range.
  public mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(next() % UInt64(range.count))
  }

  /// Returns a random element of a collection; nil if it is empty.
  public mutating func pick<Elements: RandomAccessCollection>(
    from elements: Elements
  ) -> Elements.Element? {
    if elements.isEmpty { return nil }
    return elements[
      elements.index(elements.startIndex, offsetBy: number(in: 0...elements.count - 1))]
  }

  /// Returns a random UUID, of version 4.
  public mutating func uuid() -> UUID {
    let (high, low) = (next(), next())
    func byte(_ word: UInt64, _ at: Int) -> UInt8 { UInt8(truncatingIfNeeded: word >> (8 * at)) }
    return UUID(
      uuid: (
        byte(high, 7), byte(high, 6), byte(high, 5), byte(high, 4), byte(high, 3), byte(high, 2),
        byte(high, 1) & 0x0F | 0x40, byte(high, 0), byte(low, 7) & 0x3F | 0x80, byte(low, 6),
        byte(low, 5), byte(low, 4), byte(low, 3), byte(low, 2), byte(low, 1), byte(low, 0)
      ))
  }

  /// Makes a model with a UUID from this generator.
  public mutating func make<Model: ModelObject>(_ make: (UUID) -> Model) -> Model { make(uuid()) }
}
