import JetstreamSimulation
import Testing

@Suite("Simulated replicas agree")
struct SimulationTests {
  @Test("Without faults", arguments: 1..<11 as Range<UInt64>)
  func calm(seed: UInt64) {
    let outcome = Simulation(seed: seed, configuration: .calm).run()
    #expect(outcome.failure == nil, "\(outcome.failure.map { "\($0)" } ?? "")")
  }
}
