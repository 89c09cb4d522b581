import Foundation
import JetstreamSimulation
import Testing

@Suite("Simulated replicas agree", .serialized, .paced)
struct SimulationTests {
  private func run(_ seed: UInt64, _ preset: SimulationConfiguration) -> SimulationFailure? {
    var configuration = preset
    configuration.steps = 80
    let simulation = Simulation(seed: seed, configuration: configuration)
    return simulation.run().failure.map { simulation.shrink($0, runs: 200) }
  }

  @Test("With nothing but delays", arguments: 1...3 as ClosedRange<UInt64>)
  func calm(seed: UInt64) async {
    await Task.yield()
    if let failure = run(seed, .calm) { Issue.record("\(failure)") }
  }

  @Test("Beside rules, without a history on disk", arguments: 1...3 as ClosedRange<UInt64>)
  func guarded(seed: UInt64) async {
    await Task.yield()
    var configuration = SimulationConfiguration.calm
    configuration.guarding = 1
    if let failure = run(seed, configuration) { Issue.record("\(failure)") }
  }

  @Test("Through cuts, partitions and lost sessions", arguments: 1...3 as ClosedRange<UInt64>)
  func rough(seed: UInt64) async {
    await Task.yield()
    if let failure = run(seed, .rough) { Issue.record("\(failure)") }
  }

  @Test("Whatever goes wrong", arguments: 1...3 as ClosedRange<UInt64>)
  func everything(seed: UInt64) async {
    await Task.yield()
    if let failure = run(seed, .everything) { Issue.record("\(failure)") }
  }

  @Test("A client that sends one change set at a time, to a server with a slow disk")
  func slow() {
    var configuration = SimulationConfiguration.calm
    (configuration.clients, configuration.steps, configuration.edits) = (1, 400, 1)
    (configuration.rests, configuration.pause) = (0, 20...20)
    (configuration.diskDelay, configuration.limits.sendWindow) = (2_400...2_400, 1)
    configuration.promises = [.serverIsDurable, .clientsAreDurable]
    let outcome = Simulation(seed: 1, configuration: configuration).run()
    #expect(outcome.failure == nil)
    #expect(outcome.virtualTime > .seconds(130), "\(outcome.virtualTime)")
  }

  @Test("With seeds that nobody has tried", arguments: 0..<3)
  func fresh(_: Int) {
    let seed = UInt64.random(in: 1_000_000...UInt64(UInt32.max))
    print("a fresh seed for the simulation: \(seed)")
    if let failure = run(seed, .rough) { Issue.record("\(failure)") }
  }
}

@Suite("A seed replays exactly", .serialized, .paced)
struct ReplayTests {
  @Test("The same seed gives the same trace", arguments: SimulationConfiguration.presets)
  func sameTrace(configuration: SimulationConfiguration) {
    for seed in 1...1 as ClosedRange<UInt64> {
      let simulation = Simulation(seed: seed, configuration: configuration)
      let (first, second) = (simulation.run(traced: true), simulation.run(traced: true))
      #expect(first.trace == second.trace, "seed \(seed)")
      #expect(first.digest == second.digest, "seed \(seed)")
      #expect(first.trace.count > configuration.steps / 2, "seed \(seed)")
    }
  }

  @Test("Another seed gives another one")
  func otherTrace() {
    let outcomes = (1...4 as ClosedRange<UInt64>).map {
      Simulation(seed: $0, configuration: .calm).run(traced: true).digest
    }
    #expect(Set(outcomes).count == 4)
  }

  @Test("A schedule can be kept as JSON and run again")
  func schedulesAreCodable() throws {
    var configuration = SimulationConfiguration.everything
    configuration.steps = 400
    let simulation = Simulation(seed: 5, configuration: configuration)
    let data = try JSONEncoder().encode(simulation.schedule)
    #expect(try JSONDecoder().decode([SimulationEvent].self, from: data) == simulation.schedule)
  }
}
