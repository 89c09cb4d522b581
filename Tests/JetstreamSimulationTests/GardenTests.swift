import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamSimulation

@Suite("Simulated gardens agree", .serialized, .paced)
struct GardenTests {
  @Test("Through everything", arguments: 1...3 as ClosedRange<UInt64>)
  func everything(seed: UInt64) async {
    await Task.yield()
    var configuration = SimulationConfiguration.everything
    configuration.steps = 80
    let simulation = Simulation(seed: seed, world: .garden, configuration: configuration)
    if let failure = simulation.run().failure {
      Issue.record("\(simulation.shrink(failure, runs: 200))")
    }
  }

  @Test("The edits use each feature that is switched on, and no other")
  func features() {
    let words = [
      "undo": "undoes", "boundedCounters": "to a small counter", "cutAndPaste": "cuts",
      "rootReferences": "refer to the plan", "localHolders": "clips", "throwing": "takes back",
      "throttling": "something throttled",
    ]
    for (feature, word) in words {
      for rate in [0, 0.5] {
        var configuration = SimulationConfiguration.calm
        for name in SimulationConfiguration.Features.names { configuration.features[name] = 0 }
        configuration.features[feature] = rate
        configuration.steps = 120
        let outcome = Simulation(seed: 1, world: .garden, configuration: configuration)
          .run(traced: true)
        #expect(outcome.trace.contains { $0.contains(word) } == (rate > 0), "\(feature)")
      }
    }
  }

  @Test("What an app shows at rest is compared with what it should show")
  func wrongApp() throws {
    let world = SimulationWorld(
      "Wrong", root: Sketch.init(uuid:), app: { _, _, process in process.client },
      edit: { sketch, _, random in
        sketch.name = "name \(random.number(in: 0...9))"
        return "names"
      },
      problems: { client in client == 1 ? ["it shows something else"] : [] })
    let failure = try #require(
      Simulation(seed: 1, world: world, configuration: .calm).run().failure)
    #expect(failure.kind == .app && failure.world == "Wrong")
  }
}

@Suite("Configurations that follow from the seed", .serialized, .paced)
struct DrawnTests {
  @Test("A seed gives the same configuration and the same run each time")
  func replays() {
    for seed in 1...3 as ClosedRange<UInt64> {
      let (first, second) = (Simulation.drawn(seed: seed), Simulation.drawn(seed: seed))
      #expect(first.configuration == second.configuration)
      #expect(first.world.name == second.world.name)
      #expect(first.run(traced: true).digest == second.run(traced: true).digest)
    }
  }

  @Test("Seeds give small and large limits, few and many clients, and all worlds")
  func variety() {
    let drawn = (1...60 as ClosedRange<UInt64>).map { Simulation.drawn(seed: $0) }
    #expect(Set(drawn.map(\.configuration.clients)) == [1, 2, 3, 4, 5, 6])
    #expect(Set(drawn.map(\.world.name)) == ["Workshop", "Garden", "Hall"])
    let limits = drawn.map(\.configuration.limits)
    #expect(limits.contains { $0.sendWindow == 1 } && limits.contains { $0.streamLength <= 2 })
    #expect(limits.contains { $0.streamBytes < 1_000 } && limits.contains { $0.streamStates == 3 })
    #expect(
      limits.contains { $0.departedModels < 3 } && limits.contains { $0.departedModels > 1_000 })
    #expect(limits.contains { $0.ownWrites == 1 } && limits.contains { $0.ownWrites == 256 })
    #expect(drawn.contains { $0.configuration.diskDelay.upperBound >= 2_000 })
  }
}

/// What the engines would do wrongly has to be found.
@Suite("Wrong notifications and tables are found", .serialized, .paced)
struct NotificationTests {
  private func find(_ sabotage: Sabotage, steps: Int = 60) -> SimulationFailure? {
    var configuration = SimulationConfiguration.calm
    configuration.steps = steps
    configuration.watched = 1
    configuration.checksTables = true
    var simulation = Simulation(seed: 3, configuration: configuration)
    #expect(simulation.run().failure == nil)
    simulation.sabotage = sabotage
    return simulation.run().failure
  }

  private static func isChosen(_ event: SimulationEvent) -> Bool {
    if case .edit(1, _) = event { true } else { false }
  }

  @Test("An immediate observer that is told of a change that is none")
  func immediate() throws {
    let failure = try #require(
      find(
        Sabotage(afterEvent: { event, scope in
          guard Self.isChosen(event), let root = scope.root as? WorkshopBoard else { return }
          root.signals.onPropertyChange.fire(
            PropertyChange(key: "title", old: root.title as Any, new: root.title as Any))
        })))
    #expect(failure.kind == .notification)
  }

  @Test("A coalesced observer that fires although nothing was written")
  func coalesced() throws {
    let failure = try #require(
      find(
        Sabotage(afterEvent: { event, scope in
          guard Self.isChosen(event), let root = scope.root else { return }
          root.ensureRecord().noteChange(root.schema["isOpen"]!.index)
        })))
    #expect(failure.kind == .notification)
  }

  @Test("A table that keeps an entry for ever")
  func table() throws {
    var configuration = SimulationConfiguration.calm
    configuration.checksTables = true
    var simulation = Simulation(seed: 3, configuration: configuration)
    let events: [SimulationEvent] = [.pass(milliseconds: 1_000), .edit(client: 1, seed: 1)]
    #expect(simulation.run(events).failure == nil)
    simulation.sabotage = Sabotage(afterEvent: { _, scope in
      if let root = scope.root { scope.tree.suspects.append(root) }
    })
    #expect(simulation.run(events).failure?.kind == .tables)
  }

  @Test("Tables are checked once a failed disk has recovered")
  func failingDisk() {
    var configuration = SimulationConfiguration.calm
    configuration.clients = 1
    configuration.delay = 400...400
    configuration.diskDelay = 300...300
    configuration.checksTables = true
    configuration.promises = .clientsAreDurable
    // The disk fails after the record of the change set is durable, and before the decision arrives.
    // The log tries again a second after each failure.
    let failures = 10
    let events: [SimulationEvent] =
      [.rest, .edit(client: 0, seed: 1), .flush(client: 0), .pass(milliseconds: 700)]
      + Array(repeating: .failDisk(client: 0, pick: 1), count: failures)
    let outcome = Simulation(seed: 3, configuration: configuration).run(events, traced: true)
    #expect(outcome.failure == nil, "\(outcome.failure?.description ?? "")")
    #expect(outcome.trace.contains { $0.contains("of client 0 is decided") })
    #expect(outcome.virtualTime > .seconds(failures))
  }
}
