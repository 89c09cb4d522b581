import Foundation
import JetstreamSimulation
import Pacing
import Testing

@testable import Jetstream

private final class Page: ModelObject {
  @Property var title = ""
  @Property(.counter) var visits = 0
}

@Suite("Restoring a scope from a new log", .paced)
@MainActor
struct LogRestoreTests {
  private let disk = SimulatedDisk()
  private let page = Page()
  private let scope: Scope

  init() { scope = Scope(name: "Page", root: page, ticker: .manual()) }

  /// The page as another process restores it.
  private func restored() throws -> (page: Page, sets: [ChangeSet]) {
    let again = Page()
    let other = Scope(name: "Page", root: again, ticker: .manual())
    let log = FragmentLog(try SimulatedLog(disk).log)
    _ = try #require(try log.restoreWhatIsThere(into: other))
    return (again, try LogReader(disk).all().filter { $0.kind == .set }.map { try ChangeSet($0) })
  }

  /// Restores, and calls `meanwhile` while the first snapshot waits for the disk.
  private func restore(_ simulated: SimulatedLog, meanwhile: () -> Void) async throws {
    let log = FragmentLog(simulated.log)
    let task = Task { [scope] in
      try await log.restore(into: scope)
      log.record(scope) { Issue.record("\($0)") }
    }
    try await wait { !simulated.queue.isEmpty || !simulated.snapshots.isEmpty }
    meanwhile()
    try await drain(simulated) { try await task.value }
  }

  /// Waits for an end while the disk answers.
  private func drain(
    _ simulated: SimulatedLog, until end: @escaping @MainActor () async throws -> Void
  ) async throws {
    var isOver = false
    let ending = Task {
      defer { isOver = true }
      try await end()
    }
    try await wait {
      simulated.drain()
      return isOver
    }
    try await ending.value
  }

  @Test("The first snapshot counts although the log cannot note it")
  func unnoted() async throws {
    page.title = "First"
    let simulated = try SimulatedLog(disk)
    disk.inject([.lock(.sync, EIO)])
    try await restore(simulated) {}
    page.title = "Second"
    scope.flush()
    simulated.drain()
    #expect(!disk.hasFaults)
    disk.kill()
    #expect(try restored().page.title == "Second")
  }

  @Test("What is changed while the first snapshot is written comes behind it")
  func meanwhile() async throws {
    page.title = "First"
    page.visits = 1
    let simulated = try SimulatedLog(disk)
    try await restore(simulated) {
      page.title = "Second"
      page.visits += 1
      scope.flush()
      page.visits += 1
      scope.flush()
    }
    page.visits += 1
    scope.flush()
    try simulated.close()
    let (again, sets) = try restored()
    #expect(again.title == "Second" && again.visits == 4)
    #expect(sets.count == 3 && sets.allSatisfy { $0.date != nil })
  }

  @Test("What observers change when a snapshot is about to be made is counted once")
  func observed() async throws {
    page.observeChange(\.title) { [unowned page] in page.visits += 1 }
    page.title = "First"
    let simulated = try SimulatedLog(disk)
    try await restore(simulated) {}
    page.title = "Second"
    let log = FragmentLog(simulated.log)
    try await drain(simulated) { [scope] in try await log.snapshot(of: scope) }
    scope.flush()
    try simulated.close()
    #expect(page.visits == 2)
    #expect(try restored().page.visits == 2)
  }

  @Test("What is changed while the first snapshot fails is not in the log")
  func failed() async throws {
    let simulated = try SimulatedLog(disk)
    disk.isFull = true
    await #expect(throws: LogError.self) {
      try await restore(simulated) {
        page.visits += 1
        scope.flush()
      }
    }
    #expect(simulated.log.lastSequence == 0)
    disk.isFull = false
    try await restore(simulated) {}
    try simulated.close()
    #expect(try restored().page.visits == 1)
  }
}
