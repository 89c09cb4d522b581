import FuzzTargets
import Testing

@Suite("Fuzzing, for seconds", .paced)
struct FuzzTests {
  @Test("Nothing that a mutator makes does harm", arguments: FuzzTarget.all.map(\.name))
  func mutated(name: String) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    let seed = UInt64.random(in: 0 ... .max)
    var inputs = Mutator(target, generator: SeededGenerator(seed: seed))
    for round in 0..<700 {
      let input = inputs.next()
      do {
        try target.check(input)
      } catch {
        let text = String(decoding: input, as: UTF8.self)
        Issue.record("seed \(seed), round \(round), \(error): \(text)")
        return
      }
    }
  }

  @Test("The seeds of a target are taken as they are", arguments: FuzzTarget.all.map(\.name))
  func seeds(name: String) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    #expect(!target.seeds.isEmpty)
    for seed in target.seeds { try target.check(seed) }
  }
}
