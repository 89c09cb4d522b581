import Foundation
import JetstreamSimulation

/// The `simulate` command.
@main
struct Simulate {
  static func main() async {
    let options: SimulateOptions
    do throws(SimulateOptions.Problem) {
      options = try SimulateOptions(Array(CommandLine.arguments.dropFirst()))
    } catch {
      complain("\(error.text)\n\n\(SimulateOptions.usage)")
      exit(2)
    }
    if options.isHelp {
      say(SimulateOptions.usage)
      return
    }
    exit(await run(options) ? 0 : 1)
  }

  private static func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("simulate: \(text)\n".utf8))
  }

  /// Prints a line at once, even into a pipe. Exits if the output cannot be written.
  private static func say(_ text: String) {
    do {
      try FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    } catch {
      complain("the output cannot be written: \(error.localizedDescription)")
      exit(2)
    }
  }

  /// Runs the seeds, and returns true if none has failed.
  private static func run(_ options: SimulateOptions) async -> Bool {
    let clock = ContinuousClock()
    let start = clock.now
    var failed: [UInt64] = []
    var count = 0
    var events = 0
    var virtual: Duration = .zero
    let sweep = SeedSweep(
      first: options.first, count: options.seeds, jobs: options.jobs,
      simulation: { options.simulation(seed: $0) })
    await sweep.run(traced: options.isTraced) { seed, outcome in
      count += 1
      events += outcome.events
      virtual += outcome.virtualTime
      if options.isTraced {
        for line in outcome.trace { say(line) }
        say("digest \(String(outcome.digest, radix: 16))")
      }
      if let failure = outcome.failure {
        failed.append(seed)
        say("seed \(seed) fails (\(failure.kind)): \(failure.problems[0])")
        if options.shrinks {
          say(
            "\nthe shortest that fails:\n\(options.simulation(seed: seed).shrink(failure))\n")
        }
        if options.stops { return false }
      }
      if count.isMultiple(of: 1_000), count < options.seeds {
        say("\(count) seeds, \(failed.count) failures")
      }
      return true
    }
    let seconds = (clock.now - start) / .seconds(1)
    say(
      "\(options.configuration.name): \(count) seeds from \(options.first), "
        + "\(events) events, "
        + "\(Int(virtual / .seconds(1))) s of virtual time; \(failed.count) failures")
    if !failed.isEmpty {
      say("failing seeds: " + failed.map(String.init).joined(separator: " "))
    }
    let perSecond = 1 / max(seconds, 0.001)
    say(
      String(
        format: "%.1f s, %.1f seeds and %.0f events per second", seconds,
        Double(count) * perSecond, Double(events) * perSecond))
    return failed.isEmpty
  }
}
