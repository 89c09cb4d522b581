import JetstreamSimulation

/// Simulations of consecutive seeds, several at a time.
struct SeedSweep: Sendable {
  let first: UInt64
  let count: Int
  /// The number of simulations that run at the same time.
  let jobs: Int
  /// Returns the simulation of a seed.
  let simulation: @Sendable (UInt64) -> Simulation

  /// Runs the seeds, and passes the outcomes to `each` in the order of the seeds, whatever the number of jobs.
  ///
  /// - Parameter each: receives the outcome of a seed, and returns whether to go on.
  func run(traced: Bool = false, _ each: (UInt64, SimulationOutcome) -> Bool) async {
    await withTaskGroup(of: (offset: Int, outcome: SimulationOutcome).self) { group in
      var begun = 0
      func begin() {
        guard begun < count else { return }
        let offset = begun
        begun += 1
        group.addTask { (offset, simulation(first + UInt64(offset)).run(traced: traced)) }
      }
      for _ in 0..<jobs { begin() }
      // The outcomes of seeds that have ended before an earlier one.
      var early: [Int: SimulationOutcome] = [:]
      var next = 0
      while let (offset, outcome) = await group.next() {
        early[offset] = outcome
        while let outcome = early.removeValue(forKey: next) {
          guard each(first + UInt64(next), outcome) else { return }
          next += 1
        }
        begin()
      }
    }
  }
}
