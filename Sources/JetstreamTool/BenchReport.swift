import Foundation
import Jetstream

/// The measurements of a bench, as text or JSON.
struct BenchReport {
  let options: BenchOptions
  /// The time that counts for rates.
  private(set) var seconds = 0.0
  /// The tally of the whole bench.
  private(set) var tally = BenchTally()
  /// The change sets accepted while writers wrote.
  private(set) var acceptedInTime = 0
  /// The deliveries made while writers wrote.
  private(set) var deliveriesInTime = 0
  /// The number of change sets that the server has not decided in time.
  var undecided = 0
  /// The number of deliveries that have not come in time; nil if they were not waited for.
  var missed: Int?
  var isInterrupted = false

  init(_ options: BenchOptions) { self.options = options }

  /// Sets the time in which writers wrote.
  mutating func measure(nanoseconds: Int) {
    seconds = max(Double(nanoseconds) / Double(BenchClock.second), 0)
  }

  /// Adds a tally of a worker.
  ///
  /// - Parameter isInTime: True if it is of the time in which writers wrote, so that it counts for rates.
  mutating func add(_ tally: BenchTally, isInTime: Bool) {
    self.tally.merge(tally)
    guard isInTime else { return }
    acceptedInTime += tally.accepted
    deliveriesInTime += tally.deliveries
  }

  /// A sentence about what the measurements leave out; nil if nothing is missing.
  var gap: String? {
    let counts = [
      ("change sets undecided", undecided), ("change sets not made", tally.unmade),
      ("missed deliveries", missed ?? 0), ("clients not connected", tally.disconnected),
    ].filter { $0.1 > 0 }
    if counts.isEmpty { return nil }
    let parts = counts.map { "\($0): \(LatencyText.grouped($1))" }
    return "not all was measured (\(parts.joined(separator: ", ")))."
  }

  private func rate(_ count: Int) -> Double { seconds > 0 ? Double(count) / seconds : 0 }

  private static let quantiles = [
    ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1),
  ]

  private static func latencies(_ histogram: LatencyHistogram) -> [(name: String, time: Int?)] {
    quantiles.map { ($0, histogram.quantile($1)) }
  }

  // MARK: Text

  /// The table and the pictures of the latencies.
  var text: String {
    ([heading, ""] + counts + [""] + latencyTable + problems + pictures).joined(separator: "\n")
  }

  private var heading: String {
    func counted(_ count: Int, _ noun: String, _ plural: String? = nil) -> String {
      "\(count) \(count == 1 ? noun : plural ?? noun + "s")"
    }
    let pace =
      options.rate.map { String(format: "%g change sets a second per writer", $0) }
      ?? "\(options.inFlight) in flight"
    return [
      counted(options.clients, "client"), counted(options.processes, "process", "processes"),
      counted(options.scopes, "scope"),
      options.scopes == 1
        ? counted(options.writers, "writer")
        : counted(options.writers, "writer") + " in each",
      pace, counted(options.size, "byte"),
      String(format: "%.1f s", seconds) + (isInterrupted ? ", interrupted" : ""),
    ].joined(separator: ", ")
  }

  private var counts: [String] {
    func row(_ name: String, _ total: String, _ rate: String = "") -> String {
      name.padding(toLength: 24, withPad: " ", startingAt: 0) + LatencyText.padded(total, 13)
        + (rate.isEmpty ? "" : LatencyText.padded(rate, 13))
    }
    func row(_ name: String, _ count: Int) -> String { row(name, LatencyText.grouped(count)) }
    return [
      row("", "total", "per second"),
      row(
        "change sets accepted", LatencyText.grouped(tally.accepted),
        LatencyText.rate(rate(acceptedInTime))),
      row(
        "deliveries", LatencyText.grouped(tally.deliveries),
        LatencyText.rate(rate(deliveriesInTime))),
      row("missed deliveries", missed.map(LatencyText.grouped) ?? "-"),
      row("change sets rejected", tally.rejected),
      row("change sets undecided", undecided),
      row("change sets not made", tally.unmade),
      row("clients not connected", tally.disconnected),
      row("errors", tally.errors),
      row("reconnects", tally.reconnects),
    ]
  }

  private var latencyTable: [String] {
    func row(_ name: String, _ columns: [String]) -> String {
      name.padding(toLength: 14, withPad: " ", startingAt: 0)
        + columns.map { LatencyText.padded($0, 10) }.joined()
    }
    func row(_ name: String, _ histogram: LatencyHistogram) -> String {
      row(name, Self.latencies(histogram).map { $0.time.map(LatencyText.text) ?? "-" })
    }
    return [
      row("latency", Self.quantiles.map(\.0)), row("until accepted", tally.acceptance),
      row("until seen", tally.sight),
    ]
  }

  private var problems: [String] {
    guard !tally.problems.isEmpty else { return [] }
    let sorted = tally.problems.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    return ["", "problems"] + sorted.map { "\(LatencyText.grouped($0.value)) × \($0.key)" }
  }

  private var pictures: [String] {
    [("until accepted", tally.acceptance), ("until seen", tally.sight)].flatMap {
      let picture = LatencyText.picture(of: $1)
      return picture.isEmpty ? [] : ["", $0] + picture
    }
  }

  // MARK: JSON

  /// The measurements as an object. Latencies are in milliseconds.
  var json: JSONValue {
    func number(_ number: Int) -> JSONValue { .integer(Int64(number)) }
    let problems = tally.problems.sorted { $0.key < $1.key }.map { ($0.key, number($0.value)) }
    return [
      "url": .string(options.url), "processes": number(options.processes),
      "clients": number(options.clients), "scopes": number(options.scopes),
      "writers": number(options.writers),
      "inFlight": options.rate == nil ? number(options.inFlight) : .null,
      "rate": options.rate.map { .double($0) } ?? .null, "size": number(options.size),
      "seconds": .double(seconds), "interrupted": .bool(isInterrupted),
      "accepted": number(tally.accepted), "acceptedPerSecond": .double(rate(acceptedInTime)),
      "deliveries": number(tally.deliveries),
      "deliveriesPerSecond": .double(rate(deliveriesInTime)),
      "missed": missed.map(number) ?? .null, "rejected": number(tally.rejected),
      "undecided": number(undecided), "unmade": number(tally.unmade),
      "disconnected": number(tally.disconnected), "errors": number(tally.errors),
      "reconnects": number(tally.reconnects), "problems": .object(JSONObject(problems)),
      "untilAccepted": Self.json(tally.acceptance), "untilSeen": Self.json(tally.sight),
    ]
  }

  private static func json(_ histogram: LatencyHistogram) -> JSONValue {
    func milliseconds(_ time: Int) -> JSONValue { .double(Double(time) / 1e6) }
    let quantiles = latencies(histogram).map { ($0.name, $0.time.map(milliseconds) ?? .null) }
    let buckets = histogram.buckets.map { bucket -> JSONValue in
      .array([milliseconds(bucket.latencies.lowerBound), .integer(Int64(bucket.count))])
    }
    return .object(JSONObject(quantiles + [("buckets", .array(buckets))]))
  }
}
