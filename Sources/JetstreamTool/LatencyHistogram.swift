/// The counts of latencies in buckets whose widths grow with the latency.
///
/// Nanoseconds below 128 have a bucket each; above, 64 buckets of equal width lie between each power of two and the
/// next. So a quantile is at most 1.6 % above the latency that was recorded: about two significant digits.
struct LatencyHistogram: Hashable, Sendable {
  /// The number of recorded latencies.
  private(set) var count = 0
  /// The highest recorded latency, exactly; 0 if there is none.
  private(set) var highest = 0
  /// The counts by the index of the bucket, up to the last one that is not zero.
  private var counts: [Int] = []

  /// The index of the bucket with the highest latencies.
  private static let lastIndex = index(of: .max)

  /// Records a latency in nanoseconds; one below zero counts as zero.
  mutating func record(_ latency: Int) {
    let latency = max(latency, 0)
    add(1, at: Self.index(of: latency))
    highest = max(highest, latency)
  }

  /// Adds the counts of another histogram.
  mutating func merge(_ other: LatencyHistogram) {
    for (index, count) in other.counts.enumerated() where count > 0 { add(count, at: index) }
    highest = max(highest, other.highest)
  }

  private mutating func add(_ number: Int, at index: Int) {
    if index >= counts.count {
      counts.append(contentsOf: repeatElement(0, count: index + 1 - counts.count))
    }
    counts[index] += number
    count += number
  }

  /// Returns the latency that a part of all latencies do not exceed; nil if there are none.
  ///
  /// - Parameter part: From 0 to 1: 0.5 for the median.
  func quantile(_ part: Double) -> Int? {
    guard count > 0 else { return nil }
    // A product such as 0.999 * 1000 may be a little more than the whole number that it stands for.
    let rank = min(max(Int((part * Double(count) - 1e-9 * Double(count)).rounded(.up)), 1), count)
    var passed = 0
    for (index, count) in counts.enumerated() {
      passed += count
      if passed >= rank { return min(Self.latencies(at: index).upperBound, highest) }
    }
    return highest
  }

  /// The buckets that are not empty: their latencies in nanoseconds and their counts.
  var buckets: [(latencies: ClosedRange<Int>, count: Int)] {
    counts.enumerated().compactMap { index, count in
      count > 0 ? (Self.latencies(at: index), count) : nil
    }
  }

  // MARK: Buckets

  /// Returns the index of the bucket of a latency.
  private static func index(of latency: Int) -> Int {
    let shift = max(Int.bitWidth - latency.leadingZeroBitCount - 7, 0)
    return shift * 64 + latency >> shift
  }

  /// Returns the latencies of a bucket.
  private static func latencies(at index: Int) -> ClosedRange<Int> {
    guard index >= 128 else { return index...index }
    let shift = index / 64 - 1
    let first = (index - shift * 64) << shift
    return first...(first + (1 << shift - 1))
  }
}

extension LatencyHistogram: Codable {
  private enum Key: CodingKey {
    case highest, counts
  }

  /// Writes the highest latency, and the counts as pairs of an index and a count.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(highest, forKey: .highest)
    let pairs = counts.enumerated().compactMap { $1 > 0 ? [$0, $1] : nil }
    try container.encode(pairs, forKey: .counts)
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    highest = try container.decode(Int.self, forKey: .highest)
    for pair in try container.decode([[Int]].self, forKey: .counts) {
      guard pair.count == 2, (0...Self.lastIndex).contains(pair[0]), pair[1] > 0 else {
        throw DecodingError.dataCorruptedError(
          forKey: .counts, in: container, debugDescription: "\(pair) should be a bucket's count")
      }
      add(pair[1], at: pair[0])
    }
  }
}
