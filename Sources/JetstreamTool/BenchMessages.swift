import Foundation

/// The counts and latencies of a bench, or of a part of it: of one worker in one second, or of all in all.
struct BenchTally: Codable, Hashable, Sendable {
  /// The number of change sets that the server has accepted.
  var accepted = 0
  /// The number of change sets that other clients than the writer have seen, counted once for each client.
  var deliveries = 0
  /// The number of change sets that the server has rejected, or has accepted only in part.
  var rejected = 0
  /// The number of change sets that were due while a writer was behind, and that it has not made.
  var unmade = 0
  /// The number of clients that were not connected at the end.
  var disconnected = 0
  /// The number of warnings and errors that clients have reported.
  var errors = 0
  /// The number of connections that were made again after one was lost.
  var reconnects = 0
  /// The numbers of rejections, warnings and errors by their text, of which only the first ones are kept.
  var problems: [String: Int] = [:]
  /// The times from an edit to its acceptance, at the writer.
  var acceptance = LatencyHistogram()
  /// The times from an edit until another client sees it.
  var sight = LatencyHistogram()

  /// The number of texts of problems that are kept.
  private static let problemLimit = 20

  /// Notes the text of a problem.
  mutating func note(_ problem: String, _ number: Int = 1) {
    guard problems[problem] != nil || problems.count < Self.problemLimit else { return }
    problems[problem, default: 0] += number
  }

  mutating func merge(_ other: BenchTally) {
    accepted += other.accepted
    deliveries += other.deliveries
    rejected += other.rejected
    unmade += other.unmade
    disconnected += other.disconnected
    errors += other.errors
    reconnects += other.reconnects
    acceptance.merge(other.acceptance)
    sight.merge(other.sight)
    for (text, number) in other.problems.sorted(by: { $0.key < $1.key }) { note(text, number) }
  }
}

/// The task of a worker process.
struct BenchPlan: Codable, Sendable {
  let options: BenchOptions
  /// The number of the worker, from 1.
  let worker: Int
  /// The name of this run of the bench, eight characters, which is in front of each text: it tells the change sets of
  /// this run from those of others in the same scopes.
  let run: String

  var parts: [BenchOptions.Part] { options.parts(of: worker) }
}

/// A line that a worker process sends.
enum BenchLine: Codable, Hashable, Sendable {
  /// All clients are connected and have their scopes.
  case ready
  /// The tally of a second, numbered from 1.
  case second(Int, BenchTally)
  /// The writers have ended: the tally since the last second, the number of accepted change sets of each scope, and the
  /// number of those that the server has not decided in time.
  case written(BenchTally, accepted: [Int], undecided: Int)
  /// The clients have ended: the tally since the last line and the number of deliveries that have not come in time; nil
  /// if they were not waited for.
  case done(BenchTally, missed: Int?)
  /// The worker cannot go on, for this reason.
  case failed(String)
}

/// A line that a worker process receives.
enum BenchOrder: Codable, Hashable, Sendable {
  /// Begin at a time of ``BenchClock``.
  case begin(at: Int)
  /// Wait until all change sets are seen, of which there are so many in each scope, and end.
  case drain(accepted: [Int])
  /// End at once.
  case stop
}

/// The clock of the bench, which all processes of a machine share.
enum BenchClock {
  static let second = 1_000_000_000

  /// The time in nanoseconds.
  static var now: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int(time.tv_sec) * second + Int(time.tv_nsec)
  }

  /// Returns at a time, or when the task is cancelled.
  static func sleep(until time: Int) async {
    let rest = time - now
    if rest > 0 { try? await Task.sleep(for: .nanoseconds(rest), tolerance: .zero) }
  }
}

/// The lines between the processes of a bench.
enum BenchLines {
  /// Returns a value as one line of JSON, with its end.
  static func data(_ value: some Encodable) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    guard var data = try? encoder.encode(value) else {
      preconditionFailure("The lines of a bench can be written as JSON.")
    }
    data.append(UInt8(ascii: "\n"))
    return data
  }

  /// Returns the value of a line; nil if it has none of this type.
  static func value<Value: Decodable>(_ type: Value.Type, of line: String) -> Value? {
    try? JSONDecoder().decode(type, from: Data(line.utf8))
  }
}
