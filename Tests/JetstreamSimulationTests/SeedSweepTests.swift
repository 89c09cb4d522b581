import JetstreamSimulation
import Testing

@testable import Simulate

@Suite("Seeds in a row", .paced)
struct SeedSweepTests {
  /// Longer and shorter ones by turns, so that they end in another order than they begin.
  private func sweep(jobs: Int) -> SeedSweep {
    SeedSweep(first: 40, count: 8, jobs: jobs) { seed in
      var configuration = SimulationConfiguration.rough
      configuration.steps = seed.isMultiple(of: 2) ? 40 : 2
      return Simulation(seed: seed, configuration: configuration)
    }
  }

  @Test(
    "What comes of each is told in their order, however many run at a time", arguments: [1, 3, 20])
  func order(jobs: Int) async {
    var told: [UInt64] = []
    var digests: [UInt64] = []
    await sweep(jobs: jobs).run(traced: true) { seed, outcome in
      told.append(seed)
      digests.append(outcome.digest)
      return true
    }
    #expect(told == Array(40..<48))
    let alone = told.map { sweep(jobs: 1).simulation($0).run(traced: true).digest }
    #expect(digests == alone)
    #expect(Set(digests).count == 8)
  }

  @Test("Behind the one that ends it, no other is told")
  func end() async {
    var told: [UInt64] = []
    await sweep(jobs: 3).run { seed, _ in
      told.append(seed)
      return seed < 42
    }
    #expect(told == [40, 41, 42])
  }
}
