extension Simulation {
  /// The events that are derived from the seed, ``SimulationConfiguration/steps`` of them.
  public var schedule: [SimulationEvent] {
    var random = SimulationRandom(seed: seed, branch: 1)
    return (0..<configuration.steps).map { _ in event(&random) }
  }

  private func event(_ random: inout SimulationRandom) -> SimulationEvent {
    let faults = configuration.faults
    let client = random.number(in: 0...max(configuration.clients - 1, 0))
    let seed = random.next() >> 32
    var rest = random.unit()
    func happens(_ rate: Double) -> Bool {
      defer { rest -= rate }
      return rest >= 0 && rest < rate
    }
    let toServer = seed.isMultiple(of: 2)
    let pick = Int(seed % 97)
    if happens(faults.cut) { return .cut(client: client) }
    if happens(faults.partition) {
      return .partition(client: client, milliseconds: random.number(in: 50...Times.outage))
    }
    if happens(faults.expiry) {
      return .partition(client: client, milliseconds: Times.expiry + Int(seed % 1_000) + 200)
    }
    if happens(faults.loss) { return .lose(client: client, toServer: toServer, pick: pick) }
    if happens(faults.duplication) {
      return .duplicate(client: client, toServer: toServer, pick: pick)
    }
    if happens(faults.reordering) {
      return .reorder(client: client, toServer: toServer, pick: pick)
    }
    if happens(faults.clientCrash) { return .crashClient(client) }
    if happens(faults.serverCrash) { return .crashServer }
    if happens(faults.historyLoss) { return .loseHistory(pick: pick) }
    if happens(configuration.closings) { return .closeScope }
    if happens(configuration.rests) { return .rest }
    if happens(configuration.browserEdits) {
      return pick % 20 == 0 ? .reload(browser: client) : .browserEdit(browser: client, seed: seed)
    }
    if happens(configuration.serverEdits) { return .serverEdit(seed: seed) }
    if happens(configuration.scripts), let name = random.pick(from: world.scriptNames) {
      return .script(client: client, name: name, seed: seed)
    }
    if happens(configuration.modes) {
      let mode = SimulatedMode.allCases[Int(seed % UInt64(SimulatedMode.allCases.count))]
      return .mode(client: client, mode)
    }
    if happens(configuration.syncs) { return .sync(client: client) }
    if happens(configuration.permissions) {
      return .permission(client: client, isGranted: seed.isMultiple(of: 2))
    }
    if happens(configuration.edits) { return .edit(client: client, seed: seed) }
    if happens(faults.disk) { return .failDisk(client: pick % 4 == 0 ? nil : client, pick: pick) }
    if happens(configuration.conflicts) { return .conflict(client: client, pick: pick) }
    if happens(configuration.incomingPauses) {
      return .pauseIncoming(client: client, isPaused: seed.isMultiple(of: 2))
    }
    if happens(configuration.revocations) {
      let access = SimulatedAccess.allCases[Int(seed % UInt64(SimulatedAccess.allCases.count))]
      return .access(client: client, access)
    }
    if happens(configuration.calls) { return .call(client: client, seed: seed) }
    if seed % 8 == 0 { return .flush(client: client) }
    return .pass(milliseconds: random.number(in: configuration.pause))
  }

  /// The times of the engines, in milliseconds. They are short, so that little time has to pass.
  enum Times {
    static let ping = 500
    /// The ping interval of old browser clients that acknowledge late.
    static let slowPing = 5_000
    /// The time after which a server assumes that a script has read what its WebSocket has
    /// received.
    static let reading = 1_000
    static let silence = 1_600
    static let expiry = 3_000
    /// The time that a procedure may take.
    static let procedure = 1_500
    /// The polling interval, so long that the connection is left in between.
    static let poll = 700
    /// The longest time for which a client is unreachable without losing its session.
    static let outage = 2_200
  }
}
