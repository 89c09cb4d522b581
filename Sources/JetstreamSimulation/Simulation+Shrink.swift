extension Simulation {
  /// Returns a shorter list of events that fails in the same way. Leaves out halves, then smaller
  /// parts, then single events, and clients that are not needed; joins pauses that follow each
  /// other.
  ///
  /// - Parameters:
  ///   - failure: the failure of a run of this simulation.
  ///   - runs: the largest number of runs for the search.
  /// - Returns: the failure of the shortest list that was found, with its trace.
  public func shrink(_ failure: SimulationFailure, runs: Int = 2_000) -> SimulationFailure {
    var budget = runs
    var simulation = self
    // Events after the failure do not matter, unless it was noticed only at the end.
    var best = Array(failure.events.prefix(failure.step + 1))
    if !simulation.fails(best, failure.kind, &budget) { best = failure.events }
    var before = Int.max
    while best.count < before, budget > 0 {
      before = best.count
      best = simulation.withoutParts(best, failure.kind, &budget)
      (simulation, best) = simulation.withoutClients(best, failure.kind, &budget)
    }
    best = simulation.withLongerPauses(best, failure.kind, &budget)
    return simulation.runOnce(best, traced: true).failure ?? failure
  }

  private func fails(
    _ events: [SimulationEvent], _ kind: SimulationFailure.Kind, _ budget: inout Int
  ) -> Bool {
    guard budget > 0 else { return false }
    budget -= 1
    return runOnce(events, traced: false).failure?.kind == kind
  }

  private func withoutParts(
    _ events: [SimulationEvent], _ kind: SimulationFailure.Kind, _ budget: inout Int
  ) -> [SimulationEvent] {
    var best = events
    var size = max(best.count / 2, 1)
    while !best.isEmpty {
      // From the end: later events depend on earlier ones.
      var end = best.count
      while end > 0 {
        let start = max(end - size, 0)
        let shorter = Array(best[..<start] + best[end...])
        if fails(shorter, kind, &budget) { best = shorter }
        end = start
      }
      if size == 1 { break }
      size /= 2
    }
    return best
  }

  /// Joins pauses that follow each other.
  private func withLongerPauses(
    _ events: [SimulationEvent], _ kind: SimulationFailure.Kind, _ budget: inout Int
  ) -> [SimulationEvent] {
    var best = events
    var at = best.count - 1
    while at > 0 {
      if case .pass(let first) = best[at - 1], case .pass(let second) = best[at] {
        var shorter = best
        shorter.replaceSubrange(at - 1...at, with: [.pass(milliseconds: first + second)])
        if fails(shorter, kind, &budget) { best = shorter }
      }
      at -= 1
    }
    return best
  }

  private func withoutClients(
    _ events: [SimulationEvent], _ kind: SimulationFailure.Kind, _ budget: inout Int
  ) -> (Simulation, [SimulationEvent]) {
    var (simulation, best) = (self, events)
    for client in 0..<configuration.clients {
      var fewer = simulation.configuration
      fewer.absent.insert(client)
      if fewer.absent.count == fewer.clients { continue }
      let others = best.filter { $0.client != client }
      var smaller = Simulation(seed: seed, world: world, configuration: fewer)
      smaller.sabotage = sabotage
      if smaller.fails(others, kind, &budget) { (simulation, best) = (smaller, others) }
    }
    return (simulation, best)
  }
}
