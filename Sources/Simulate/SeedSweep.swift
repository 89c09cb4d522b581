import JetstreamSimulation

/// Simulations of seeds in a row, several at a time.
struct SeedSweep: Sendable {
  let first: UInt64
  let count: Int
  /// How many run at a time.
  let jobs: Int
  /// Makes what is run of a seed.
  let simulation: @Sendable (UInt64) -> Simulation

  /// Runs the seeds, and hands over what came of each in their order, so that it does not depend on how many run at
  /// a time.
  ///
  /// - Parameter each: takes the outcome of a seed, and says whether to go on.
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
      // What has ended before a seed in front of it.
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
