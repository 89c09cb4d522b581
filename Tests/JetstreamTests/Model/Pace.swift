import Pacing
import Testing

/// Lets the suites that compute run one or two tests at a time, in all targets together.
///
/// All tests of a run share a few threads, and each that only computes holds one of them to its end.
/// Hundreds of these, started at once, would leave those that talk over real sockets beside them
/// waiting for a thread until their connections time out.
struct PacedTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @Sendable @concurrent () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    await Pace.shared.enter()
    do {
      try await function()
    } catch {
      await Pace.shared.leave()
      throw error
    }
    await Pace.shared.leave()
  }
}

extension Trait where Self == PacedTrait {
  static var paced: PacedTrait { PacedTrait() }
}
