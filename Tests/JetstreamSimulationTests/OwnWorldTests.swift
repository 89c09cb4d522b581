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
  static var sketch: SimulationWorld {
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
      ])
  }
}

@Suite("Worlds of an app's own", .serialized, .paced)
struct OwnWorldTests {
  @Test("Models of an app converge through faults", arguments: 1...4 as ClosedRange<UInt64>)
  func ownModels(seed: UInt64) {
    let simulation = Simulation(seed: seed, world: .sketch)
    if let failure = simulation.run().failure { Issue.record("\(simulation.shrink(failure))") }
  }

  @Test("A schedule can be written by hand")
  func script() {
    let outcome = Simulation(seed: 1, world: .sketch, configuration: .calm).run(
      [
        .pass(milliseconds: 1_000), .edit(client: 0, seed: 1), .cut(client: 0), .rest,
        .script(client: 1, name: "clear", seed: 1), .flush(client: 1), .crashClient(2),
      ], traced: true)
    #expect(outcome.failure == nil, "\(outcome.failure?.description ?? "")")
    #expect(outcome.trace.contains { $0.hasSuffix("client 1 clears everything") })
    #expect(outcome.trace.contains { $0.contains("connection 1 is closed 0 cut") })
  }
}
