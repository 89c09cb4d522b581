import Foundation
import Jetstream

/// The `jetstream bench` command.
enum BenchCommand {
  /// The exit status of the command.
  enum Status: Int32 {
    case success = 0
    case failed = 1
    case usage = 2
    /// Interrupted by SIGINT or SIGTERM.
    case interrupted = 130
  }

  static let usage = """
    usage: jetstream bench [options] URL

    Loads a server at a ws:// or wss:// address with clients in processes of their own, and prints throughput and
    latencies. The server must open scopes with the names bench/1, bench/2 and so on, of any schema, as jetstream serve
    does.

      --processes N     so many processes run the clients (default 2)
      --clients N       so many clients in all, spread over the scopes (default 10, or one more than the writers in
                        each scope if that is more, up to 100000)
      --scopes N        so many scopes (default 1)
      --writers N       so many writers in each scope (default 1); all other clients of the scope watch
      --in-flight N     each writer has so many change sets that are not accepted yet, as many as it can (default 1)
      --rate N          instead, each writer makes so many change sets a second, whether they are accepted or not
      --seconds N       writers write for so long (default 10)
      --patience N      clients may take so many seconds to get their scopes (default 10, and more for many clients)
      --size BYTES      each change set writes a text of so many bytes, at least \(BenchOptions.leastSize) (default 64)
      --json            prints one JSON object instead of tables; latencies are in milliseconds

    A delivery is a change set that another client than its writer has seen. Latencies begin with the edit or, with
    --rate, at the time at which it was due. A line about each second goes to standard error. Interrupted, the command
    prints what was measured until then.

    exit status: 0 all was measured, 1 the server cannot be used, a process has failed, or not all was measured: then the
    report is printed all the same, and change sets are undecided or not made, deliveries missed, or clients not connected
    at the end; 2 wrong usage, 130 interrupted
    """

  static func run(_ arguments: [String]) async -> Status {
    let options: BenchOptions
    do {
      options = try BenchOptions(arguments)
    } catch {
      Console.error("jetstream bench: \(error.text)\n\n\(usage)")
      return .usage
    }
    if options.isHelp {
      Console.line(usage)
      return .success
    }
    do {
      // A server that cannot be reached is reported here, once and at once: clients would keep trying.
      let connection = try await WebSocketTransport(url: options.url).open(headers: [])
      connection.close(code: 1000, reason: "")
    } catch {
      return failed("\(options.url) cannot be used: \(error)")
    }
    return await measure(options)
  }

  private static func failed(_ reason: String) -> Status {
    Console.error("jetstream bench: \(reason)")
    return .failed
  }

  private static func measure(_ options: BenchOptions) async -> Status {
    let (events, continuation) = AsyncStream.makeStream(of: BenchConductor.Event.self)
    // An order to a worker that has just ended must not end this process. The end of the worker is an event.
    signal(SIGPIPE, SIG_IGN)
    let signals = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { continuation.yield(.interrupted) }
      source.resume()
      return source
    }
    let clock = Task {
      while !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(200))
        continuation.yield(.tick)
      }
    }
    defer {
      clock.cancel()
      for source in signals { source.cancel() }
    }
    var conductor = BenchConductor(options, now: BenchClock.now)
    let run = String(UInt32.random(in: 0x1000_0000...UInt32.max), radix: 16)
    var workers: [BenchProcess] = []
    do {
      for number in 1...options.processes {
        let plan = BenchPlan(options: options, worker: number, run: run)
        try workers.append(BenchProcess(plan) { continuation.yield($0) })
      }
    } catch {
      for worker in workers { worker.finish(atOnce: true) }
      return failed("no process can be started: \(error.localizedDescription)")
    }
    for await event in events {
      for step in conductor.take(event, now: BenchClock.now) {
        switch step {
        case .order(let order): for worker in workers { worker.send(order) }
        case .progress(let line): Console.error(line)
        case .finish(let outcome):
          let hasFailed = if case .failed = outcome { true } else { false }
          for worker in workers { worker.closeInput() }
          for worker in workers { worker.finish(atOnce: hasFailed) }
          return end(outcome, conductor.report)
        }
      }
    }
    return .failed
  }

  private static func end(_ outcome: BenchConductor.Outcome, _ report: BenchReport) -> Status {
    if case .failed(let reason) = outcome { return failed(reason) }
    signal(SIGPIPE, SIG_DFL)
    Console.line(report.options.isJSON ? report.json.text : report.text)
    if outcome == .interrupted { return .interrupted }
    return report.gap.map(failed) ?? .success
  }
}
