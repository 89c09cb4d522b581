import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// An app that hosts a scope while an earlier hosting of it has not ended.
@Suite("Hosting a scope again", .live, .timeLimit(.minutes(3)))
@MainActor
struct HostingAgainTests {
  private func makeLog(snapshotsOn snapshots: GatedQueue = GatedQueue()) throws -> FragmentLog {
    FragmentLog(
      try RecordLog(
        SimulatedDisk(), configuration: LogConfiguration(), queue: DispatchLogQueue("log"),
        snapshotQueue: snapshots))
  }

  @Test(
    "After a stop, it waits for the hosting whose first state is still being written",
    arguments: [false, true])
  func afterStop(isOther: Bool) async throws {
    let snapshots = GatedQueue()
    let log = try makeLog(snapshotsOn: snapshots)
    let scope = Scope(name: "A", root: Canvas())
    let server = Server()
    snapshots.hold()
    let first = Task { try await server.host(scope, log: log) }
    try await wait { snapshots.isHoldingWork }
    await server.stop()
    let next = isOther ? Scope(name: "A", root: Canvas()) : scope
    var isBegun = false
    let second = Task {
      isBegun = true
      try await server.host(next, log: log)
    }
    try await wait { isBegun }
    let waits = !server.runner.engine.keepsHistory(of: next)
    #expect(waits)
    snapshots.letGo()
    try await first.value
    // The first hosting has closed the log.
    await #expect(throws: LogError.closed) { try await second.value }
    if waits {
      try await server.host(next, log: makeLog())
      #expect(server.runner.engine.keepsHistory(of: next))
    }
    await server.stop()
  }
}
