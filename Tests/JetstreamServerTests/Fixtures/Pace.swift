import Pacing
import Testing

/// Lets the suites that compute run one or two tests at a time, in all targets together.
///
/// All tests of a run share a few threads, and each that only computes holds one of them to its end.
/// Hundreds of these, started at once, would leave those that talk over real sockets beside them
/// waiting for a thread until their connections time out.
struct PacedTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true
  /// What tests share of which only one may run; nil if nothing.
  var lane: String?

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @Sendable @concurrent () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    await Pace.shared.enter(lane)
    do {
      try await function()
    } catch {
      await Pace.shared.leave(lane)
      throw error
    }
    await Pace.shared.leave(lane)
  }
}

extension Trait where Self == PacedTrait {
  static var paced: PacedTrait { PacedTrait() }

  /// The same for tests of which no two may run at once: some count the instances of a class that all of them make.
  static func paced(counting class: Any.Type) -> PacedTrait { PacedTrait(lane: "\(`class`)") }
}
