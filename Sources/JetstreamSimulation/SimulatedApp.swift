import Jetstream

/// The process in which an app of a ``SimulationWorld`` runs, as far as the app has to know.
public struct SimulationProcess: Sendable {
  /// The number of the client; nil for the server.
  public let client: Int?
  /// How often edits use what not every app uses.
  public let features: SimulationConfiguration.Features
  /// True if the observers of this process write.
  public let hasRules: Bool

  /// A Boolean value that indicates whether this is the server's process.
  public var isServer: Bool { client == nil }

  init(client: Int?, _ configuration: SimulationConfiguration, seed: UInt64) {
    self.client = client
    features = configuration.features
    var random = SimulationRandom(seed: seed, branch: 10, client ?? -1)
    hasRules = client != nil && random.chance(configuration.features.rules)
  }
}

/// The app of one process: a scope, and what the world keeps in memory beside it. Gone with the process.
final class SimulatedApp {
  let scope: Scope
  private let world: SimulationWorld
  private let memory: Any

  init(_ world: SimulationWorld, _ scope: Scope, _ process: SimulationProcess) {
    self.world = world
    self.scope = scope
    memory = world.makeMemory(scope, process)
  }

  /// Makes a random edit; tells in words what it did.
  func edit(_ random: inout SimulationRandom) -> String { world.edit(scope, memory, &random) }

  /// Makes a scripted edit; tells in words what it did.
  func run(_ name: String, _ random: inout SimulationRandom) -> String {
    guard let script = world.scripts[name] else {
      preconditionFailure("The world \(world.name) has no script \(name).")
    }
    return script(scope, memory, &random)
  }

  /// Where what the app shows is not what is in its scope, at rest.
  func problems() -> [String] { world.problems(memory) }
}
