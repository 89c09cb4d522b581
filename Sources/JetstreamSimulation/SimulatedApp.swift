import Jetstream

/// The process that an app of a ``SimulationWorld`` runs in.
public struct SimulationProcess: Sendable {
  /// The number of the client; nil for the server.
  public let client: Int?
  /// The rates at which edits use features that not every app uses.
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

/// The app of one process: a scope, and the memory that the world keeps beside it. A crash discards
/// both.
final class SimulatedApp {
  let scope: Scope
  private let world: SimulationWorld
  private let memory: Any

  init(_ world: SimulationWorld, _ scope: Scope, _ process: SimulationProcess) {
    self.world = world
    self.scope = scope
    memory = world.makeMemory(scope, process)
  }

  /// Makes a random edit, and returns a description of it.
  func edit(_ random: inout SimulationRandom) -> String { world.edit(scope, memory, &random) }

  /// Makes a scripted edit, and returns a description of it.
  func run(_ name: String, _ random: inout SimulationRandom) -> String {
    guard let script = world.scripts[name] else {
      preconditionFailure("The world \(world.name) has no script \(name).")
    }
    return script(scope, memory, &random)
  }

  /// Returns what is wrong in the app's memory when everything is at rest.
  func problems() -> [String] { world.problems(memory) }
}
