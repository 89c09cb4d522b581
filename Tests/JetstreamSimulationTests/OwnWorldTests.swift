import Foundation
import Jetstream
import JetstreamSimulation
import Testing

final class Sketch: ModelObject {
  @Property var name = ""
  @Property var strokes: ModelArray<Stroke> = []
}

final class Stroke: ModelObject {
  @Property var width = 1.0
  @Property(.local) var isHovered = false
}

extension SimulationWorld {
  /// As an app would describe its models.
  static func sketch(
    storage: @escaping @Sendable () -> any SimulationStorage = { ForgetfulStorage() }
  ) -> SimulationWorld {
    SimulationWorld(
      "Sketch", root: Sketch.init(uuid:),
      fill: { sketch, random in
        sketch.name = "empty"
        sketch.strokes.append(random.make(Stroke.init(uuid:)))
      },
      edit: { sketch, _, random in
        if sketch.strokes.isEmpty || random.chance(0.3) {
          sketch.strokes.append(random.make(Stroke.init(uuid:)))
          return "draws"
        }
        random.pick(from: sketch.strokes)!.width = Double(random.number(in: 1...9))
        return "changes a stroke"
      },
      scripts: [
        "clear": { sketch, scope, _ in
          scope.modifyAtomically("clear") {
            sketch.strokes.removeAll()
            sketch.name = "cleared"
          }
          return "clears everything"
        }
      ], storage: storage)
  }
}

/// What a perfect disk would keep of the server.
final class KeepingStorage: SimulationStorage {
  private weak var scope: Scope?
  private var kept: (root: UUID, fragments: [SyncFragment])?

  func serverStarts(_ scope: Scope) -> Bool {
    self.scope = scope
    guard let kept else { return false }
    do {
      try scope.applyFullState(kept.fragments, rootUUID: kept.root)
      return true
    } catch {
      return false
    }
  }

  func serverCrashed() {
    guard let scope, let root = scope.root else { return }
    kept = (root.uuid, scope.fullState())
  }

  func clientStarts(_ number: Int, _ scope: Scope) {}
  func clientCrashed(_ number: Int) {}
}

@Suite("Worlds and storages of an app's own", .serialized, .paced)
struct OwnWorldTests {
  @Test("Models of an app converge through faults", arguments: 1...4 as ClosedRange<UInt64>)
  func ownModels(seed: UInt64) {
    let simulation = Simulation(seed: seed, world: .sketch())
    if let failure = simulation.run().failure { Issue.record("\(simulation.shrink(failure))") }
  }

  @Test("A schedule can be written by hand")
  func script() {
    let outcome = Simulation(seed: 1, world: .sketch(), configuration: .calm).run(
      [
        .pass(milliseconds: 1_000), .edit(client: 0, seed: 1), .cut(client: 0), .rest,
        .script(client: 1, name: "clear", seed: 1), .flush(client: 1), .crashClient(2),
      ], traced: true)
    #expect(outcome.failure == nil, "\(outcome.failure?.description ?? "")")
    #expect(outcome.trace.contains { $0.hasSuffix("client 1 clears everything") })
    #expect(outcome.trace.contains { $0.contains("connection 1 is closed 0 cut") })
  }

  private static var crashing: SimulationConfiguration {
    var configuration = SimulationConfiguration.rough
    configuration.faults.serverCrash = 0.02
    configuration.promises = .serverIsDurable
    configuration.hasJournal = false
    return configuration
  }

  @Test("A server that keeps everything loses nothing in a crash")
  func keepingServer() {
    for seed in 1...10 as ClosedRange<UInt64> {
      let simulation = Simulation(
        seed: seed, world: .sketch(storage: { KeepingStorage() }), configuration: Self.crashing)
      if let failure = simulation.run().failure { Issue.record("\(simulation.shrink(failure))") }
    }
  }

  @Test("That a server keeps nothing is noticed where it should")
  func forgetfulServer() throws {
    let failures = (1...10 as ClosedRange<UInt64>).compactMap { seed in
      Simulation(seed: seed, world: .sketch(), configuration: Self.crashing).run().failure
    }
    #expect(failures.contains { $0.kind == .intent })
  }
}
