import Jetstream
import Testing

@Suite("The pending queue at random", .serialized, .paced)
struct PendingModelTests {
  @Test(
    "Whatever is decided in whatever order, what is visible is the confirmed values with what is pending",
    arguments: 0..<12)
  func random(seed: Int) async {
    let model = PendingModel(seed: UInt64(seed))
    for step in 0..<150 {
      if step % 20 == 0 { await Task.yield() }
      switch Int.random(in: 0..<100, using: &model.generator) {
      case 0..<55: model.edit()
      case 55..<98: model.frame()
      default: model.loseSession()
      }
      model.check()
    }
    for _ in 0..<1000 where !model.undecided.isEmpty {
      model.frame()
      model.check()
    }
    #expect(model.undecided.isEmpty)
  }
}
