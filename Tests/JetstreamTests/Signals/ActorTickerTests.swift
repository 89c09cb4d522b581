import Pacing
import Testing

@testable import Jetstream

@Suite(.paced) struct ActorTickerTests {
  @Test("the ticker of an actor is one and the same while somebody uses it")
  @MainActor func oneTickerAnActor() {
    let ticker = Ticker.on(MainActor.shared)
    #expect(Ticker.on(MainActor.shared) === ticker)
    #expect(Scope(name: "S", root: Shape()).ticker === ticker)
  }

  @Test("short waits beside a long one leave no sleeping tasks behind")
  func oneTimer() async throws {
    actor Home {
      func run() async throws -> Int {
        let ticker = Ticker.on(self)
        ticker.perform(after: .seconds(3_600)) {}
        var most = 0
        for _ in 0..<20 {
          try await awaitCall { done in
            ticker.perform(after: .microseconds(50)) { done(()) }
          }
          most = max(most, ticker.alarms.count)
        }
        return most
      }
    }
    #expect(try await Home().run() <= 1)
  }
}
