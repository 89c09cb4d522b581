/// The exact sum of any number of `Double`s, each of which can be taken out again.
///
/// Each finite `Double` is an integer times 2^-1074, of less than 2^2098. The sum of such integers is kept with all its
/// bits, in two's complement, with 78 bits to spare: enough for more numbers than there can be. What cannot be added up
/// is counted. Cost: O(1) for each number, with 272 bytes to hold the sum.
struct ExactSum {
  private var limbs = ContiguousArray<UInt64>(repeating: 0, count: 34)
  private var (notNumbers, infinite, negativeInfinite) = (0, 0, 0)

  mutating func add(_ number: Double) {
    if !number.isFinite { return count(number, 1) }
    apply(number, isAdded: number.sign == .plus)
  }

  /// Takes out a number that was added.
  mutating func subtract(_ number: Double) {
    if !number.isFinite { return count(number, -1) }
    apply(number, isAdded: number.sign == .minus)
  }

  private mutating func count(_ number: Double, _ step: Int) {
    if number.isNaN {
      notNumbers += step
    } else if number > 0 {
      infinite += step
    } else {
      negativeInfinite += step
    }
  }

  /// Adds or subtracts the magnitude of a finite number.
  private mutating func apply(_ number: Double, isAdded: Bool) {
    let isSubnormal = number.exponentBitPattern == 0
    let significand = number.significandBitPattern | (isSubnormal ? 0 : 1 << 52)
    // The place of the lowest bit: all subnormal numbers share that of the smallest normal ones.
    let place = isSubnormal ? 0 : Int(number.exponentBitPattern) - 1
    let (limb, bit) = (place / 64, UInt64(place % 64))
    combine(significand << bit, into: limb, isAdded)
    // Shifting by 64 gives 0.
    combine(significand >> (64 - bit), into: limb + 1, isAdded)
  }

  private mutating func combine(_ part: UInt64, into limb: Int, _ isAdded: Bool) {
    var (carry, place) = (part, limb)
    while carry != 0, place < limbs.count {
      let (result, overflow) =
        isAdded
        ? limbs[place].addingReportingOverflow(carry)
        : limbs[place].subtractingReportingOverflow(carry)
      limbs[place] = result
      carry = overflow ? 1 : 0
      place += 1
    }
  }

  /// The `Double` that is nearest to the sum; of two that are equally near, the one with an even last bit.
  var value: Double {
    if notNumbers > 0 || infinite > 0 && negativeInfinite > 0 { return .nan }
    if infinite > 0 { return .infinity }
    if negativeInfinite > 0 { return -.infinity }
    let isNegative = limbs[limbs.count - 1] >> 63 == 1
    let magnitude = isNegative ? negated : limbs
    guard let top = magnitude.lastIndex(where: { $0 != 0 }) else { return 0 }
    let highest = top * 64 + 63 - magnitude[top].leadingZeroBitCount
    let result: Double
    if highest <= 52 {
      // All bits fit, and lie where the bit pattern of a number of this size has them.
      result = Double(bitPattern: magnitude[0])
    } else {
      result = Self.rounded(magnitude, lowest: highest - 52)
    }
    return isNegative ? -result : result
  }

  private var negated: ContiguousArray<UInt64> {
    var result = limbs
    var carry = true
    for place in result.indices {
      let (sum, overflow) = (~result[place]).addingReportingOverflow(carry ? 1 : 0)
      result[place] = sum
      carry = overflow
    }
    return result
  }

  /// Returns the number with the 53 bits from `lowest` on, rounded by those below.
  private static func rounded(_ limbs: ContiguousArray<UInt64>, lowest: Int) -> Double {
    let (limb, bit) = (lowest / 64, UInt64(lowest % 64))
    var significand = limbs[limb] >> bit
    if limb + 1 < limbs.count { significand |= limbs[limb + 1] << (64 - bit) }
    significand &= 1 << 53 - 1
    var exponent = UInt64(lowest + 1)
    let below = lowest - 1
    let isHalf = limbs[below / 64] >> UInt64(below % 64) & 1 == 1
    let isMore =
      limbs[below / 64] & (1 << UInt64(below % 64) - 1) != 0
      || limbs[..<(below / 64)].contains { $0 != 0 }
    if isHalf, isMore || significand & 1 == 1 { significand += 1 }
    if significand >> 53 == 1 {
      significand >>= 1
      exponent += 1
    }
    if exponent >= 2047 { return .infinity }
    return Double(bitPattern: exponent << 52 | significand & (1 << 52 - 1))
  }
}
