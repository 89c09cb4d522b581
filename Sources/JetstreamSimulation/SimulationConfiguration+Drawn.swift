extension SimulationConfiguration {
  /// The name of the configurations that ``drawn(seed:)`` returns.
  public static let drawnName = "drawn"

  /// Returns a configuration that is derived from the seed: the number of clients, the rates of
  /// faults and edits, the speed of disks and of the network, and limits that are often reached. It
  /// makes all promises that hold under such limits; in some configurations, clients have no disk.
  public static func drawn(seed: UInt64) -> SimulationConfiguration {
    var random = SimulationRandom(seed: seed, branch: 12)
    var configuration = SimulationConfiguration(name: drawnName)
    configuration.clients = random.number(in: 1...6)
    configuration.steps = random.pick(from: [60, 120, 200])!
    configuration.delay = random.pick(from: [0...5, 1...40, 1...120, 50...350])!
    configuration.diskDelay = random.pick(from: [0...0, 0...40, 0...400, 100...2_500])!
    configuration.pause = random.pick(from: [1...20, 1...300, 50...1_500])!
    configuration.edits = random.pick(from: [0.3, 0.45, 0.7])!
    configuration.serverEdits = random.pick(from: [0, 0.04, 0.15])!
    configuration.rests = random.pick(from: [0.005, 0.01, 0.04])!
    configuration.modes = random.pick(from: [0, 0.02, 0.06])!
    configuration.syncs = configuration.modes
    configuration.permissions = random.pick(from: [0, 0.006])!
    configuration.conflicts = random.pick(from: [0, 0.01, 0.05])!
    configuration.discarding = random.pick(from: [0, 0.3, 1])!
    configuration.watched = random.pick(from: [0, 0.3, 1])!
    configuration.checksTables = true
    configuration.promises = .all
    if random.chance(0.15) { configuration.promises.remove(.clientsAreDurable) }
    configuration.handshakeTimeout =
      random.chance(0.5) || !configuration.promises.contains(.clientsAreDurable) ? 12_000 : 2_000
    configuration.faults = Faults.drawn(&random)
    configuration.features = Features.drawn(&random)
    configuration.limits = Limits.drawn(&random)
    var forgetting = SimulationRandom(seed: seed, branch: 30)
    if forgetting.chance(0.2) {
      configuration.limits.absentDecisionBytes = forgetting.number(in: 0...2_000)
    }
    configuration.incomingPauses = random.pick(from: [0, 0.02, 0.08])!
    if configuration.limits.mayForget {
      // A client that is forgotten sends change sets again that may be decided already.
      configuration.promises.subtract([.countersAddUp, .exactlyOnce, .collectionsKeepIntents])
    }
    configuration.lateOpenings = random.pick(from: [0, 0.3, 0.8])!
    configuration.spread = 0.3
    configuration.sharing = 0.3
    configuration.guarding = 0.4
    configuration.revocations = random.pick(from: [0, 0.01, 0.04])!
    var calling = SimulationRandom(seed: seed, branch: 26)
    configuration.calls = calling.pick(from: [0, 0.02, 0.08])!
    var slicing = SimulationRandom(seed: seed, branch: 27)
    if slicing.chance(0.5) { configuration.limits.sliceSize = slicing.number(in: 1...6) }
    var leaving = SimulationRandom(seed: seed, branch: 28)
    if leaving.chance(0.5) { configuration.limits.departedModels = leaving.number(in: 0...8) }
    var deciding = SimulationRandom(seed: seed, branch: 29)
    configuration.limits.drawDecisions(&deciding)
    configuration.opening = 0.4
    configuration.closings = random.pick(from: [0, 0.01, 0.05])!
    if random.chance(0.4) {
      // From a full state for each client that has missed something, to the rare one.
      configuration.limits.streamBytes = random.number(in: 1...4_000)
      configuration.limits.streamStates = random.number(in: 0...3)
    }
    return configuration
  }
}

extension SimulationConfiguration.Faults {
  /// Draws the rate of each fault: zero, or up to five times its rate in
  /// ``SimulationConfiguration/everything``.
  fileprivate static func drawn(_ random: inout SimulationRandom) -> Self {
    var faults = Self()
    let usual = SimulationConfiguration.everything.faults
    for name in names {
      let share = random.unit()
      let factor = random.chance(0.4) ? 0 : random.chance(0.7) ? 2 * share : 5 * share
      faults[name] = (usual[name] ?? 0) * factor
    }
    return faults
  }
}

extension SimulationConfiguration.Features {
  /// Draws the rate of each feature: zero, its default, or twice that.
  fileprivate static func drawn(_ random: inout SimulationRandom) -> Self {
    var features = Self()
    let usual = Self()
    for name in names where !undrawn.contains(name) {
      features[name] = (usual[name] ?? 0) * random.pick(from: [0, 1, 1, 2])!
    }
    return features
  }
}

extension SimulationConfiguration.Limits {
  /// Draws each limit: the one of the other presets, or one so small that a run reaches it all the
  /// time.
  fileprivate static func drawn(_ random: inout SimulationRandom) -> Self {
    var limits = Self()
    if random.chance(0.5) { limits.sendWindow = random.number(in: 1...8) }
    if random.chance(0.5) { limits.acknowledgeAfter = random.number(in: 1...8) }
    if random.chance(0.5) { limits.stateBytes = random.number(in: 1...600) }
    if random.chance(0.5) { limits.frameBytes = random.number(in: 1...600) }
    if random.chance(0.4) { limits.streamLength = random.number(in: 1...8) }
    if random.chance(0.4) { limits.rememberedClients = random.number(in: 1...8) }
    if random.chance(0.4) { limits.ownWrites = random.number(in: 1...8) }
    if random.chance(0.4) { limits.pausedMessages = random.number(in: 1...8) }
    if random.chance(0.4) {
      limits.streamWindow = limits.acknowledgeAfter + random.number(in: 0...8)
    }
    return limits
  }

  /// Draws the limits on the decisions that a client does not say it knows.
  fileprivate mutating func drawDecisions(_ random: inout SimulationRandom) {
    if random.chance(0.4) { decisionsPerRecord = random.number(in: 1...8) }
    if random.chance(0.4) { unknownDecisions = decisionsPerRecord + random.number(in: 0...8) }
    if random.chance(0.3) {
      let bytes = random.number(in: 200...4_000)
      // A server that lets a client go because of its decisions, and then forgets them, decides the same ones again for ever.
      // It keeps several times as many for those that are away.
      if !mayForget { unknownDecisionBytes = bytes }
    }
  }
}

extension Simulation {
  /// Returns a simulation whose configuration is derived from the seed. So is its world, unless one
  /// is given.
  public static func drawn(seed: UInt64, world: SimulationWorld? = nil) -> Simulation {
    var random = SimulationRandom(seed: seed, branch: 13)
    let usual = random.pick(from: [SimulationWorld.workshop, .garden])!
    let drawn = random.chance(0.25) ? .hall : usual
    return Simulation(seed: seed, world: world ?? drawn, configuration: .drawn(seed: seed))
  }
}
