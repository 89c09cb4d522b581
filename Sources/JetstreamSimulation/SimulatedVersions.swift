/// The versions of the protocol that the peers of a run speak, derived from the seed.
struct SimulatedVersions {
  /// The highest version that the server speaks.
  let server: Int
  private let clients: [Int]
  /// The number of old browser clients.
  let browsers: Int

  /// True if the server has the scope in another channel than its sessions, which peers of version 1 do not know.
  let areSpread: Bool
  /// True if the server opens the scope when it is fetched.
  let opensScope: Bool
  /// True if the server asks its app for the rights of clients, and has rules if the world has some.
  let areGuarded: Bool

  init(seed: UInt64, _ configuration: SimulationConfiguration) {
    var random = SimulationRandom(seed: seed, branch: 10)
    let server = random.chance(configuration.oldServers) ? 1 : 2
    self.server = server
    clients = (0..<max(0, configuration.clients)).map { _ in
      random.chance(configuration.oldClients) ? 1 : server
    }
    browsers = random.number(in: 0...max(0, configuration.browsers))
    let areNew = server == 2 && browsers == 0 && !clients.contains(1)
    areSpread = areNew && random.chance(configuration.spread)
    opensScope =
      areNew && !areSpread && configuration.promises.contains(.serverIsDurable)
      && random.chance(configuration.opening)
    var guarding = SimulationRandom(seed: seed, branch: 24)
    areGuarded = guarding.chance(configuration.guarding)
  }

  /// Returns the version that the sessions of a client speak.
  func client(_ number: Int) -> Int { clients[number] }

  /// True if a session of version 1 takes part.
  var areMixed: Bool { browsers > 0 || clients.contains(1) }
}

extension SimulationConfiguration {
  /// Returns the configuration without the promises that these versions cannot keep.
  func keeping(_ versions: SimulatedVersions) -> SimulationConfiguration {
    guard versions.areMixed else { return self }
    var result = self
    // The journal tells what was accepted of a change set that a client has submitted without a number.
    result.promises.insert(.serverIsDurable)
    result.promises.subtract([.countersAddUp, .exactlyOnce, .collectionsKeepIntents])
    return result
  }
}
