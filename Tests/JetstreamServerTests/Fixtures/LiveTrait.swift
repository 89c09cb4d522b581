import Pacing
import Testing

/// Says of a suite that it talks over real sockets: as long as it runs, tests that compute leave it a thread.
struct LiveTrait: SuiteTrait, TestScoping {
  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @Sendable @concurrent () async throws -> Void
  ) async throws {
    await Pace.shared.beginLive()
    do {
      try await function()
    } catch {
      await Pace.shared.endLive()
      throw error
    }
    await Pace.shared.endLive()
  }
}

extension Trait where Self == LiveTrait {
  static var live: LiveTrait { LiveTrait() }
}
