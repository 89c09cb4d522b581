import Foundation
import Jetstream
import Testing

@testable import JetstreamSimulation

/// What is broken on purpose has to be found, and shortened to little more than what it takes.
@Suite("Planted faults are found", .serialized, .paced)
struct SabotageTests {
  /// Runs seeds until one fails, and shortens that.
  private func find(
    _ sabotage: Sabotage, in configuration: SimulationConfiguration = .calm, steps: Int? = nil
  ) -> SimulationFailure? {
    var configuration = configuration
    configuration.steps = steps ?? configuration.steps
    for seed in 1...20 as ClosedRange<UInt64> {
      var simulation = Simulation(seed: seed, configuration: configuration)
      #expect(simulation.run().failure == nil, "seed \(seed) fails without any fault")
      simulation.sabotage = sabotage
      guard let failure = simulation.run().failure else { continue }
      let shortest = simulation.shrink(failure)
      #expect(shortest.kind == failure.kind)
      #expect(shortest.events.count <= failure.events.count)
      return shortest
    }
    Issue.record("Nothing was found.")
    return nil
  }

  /// What comes of a frame when its text is changed.
  private static func replace(_ old: String, _ new: String, in frame: [UInt8]) -> [UInt8] {
    Array(String(decoding: frame, as: UTF8.self).replacing(old, with: new).utf8)
  }

  @Test("A change set that arrives under another number")
  func otherNumber() throws {
    // That nothing comes to rest takes long to find out, each time that a shorter run is tried.
    var configuration = SimulationConfiguration.calm
    configuration.clients = 2
    let failure = try #require(
      find(
        Sabotage(frames: { frame, toServer, _ in
          guard toServer else { return [frame] }
          return [Self.replace(#""ScopeSync","index":4"#, #""ScopeSync","index":5"#, in: frame)]
        }), in: configuration, steps: 14))
    #expect(failure.kind == .unrest)
    #expect(failure.configuration.absent.count == 1, "\(failure)")
    #expect(failure.events.count <= 8, "\(failure)")
  }

  @Test("A change set that arrives twice, the second time under the next number")
  func doubled() throws {
    var configuration = SimulationConfiguration.calm
    configuration.promises = .countersAddUp
    configuration.clients = 1
    let sabotage = Sabotage(frames: { frame, toServer, _ in
      guard toServer else { return [frame] }
      let again = Self.replace(#""ScopeSync","index":3"#, #""ScopeSync","index":4"#, in: frame)
      return again == frame ? [frame] : [frame, again]
    })
    let failure = try #require(find(sabotage, in: configuration))
    #expect(failure.kind == .messages)
    #expect(failure.events.count <= 6, "\(failure)")
  }

  @Test("A number that changes on its way to the server is an accepted set that is not there")
  func lostValue() throws {
    let failure = try #require(
      find(
        Sabotage(frames: { frame, toServer, _ in
          [toServer ? Self.replace(#""rank":7"#, #""rank":8"#, in: frame) : frame]
        })))
    #expect(failure.kind == .intent)
    #expect(failure.events.count <= 3, "\(failure)")
  }

  @Test("What a scope comes to is something else on its way to a client")
  func otherDigest() throws {
    let failure = try #require(
      find(
        Sabotage(frames: { frame, toServer, client in
          guard !toServer, client == 1 else { return [frame] }
          return [Self.replace(#""digest":"0"#, #""digest":"1"#, in: frame)]
        })))
    #expect(failure.kind == .divergence)
    #expect(failure.problems.contains { $0.contains("found itself not equal") }, "\(failure)")
  }

  @Test("A broadcast that reaches one client only in part")
  func lostBroadcast() throws {
    let failure = try #require(
      find(
        Sabotage(frames: { frame, toServer, client in
          guard !toServer, client == 1 else { return [frame] }
          return [Self.replace(#"{"title":"title"#, #"{"title":"no title"#, in: frame)]
        })))
    #expect(failure.kind == .divergence)
    #expect(failure.configuration.absent.count == 1)
    #expect(failure.events.count <= 4, "\(failure)")
  }

  @Test("A scope that is changed behind its engine's back")
  func behindTheBack() throws {
    let failure = try #require(
      find(
        Sabotage(afterEvent: { event, scope in
          guard case .edit(_, let seed) = event, seed % 16 == 0, let root = scope.root else {
            return
          }
          scope.apply([
            SyncFragment(
              .change, uuid: root.uuid, className: "WorkshopBoard",
              properties: ["isOpen": .bool(seed % 32 == 0)])
          ])
        })))
    #expect([.divergence, .invariant].contains(failure.kind), "\(failure)")
    #expect(failure.events.count <= 5, "\(failure)")
  }

  @Test("A reply that says no to what the server has accepted")
  func falseReply() throws {
    let failure = try #require(
      find(
        Sabotage(frames: { frame, toServer, _ in
          guard !toServer else { return [frame] }
          return [
            Self.replace(
              #""replyTo":5,"fragmentReplies":[{}"#,
              #""replyTo":5,"fragmentReplies":[{"error":{"message":"no"}}"#, in: frame)
          ]
        }), steps: 60))
    #expect([.handle, .divergence].contains(failure.kind), "\(failure)")
    #expect(failure.events.count <= 15, "\(failure)")
  }

  @Test("A server that forgets in a crash what it has told")
  func forgetfulServer() throws {
    var configuration = SimulationConfiguration.rough
    configuration.faults.serverCrash = 0.02
    configuration.promises = .serverIsDurable
    let failure = try #require(find(Sabotage(losesSafeRecords: true), in: configuration))
    #expect([.intent, .handle, .divergence, .history].contains(failure.kind), "\(failure)")
  }

  @Test("A server that is restored from an old copy and does not say so")
  func concealedLoss() throws {
    var configuration = SimulationConfiguration.calm
    configuration.faults.historyLoss = 0.02
    configuration.promises = [.serverIsDurable, .clientsAreDurable]
    let sabotage = Sabotage(frames: { frame, toServer, _ in
      [toServer ? frame : Self.replace(#""epoch":"epoch1""#, #""epoch":"session1""#, in: frame)]
    })
    let failure = try #require(find(sabotage, in: configuration))
    #expect([.history, .state].contains(failure.kind), "\(failure)")
    #expect(failure.events.contains { if case .loseHistory = $0 { true } else { false } })
  }

  @Test("Frames that are lost, doubled and overtaken make nobody diverge")
  func frameFaults() {
    var configuration = SimulationConfiguration.calm
    configuration.steps = 120
    configuration.faults.loss = 0.03
    configuration.faults.duplication = 0.03
    configuration.faults.reordering = 0.03
    for seed in 1...5 as ClosedRange<UInt64> {
      let outcome = Simulation(seed: seed, configuration: configuration).run(traced: true)
      for word in ["is lost", "is doubled", "is overtaken"] {
        #expect(
          outcome.trace.contains { $0.contains(word) } || outcome.failure != nil, "seed \(seed)")
      }
      // Whoever has lost a frame may wait for its answer for ever, in version 1 of the protocol.
      if let failure = outcome.failure {
        #expect(failure.kind == .unrest, "\(failure)")
        #expect(failure.description.contains("seed \(seed), calm, Workshop, 3 clients"))
      }
    }
  }
}
