import Foundation

/// Latencies and numbers as text.
enum LatencyText {
  /// Returns a latency with three digits and its unit.
  static func text(_ nanoseconds: Int) -> String {
    // A latency that would be rounded up to 1000 has the next unit.
    switch Double(nanoseconds) {
    case ..<999.5e3: digits(Double(nanoseconds) / 1e3) + " µs"
    case ..<999.5e6: digits(Double(nanoseconds) / 1e6) + " ms"
    case let time: digits(time / 1e9) + " s"
    }
  }

  private static func digits(_ number: Double) -> String {
    String(format: number < 9.995 ? "%.2f" : number < 99.95 ? "%.1f" : "%.0f", number)
  }

  /// Returns a number with commas between the thousands.
  static func grouped(_ number: Int) -> String {
    var result = ""
    for (place, digit) in String(number.magnitude).reversed().enumerated() {
      if place > 0, place.isMultiple(of: 3) { result.append(",") }
      result.append(digit)
    }
    return (number < 0 ? "-" : "") + String(result.reversed())
  }

  /// Returns a number of events in a second: whole ones if there are many.
  static func rate(_ number: Double) -> String {
    number < 99.95 ? String(format: "%.1f", number) : grouped(Int(number.rounded()))
  }

  /// Returns text with blanks in front of it, so that it takes a width.
  static func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
  }

  // MARK: Picture

  /// The length of the longest bar.
  private static let barLength = 40

  /// Returns a histogram as bars, a line each. The latencies of a line begin at 1, 2 or 5 times a power of ten.
  static func picture(of histogram: LatencyHistogram) -> [String] {
    var bars: [Int: Int] = [:]
    for (latencies, count) in histogram.buckets {
      // The middle decides about a bucket that lies in two bars.
      let middle = latencies.lowerBound + (latencies.upperBound - latencies.lowerBound) / 2
      bars[bounds.lastIndex { $0 <= middle } ?? 0, default: 0] += count
    }
    guard let first = bars.keys.min(), let last = bars.keys.max(), let most = bars.values.max()
    else { return [] }
    return (first...last).map { bar in
      let count = bars[bar, default: 0]
      let length = Int((Double(count * barLength) / Double(most)).rounded())
      let line = String(repeating: "█", count: length) + (length == 0 && count > 0 ? "▏" : "")
      let share = String(format: "%.2f %%", 100 * Double(count) / Double(histogram.count))
      return padded("from " + bound(of: bar), 14) + padded(share, 10) + "  " + line
    }
  }

  /// The first latencies of the bars, in nanoseconds: 0, 1 µs, 2 µs, 5 µs, 10 µs and so on, up to about an hour.
  private static let bounds: [Int] = {
    var (result, power) = ([0], 1_000)
    while power < 1_000_000_000_000 {
      result += [power, 2 * power, 5 * power]
      power *= 10
    }
    return result
  }()

  private static func bound(of index: Int) -> String {
    switch bounds[index] {
    case let time where time < 1_000_000: "\(time / 1_000) µs"
    case let time where time < 1_000_000_000: "\(time / 1_000_000) ms"
    case let time: "\(time / 1_000_000_000) s"
    }
  }
}
