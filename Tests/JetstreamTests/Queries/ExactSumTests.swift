import Testing

@testable import Jetstream

/// The sum of finite numbers, rounded once: as in Shewchuk's "Adaptive precision floating-point arithmetic", with partial
/// sums that do not overlap. It is right as long as no partial sum overflows.
func exactSum(_ numbers: some Sequence<Double>) -> Double {
  var partials: [Double] = []
  for number in numbers {
    var x = number
    var kept: [Double] = []
    for var y in partials {
      if x.magnitude < y.magnitude { swap(&x, &y) }
      let high = x + y
      let low = y - (high - x)
      if low != 0 { kept.append(low) }
      x = high
    }
    partials = kept + [x]
  }
  guard var high = partials.popLast() else { return 0 }
  var low = 0.0
  while let next = partials.popLast() {
    let sum = high + next
    low = next - (sum - high)
    high = sum
    if low != 0 { break }
  }
  // Half of the last bit, and more of the same sign below it, is more than a half.
  if let next = partials.last, low < 0 && next < 0 || low > 0 && next > 0 {
    let twice = low * 2
    if twice == high + twice - high { high += twice }
  }
  return high
}

@Suite(.paced) struct ExactSumTests {
  private func number(_ generator: inout SeededGenerator) -> Double {
    switch Int.random(in: 0..<6, using: &generator) {
    case 0: return Double(Int.random(in: -1000...1000, using: &generator))
    case 1: return Double.random(in: -1...1, using: &generator)
    case 2: return Double(bitPattern: .random(in: 0...1 << 53, using: &generator))
    case 3: return [0.1, -0.0, 0x1p53, -1, 0.5].randomElement(using: &generator)!
    default:
      // Of any size, but so that no sum of them is infinite.
      let bits = UInt64.random(in: 0...UInt64.max, using: &generator)
      let number = Double(bitPattern: bits)
      return number.magnitude < 1e300 ? number : 1 / 3
    }
  }

  @Test(
    "The sum is the nearest number to the true one, whatever was taken out again",
    arguments: seeds(1...6))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var sum = ExactSum()
    var numbers: [Double] = []
    for step in 0..<500 {
      if numbers.count > 8, Bool.random(using: &generator) {
        let gone = numbers.remove(at: .random(in: 0..<numbers.count, using: &generator))
        sum.subtract(gone)
      } else {
        let number = number(&generator)
        numbers.append(number)
        sum.add(number)
      }
      #expect(sum.value == exactSum(numbers), "seed \(seed), step \(step)")
    }
    for number in numbers.shuffled(using: &generator) { sum.subtract(number) }
    #expect(sum.value == 0 && sum.value.sign == .plus, "seed \(seed)")
  }

  @Test("A sum of one number is that number", arguments: seeds(11...12))
  func single(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var numbers = [
      0, .leastNonzeroMagnitude, .leastNormalMagnitude, .leastNormalMagnitude.nextDown,
      .greatestFiniteMagnitude, 1, 1.nextUp, 1.nextDown, .pi, .infinity,
    ]
    for _ in 0..<500 {
      let number = Double(bitPattern: .random(in: 0...UInt64.max, using: &generator))
      if !number.isNaN { numbers.append(number) }
    }
    for number in numbers.flatMap({ [$0, -$0] }) {
      var sum = ExactSum()
      sum.add(number)
      #expect(sum.value == number, "seed \(seed)")
    }
  }

  @Test("Halves are rounded to the even side, and what is too large is infinite until it is not")
  func rounding() {
    func sum(_ numbers: [Double]) -> Double {
      var sum = ExactSum()
      for number in numbers { sum.add(number) }
      return sum.value
    }
    let big = 0x1p53
    #expect(sum([big, 1]) == big)
    #expect(sum([big, 3]) == big + 4)
    #expect(sum([big, 1, .leastNonzeroMagnitude]) == big + 2)
    #expect(sum([-big, -1, -.leastNonzeroMagnitude]) == -big - 2)
    #expect(sum([big - 1, 1, 0.5]) == big)
    let most = Double.greatestFiniteMagnitude
    #expect(sum([most, most]) == .infinity)
    #expect(sum([-most, -most]) == -.infinity)
    #expect(sum([most, most, -most]) == most)
    #expect(sum([most, 0x1p969]) == most)
    #expect(sum([most, 0x1p970]) == .infinity)
  }

  @Test("Numbers that are not finite are counted, and can be taken out again")
  func nonFinite() {
    var sum = ExactSum()
    sum.add(2)
    sum.add(.nan)
    sum.add(.infinity)
    #expect(sum.value.isNaN)
    sum.subtract(.nan)
    #expect(sum.value == .infinity)
    sum.add(-.infinity)
    #expect(sum.value.isNaN)
    sum.subtract(.infinity)
    #expect(sum.value == -.infinity)
    sum.subtract(-.infinity)
    #expect(sum.value == 2)
  }
}
