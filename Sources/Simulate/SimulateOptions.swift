import Foundation
import JetstreamSimulation

/// The options of the `simulate` command.
struct SimulateOptions: Sendable {
  /// A mistake in the command line, described in words.
  struct Problem: Error {
    let text: String
  }

  static let usage = """
    usage: simulate [options]

    Runs clients and a server that edit at random, in one process, with faults that follow from seeds.

      --seeds COUNT    how many seeds to run; 1000 unless given
      --first SEED     the first of them; 1 unless given
      --seed SEED      this seed alone
      --jobs COUNT     how many seeds run at a time; as many as there are processors unless given
      --faults PRESET  calm, rough, everything, old (peers of version 1 among the others), or drawn: all of
                       it follows from the seed; rough unless given
      --world NAME     workshop, garden or hall; workshop, or what follows from the seed, unless given
      --steps COUNT    how many events a run has; 200 unless given, or drawn
      --clients COUNT  how many clients; 3 unless given, or drawn
      --rate NAME=SHARE  how often a fault happens, in a share of all steps; once for each of cut,
                       partition, expiry, loss, duplication, reordering, clientCrash, serverCrash,
                       historyLoss and disk. Or, in a share of all edits, how often the garden uses
                       \(SimulationConfiguration.Features.names.joined(separator: ", ")).
                       Or calls, closings, conflicts and revocations, in a share of all steps; or guarding, in a
                       share of all runs
      --promise NAME   what has to hold besides that all end equal; once for each of counters, once,
                       collections, durable (the server) and outbox (the clients), or all
      --trace          print what happens, with --seed
      --stop           end at the first failure
      --as-found       print failures as they are found, without looking for shorter ones
      --help           print this

    Failures are printed with their seed and a shorter list of events that fails as well. The exit code
    is 1 if there was one, 2 if the command line makes no sense.
    """

  var seeds = 1_000
  var first: UInt64 = 1
  /// The number of seeds that run at the same time.
  var jobs = ProcessInfo.processInfo.activeProcessorCount
  var isTraced = false
  var stops = false
  var shrinks = true
  var isHelp = false
  /// The world that was asked for; nil if none was.
  var world: SimulationWorld?
  /// The preset with the options applied. If it is drawn, it lacks what is derived from the seed.
  var configuration = SimulationConfiguration.rough
  /// Applies the options to a configuration.
  private(set) var adjust: @Sendable (inout SimulationConfiguration) -> Void = { _ in }

  init(_ arguments: [String]) throws(Problem) {
    var steps: Int?
    var clients: Int?
    var isOne = false
    var rates: [(name: String, share: Double)] = []
    var promises: SimulationConfiguration.Promises = []
    var rest = arguments[...]
    while let option = rest.popFirst() {
      switch option {
      case "--help", "-h":
        isHelp = true
        return
      case "--trace": isTraced = true
      case "--stop": stops = true
      case "--as-found": shrinks = false
      case "--rate": rates.append(try Self.rate(rest.popFirst()))
      case "--promise":
        guard let promise = rest.popFirst().flatMap({ SimulationConfiguration.Promises.named[$0] })
        else {
          throw Problem(
            text: "--promise needs one of "
              + SimulationConfiguration.Promises.named.keys.sorted().joined(separator: ", ") + ".")
        }
        promises.insert(promise)
      case "--seeds": seeds = try Self.number(option, rest.popFirst(), least: 1)
      case "--jobs": jobs = try Self.number(option, rest.popFirst(), least: 1)
      case "--first": first = try Self.number(option, rest.popFirst(), least: 0)
      case "--seed":
        first = try Self.number(option, rest.popFirst(), least: 0)
        isOne = true
      case "--steps": steps = try Self.number(option, rest.popFirst(), least: 0)
      case "--clients": clients = try Self.number(option, rest.popFirst(), least: 1)
      case "--world":
        let name = rest.popFirst()
        guard let found = SimulationWorld.all.first(where: { $0.name.lowercased() == name }) else {
          throw Problem(
            text: "--world needs one of "
              + SimulationWorld.all.map { $0.name.lowercased() }.joined(separator: ", ") + ".")
        }
        world = found
      case "--faults":
        let name = rest.popFirst()
        let presets =
          SimulationConfiguration.presets
          + [SimulationConfiguration(name: SimulationConfiguration.drawnName)]
        guard let preset = presets.first(where: { $0.name == name }) else {
          throw Problem(
            text: "--faults needs one of " + presets.map(\.name).joined(separator: ", ") + ".")
        }
        configuration = preset
      default:
        let what = option.hasPrefix("-") ? "option" : "argument"
        throw Problem(text: "there is no \(what) \(option).")
      }
    }
    adjust = { [promises, rates, steps, clients] configuration in
      configuration.promises.formUnion(promises)
      for (name, share) in rates {
        configuration.faults[name] = share
        configuration.features[name] = share
        configuration[share: name] = share
      }
      if let steps { configuration.steps = steps }
      if let clients { configuration.clients = clients }
    }
    adjust(&configuration)
    if isTraced, !isOne { throw Problem(text: "--trace needs --seed.") }
    if isOne { seeds = 1 }
    guard first <= UInt64.max - UInt64(seeds) else {
      throw Problem(text: "--first leaves no room for \(seeds) seeds.")
    }
  }

  /// Returns the simulation of a seed.
  func simulation(seed: UInt64) -> Simulation {
    guard configuration.name == SimulationConfiguration.drawnName else {
      return Simulation(seed: seed, world: world ?? .workshop, configuration: configuration)
    }
    let drawn = Simulation.drawn(seed: seed, world: world)
    var configuration = drawn.configuration
    adjust(&configuration)
    return Simulation(seed: seed, world: drawn.world, configuration: configuration)
  }

  private static func rate(_ text: String?) throws(Problem) -> (name: String, share: Double) {
    let parts = (text ?? "").split(separator: "=", omittingEmptySubsequences: false)
    let names =
      SimulationConfiguration.Faults.names + SimulationConfiguration.Features.names
      + SimulationConfiguration.shareNames
    guard parts.count == 2, names.contains(String(parts[0])), let share = Double(parts[1]),
      (0...1).contains(share)
    else {
      throw Problem(
        text:
          "--rate needs a fault or a feature and a share from 0 to 1, such as cut=0.05; there are "
          + names.joined(separator: ", ") + ".")
    }
    return (String(parts[0]), share)
  }

  private static func number<Number: FixedWidthInteger>(
    _ option: String, _ text: String?, least: Number
  ) throws(Problem) -> Number {
    guard let number = text.flatMap({ Number($0) }), number >= least else {
      throw Problem(text: "\(option) needs a number of at least \(least).")
    }
    return number
  }
}
