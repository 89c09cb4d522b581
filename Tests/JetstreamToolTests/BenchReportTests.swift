import Jetstream
import Testing

@testable import JetstreamTool

@Suite("The report of a bench", .paced)
struct BenchReportTests {
  private func makeReport() throws -> BenchReport {
    var report = BenchReport(
      try BenchOptions(["ws://a", "--clients", "11", "--in-flight", "4", "--seconds", "2"]))
    var tally = BenchTally()
    (tally.accepted, tally.deliveries) = (3_000, 30_000)
    for number in 1...3_000 { tally.acceptance.record(number * 1_000) }
    report.add(tally, isInTime: true)
    var rest = BenchTally()
    (rest.accepted, rest.rejected, rest.errors, rest.reconnects) = (5, 1, 2, 4)
    (rest.unmade, rest.disconnected) = (1_200, 3)
    rest.note("the server is full")
    rest.note("the server is full")
    report.add(rest, isInTime: false)
    report.measure(nanoseconds: 2 * BenchClock.second)
    (report.missed, report.undecided) = (7, 6)
    return report
  }

  @Test("The table has totals, rates of the time in which writers wrote, and latencies")
  func table() throws {
    let lines = try makeReport().text.split(separator: "\n").map(String.init)
    let expected = [
      "11 clients, 2 processes, 1 scope, 1 writer, 4 in flight, 64 bytes, 2.0 s",
      "                                total   per second",
      "change sets accepted            3,005        1,500",
      "deliveries                     30,000       15,000",
      "missed deliveries                   7",
      "change sets rejected                1",
      "change sets undecided               6",
      "change sets not made            1,200",
      "clients not connected               3",
      "errors                              2",
      "reconnects                          4",
      "latency              p50       p90       p99     p99.9       max",
      "until accepted   1.51 ms   2.72 ms   2.98 ms   3.00 ms   3.00 ms",
      "until seen             -         -         -         -         -",
      "problems",
      "2 × the server is full",
      "until accepted",
    ]
    #expect(Array(lines.prefix(expected.count)) == expected)
    #expect(lines.last?.hasPrefix("     from 2 ms   33.") == true)
    #expect(lines.count == expected.count + 11)
  }

  @Test("What the measurements leave out is said in a sentence")
  func gap() throws {
    #expect(
      try makeReport().gap
        == "not all was measured (change sets undecided: 6, change sets not made: 1,200, "
        + "missed deliveries: 7, clients not connected: 3).")
    var report = BenchReport(try BenchOptions(["ws://a"]))
    var tally = BenchTally()
    (tally.accepted, tally.rejected, tally.errors, tally.reconnects) = (5, 1, 2, 4)
    report.add(tally, isInTime: true)
    #expect(report.gap == nil)
    report.missed = 0
    #expect(report.gap == nil)
    report.missed = 1
    #expect(report.gap == "not all was measured (missed deliveries: 1).")
  }

  @Test("An interrupted bench says so, and has no missed deliveries")
  func interrupted() throws {
    var report = BenchReport(try BenchOptions(["ws://a", "--scopes", "3", "--rate", "50"]))
    report.isInterrupted = true
    let lines = report.text.split(separator: "\n").map(String.init)
    #expect(
      lines[0] == "10 clients, 2 processes, 3 scopes, 1 writer in each, "
        + "50 change sets a second per writer, 64 bytes, 0.0 s, interrupted")
    #expect(lines.contains("missed deliveries                   -"))
    #expect(lines.contains("change sets accepted                0          0.0"))
    guard case .object(let json) = report.json else {
      Issue.record("no object")
      return
    }
    #expect(json["interrupted"] == true && json["missed"] == .null && json["rate"] == 50.0)
    #expect(json["inFlight"] == .null && json["problems"] == .object(JSONObject([])))
  }

  @Test("The object has the same counts, and latencies in milliseconds")
  func json() throws {
    guard case .object(let json) = try makeReport().json,
      case .object(let accepted)? = json["untilAccepted"],
      case .object(let seen)? = json["untilSeen"], case .array(let buckets)? = accepted["buckets"]
    else {
      Issue.record("no object")
      return
    }
    #expect(json["accepted"] == 3_005 && json["acceptedPerSecond"] == 1_500.0)
    #expect(json["deliveries"] == 30_000 && json["missed"] == 7 && json["undecided"] == 6)
    #expect(json["problems"] == ["the server is full": 2])
    #expect(json["unmade"] == 1_200 && json["disconnected"] == 3)
    #expect(accepted["max"] == 3.0 && seen["p50"] == .null && seen["buckets"] == .array([]))
    let counts = buckets.map { bucket -> Int64 in
      if case .array(let pair) = bucket, case .integer(let count)? = pair.last { count } else { 0 }
    }
    #expect(counts.reduce(0, +) == 3_000)
  }

  @Test("Only so many texts of problems are kept")
  func problems() {
    var tally = BenchTally()
    for number in 0..<100 { tally.note("problem \(number)") }
    tally.note("problem 0")
    #expect(tally.problems.count == 20 && tally.problems["problem 0"] == 2)
  }
}
