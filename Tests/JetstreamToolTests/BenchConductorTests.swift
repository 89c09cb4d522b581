import Jetstream
import Testing

@testable import JetstreamTool

@Suite("The course of a bench", .paced)
struct BenchConductorTests {
  private let second = BenchClock.second

  private func tally(accepted: Int, deliveries: Int) -> BenchTally {
    var result = BenchTally()
    (result.accepted, result.deliveries) = (accepted, deliveries)
    for number in 0..<accepted { result.acceptance.record(1_000_000 + number) }
    for _ in 0..<deliveries { result.sight.record(2_000_000) }
    return result
  }

  private func makeConductor(_ arguments: String...) throws -> BenchConductor {
    BenchConductor(try BenchOptions(["ws://a", "--seconds", "2"] + arguments), now: 0)
  }

  /// Returns a conductor whose workers write.
  private func makeWriting() throws -> BenchConductor {
    var conductor = try makeConductor("--scopes", "2")
    _ = conductor.take(.line(1, .ready), now: 0)
    _ = conductor.take(.line(2, .ready), now: 0)
    return conductor
  }

  @Test("Workers begin together, drain what all have written, and end")
  func course() throws {
    var conductor = try makeConductor("--scopes", "2")
    #expect(conductor.take(.line(2, .ready), now: second).isEmpty)
    let begun = conductor.take(.line(1, .ready), now: second)
    #expect(
      begun == [
        .progress("10 clients have their scopes, after 1.00 s"),
        .order(.begin(at: second + second / 10)),
      ])
    let one = tally(accepted: 10, deliveries: 40)
    #expect(conductor.take(.line(1, .second(1, one)), now: 2 * second).isEmpty)
    let line = BenchConductor.progress(1, tally(accepted: 20, deliveries: 80))
    #expect(conductor.take(.line(2, .second(1, one)), now: 2 * second) == [.progress(line)])
    let written = tally(accepted: 1, deliveries: 2)
    let first = BenchLine.written(written, accepted: [11, 0], undecided: 0)
    #expect(conductor.take(.line(1, first), now: 3 * second).isEmpty)
    let last = BenchLine.written(written, accepted: [4, 7], undecided: 3)
    #expect(
      conductor.take(.line(2, last), now: 3 * second) == [.order(.drain(accepted: [15, 7]))])
    #expect(conductor.take(.line(1, .done(written, missed: 0)), now: 3 * second).isEmpty)
    #expect(conductor.take(.ended(1, .status(0)), now: 3 * second).isEmpty)
    #expect(
      conductor.take(.line(2, .done(written, missed: 5)), now: 3 * second)
        == [.finish(.measured)])
    let report = conductor.report
    #expect(report.tally.accepted == 24 && report.acceptedInTime == 20)
    #expect(report.tally.deliveries == 88 && report.deliveriesInTime == 80)
    #expect(report.missed == 5 && report.undecided == 3 && report.seconds == 2)
  }

  @Test("A line of progress names the second, the rates and the slowest latencies")
  func progress() {
    #expect(
      BenchConductor.progress(7, tally(accepted: 1_200, deliveries: 12_000))
        == "    7 s    1,200 change sets/s     12,000 deliveries/s   p99 accepted 1.00 ms, seen 2.00 ms"
    )
    #expect(BenchConductor.progress(7, BenchTally()).hasSuffix("p99 accepted -, seen -"))
  }

  @Test("A worker that ends too early is named, in each phase")
  func death() throws {
    let failure = BenchConductor.Step.finish(.failed("worker 2 was ended by signal 9."))
    var conductor = try makeConductor()
    #expect(conductor.take(.ended(2, .signal(9)), now: 0) == [failure])
    #expect(conductor.take(.ended(1, .signal(9)), now: 0).isEmpty)
    conductor = try makeWriting()
    #expect(conductor.take(.ended(2, .signal(9)), now: second) == [failure])
    conductor = try makeWriting()
    for worker in 1...2 {
      let line = BenchLine.written(BenchTally(), accepted: [0, 0], undecided: 0)
      _ = conductor.take(.line(worker, line), now: second)
    }
    #expect(
      conductor.take(.ended(1, .status(3)), now: second)
        == [.finish(.failed("worker 1 has ended with status 3."))])
  }

  @Test("The reason of a worker that cannot go on is the reason of the bench")
  func failure() throws {
    var conductor = try makeConductor()
    #expect(
      conductor.take(.line(1, .failed("There is no bench/1.")), now: 0)
        == [.finish(.failed("There is no bench/1."))])
  }

  @Test("Workers that do not answer in time are named, in each phase")
  func silence() throws {
    var conductor = try makeConductor()
    _ = conductor.take(.line(1, .ready), now: 0)
    #expect(conductor.take(.tick, now: 10 * second).isEmpty)
    #expect(
      conductor.take(.tick, now: 16 * second)
        == [.finish(.failed("worker 2 took too long to answer."))])
    conductor = try makeWriting()
    #expect(conductor.take(.tick, now: 12 * second).isEmpty)
    #expect(
      conductor.take(.tick, now: 18 * second)
        == [.finish(.failed("workers 1, 2 took too long to answer."))])
  }

  @Test("An interruption ends the workers, and what they have measured counts")
  func interruption() throws {
    var conductor = try makeWriting()
    _ = conductor.take(.line(1, .second(1, tally(accepted: 5, deliveries: 0))), now: second)
    #expect(conductor.take(.interrupted, now: second + second / 2) == [.order(.stop)])
    let done = BenchLine.done(tally(accepted: 2, deliveries: 3), missed: nil)
    #expect(conductor.take(.line(1, done), now: 2 * second).isEmpty)
    #expect(conductor.take(.ended(1, .status(0)), now: 2 * second).isEmpty)
    #expect(conductor.take(.line(2, done), now: 2 * second) == [.finish(.interrupted)])
    let report = conductor.report
    #expect(report.acceptedInTime == 9 && report.tally.deliveries == 6)
    #expect(report.isInterrupted && report.missed == nil)
    #expect(abs(report.seconds - 1.4) < 0.001)
  }

  @Test("Workers that do not obey an interruption are not waited for")
  func disobedience() throws {
    var conductor = try makeWriting()
    _ = conductor.take(.interrupted, now: second)
    #expect(conductor.take(.tick, now: 2 * second).isEmpty)
    #expect(conductor.take(.tick, now: 4 * second) == [.finish(.interrupted)])
    conductor = try makeWriting()
    _ = conductor.take(.interrupted, now: second)
    // The same request, twice: the terminal and a program in between have both sent a signal.
    #expect(conductor.take(.interrupted, now: second + second / 4).isEmpty)
    #expect(conductor.take(.interrupted, now: second + second / 2) == [.finish(.interrupted)])
  }

  @Test("Lines and orders are written as one line of JSON and read back")
  func coding() throws {
    var counts = tally(accepted: 3, deliveries: 1)
    counts.note("a\nb")
    let lines: [BenchLine] = [
      .ready, .second(4, counts), .written(counts, accepted: [1, 2], undecided: 0),
      .done(counts, missed: nil), .done(counts, missed: 2), .failed("\"no\""),
    ]
    for line in lines {
      let data = BenchLines.data(line)
      #expect(data.count { $0 == UInt8(ascii: "\n") } == 1 && data.last == UInt8(ascii: "\n"))
      #expect(BenchLines.value(BenchLine.self, of: String(decoding: data, as: UTF8.self)) == line)
    }
    for order in [BenchOrder.begin(at: .max), .drain(accepted: [5]), .stop] {
      let text = String(decoding: BenchLines.data(order), as: UTF8.self)
      #expect(BenchLines.value(BenchOrder.self, of: text) == order)
    }
    #expect(BenchLines.value(BenchOrder.self, of: "stop") == nil)
  }
}
