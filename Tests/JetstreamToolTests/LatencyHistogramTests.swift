import Foundation
import Testing

@testable import JetstreamTool

@Suite("Histograms of latencies", .paced)
struct LatencyHistogramTests {
  private func histogram(_ latencies: some Sequence<Int>) -> LatencyHistogram {
    var result = LatencyHistogram()
    for latency in latencies { result.record(latency) }
    return result
  }

  @Test("A quantile is at least the latency of its rank, and at most 1.6 % more")
  func precision() {
    var generator = SeededGenerator(seed: 4)
    for _ in 0..<50 {
      let latencies = (0..<500).map { _ in
        Int.random(in: 0...Int.max, using: &generator) >> Int.random(in: 0...62, using: &generator)
      }
      let (histogram, sorted) = (histogram(latencies), latencies.sorted())
      for part in [0, 0.1, 0.5, 0.9, 0.99, 0.998, 1] {
        let exact = sorted[max(Int((part * 500).rounded(.up)) - 1, 0)]
        let found = histogram.quantile(part)!
        #expect(found >= exact && Double(found) <= Double(exact) * 1.016, "\(part): \(exact)")
      }
      #expect(histogram.quantile(1) == sorted.last)
    }
  }

  @Test("Short latencies are counted exactly, and the highest one always is")
  func exact() {
    let histogram = histogram(1...100)
    #expect(histogram.count == 100)
    #expect([0.5, 0.9, 0.99, 1].map { histogram.quantile($0) } == [50, 90, 99, 100])
    #expect(self.histogram([1_234_567, 7]).highest == 1_234_567)
    #expect(self.histogram([1_234_567]).quantile(0.5) == 1_234_567)
    #expect(self.histogram([-5]).quantile(0.5) == 0)
    #expect(LatencyHistogram().quantile(0.5) == nil)
    let thousand = self.histogram(repeatElement(1, count: 999) + [2])
    #expect(thousand.quantile(0.999) == 1 && thousand.quantile(0.9999) == 2)
  }

  @Test("Each latency lies in exactly one bucket, from zero to the largest number")
  func buckets() {
    let powers = (0..<63).flatMap { [1 << $0 - 1, 1 << $0, 1 << $0 + 1] }
    for latency in powers + [127, 128, 191, 192, .max - 1, .max] {
      let buckets = histogram([latency]).buckets
      #expect(buckets.count == 1 && buckets[0].latencies.contains(latency), "\(latency)")
    }
    let all = histogram(0...5_000).buckets
    for (one, next) in zip(all, all.dropFirst()) {
      #expect(one.latencies.upperBound + 1 == next.latencies.lowerBound)
      #expect(one.count == one.latencies.count)
    }
  }

  @Test("Histograms that are merged are equal to one of all latencies")
  func merge() {
    let (low, high) = (Array(0..<1_000), (0..<1_000).map { $0 * 1_000_003 })
    for (first, second) in [(low, high), (high, low), ([], high), (low, [])] {
      var merged = histogram(first)
      merged.merge(histogram(second))
      #expect(merged == histogram(first + second))
    }
  }

  @Test("A histogram is written as JSON and read back")
  func coding() throws {
    for histogram in [LatencyHistogram(), histogram([0, 5, 5, 300, .max])] {
      let data = try JSONEncoder().encode(histogram)
      #expect(try JSONDecoder().decode(LatencyHistogram.self, from: data) == histogram)
    }
    let text = String(decoding: try JSONEncoder().encode(histogram([5, 5, 7])), as: UTF8.self)
    #expect(text.contains("[[5,2],[7,1]]"))
  }

  @Test(
    "Counts of buckets that do not exist are refused",
    arguments: ["[[-1,1]]", "[[99999,1]]", "[[1,0]]", "[[1,-4]]", "[[1]]", "[[1,2,3]]"])
  func refused(counts: String) {
    let data = Data(#"{"highest":1,"counts":\#(counts)}"#.utf8)
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(LatencyHistogram.self, from: data)
    }
  }

  @Test("The picture has a bar for each step of 1, 2 and 5, as long as its share")
  func picture() {
    let latencies =
      Array(repeating: 1_500_000, count: 40) + Array(repeating: 3_000_000, count: 20)
      + Array(repeating: 12_000_000, count: 19) + [900_000]
    let lines = LatencyText.picture(of: histogram(latencies))
    func bar(_ length: Int) -> String { String(repeating: "█", count: length) }
    #expect(
      lines == [
        "   from 500 µs    1.25 %  " + bar(1), "     from 1 ms   50.00 %  " + bar(40),
        "     from 2 ms   25.00 %  " + bar(20), "     from 5 ms    0.00 %  ",
        "    from 10 ms   23.75 %  " + bar(19),
      ])
    let lopsided = Array(repeating: 5_000, count: 999) + [60_000_000_000]
    #expect(LatencyText.picture(of: histogram(lopsided)).last?.hasSuffix("%  ▏") == true)
    #expect(LatencyText.picture(of: LatencyHistogram()).isEmpty)
  }

  @Test("Latencies and numbers have three digits, a unit, and commas")
  func texts() {
    let times = [0, 4_530, 999_400, 999_600, 1_234_567, 99_960_000, 12_300_000_000]
    #expect(
      times.map(LatencyText.text) == [
        "0.00 µs", "4.53 µs", "999 µs", "1.00 ms", "1.23 ms", "100 ms", "12.3 s",
      ])
    #expect(
      [0, 999, 1_000, -1_234_567].map(LatencyText.grouped) == ["0", "999", "1,000", "-1,234,567"])
    #expect([0.04, 99.9, 1234.5].map(LatencyText.rate) == ["0.0", "99.9", "1,235"])
  }
}
