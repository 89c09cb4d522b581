/// Which versions of the protocol the peers of a run speak. They follow from the seed.
struct SimulatedVersions {
  /// The highest version that the server speaks.
  let server: Int
  private let clients: [Int]
  /// How many old browser clients there are.
  let browsers: Int

  init(seed: UInt64, _ configuration: SimulationConfiguration) {
    var random = SimulationRandom(seed: seed, branch: 10)
    let server = random.chance(configuration.oldServers) ? 1 : 2
    self.server = server
    clients = (0..<max(0, configuration.clients)).map { _ in
      random.chance(configuration.oldClients) ? 1 : server
    }
    browsers = random.number(in: 0...max(0, configuration.browsers))
  }

  /// The version that the sessions of a client speak.
  func client(_ number: Int) -> Int { clients[number] }

  /// True if a session of version 1 takes part.
  var areMixed: Bool { browsers > 0 || clients.contains(1) }
}

extension SimulationConfiguration {
  /// The configuration without promises that these versions cannot keep.
  func keeping(_ versions: SimulatedVersions) -> SimulationConfiguration {
    guard versions.areMixed else { return self }
    var result = self
    // What such a client has submitted without a number is looked up in the journal.
    result.promises.insert(.serverIsDurable)
    result.promises.subtract([.countersAddUp, .exactlyOnce, .collectionsKeepIntents])
    return result
  }
}
