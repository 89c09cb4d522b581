import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// An app that hosts a scope while an earlier hosting of it has not ended.
@Suite("Hosting a scope again", .live, .timeLimit(.minutes(3)))
@MainActor
final class HostingAgainTests {
  private var notes: [String] = []

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

  /// Hosts a scope on a disk, and returns its root.
  private func host(
    _ server: Server, on disk: SimulatedDisk, snapshotEvery: Int = 0
  ) async throws -> Canvas {
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    server.onDiagnostic.listen(self) { $0.notes.append($1.text()) }
    let log = FragmentLog(
      try RecordLog(disk, configuration: LogConfiguration(history: .nothing)))
    try await server.host(scope, log: log, snapshotEvery: snapshotEvery)
    return canvas
  }

  @Test("A scope is hosted although the log cannot note its first state, which is reported")
  func unnotedState() async throws {
    let disk = SimulatedDisk()
    let server = Server()
    disk.inject([.lock(.sync, EIO)])
    let canvas = try await host(server, on: disk)
    #expect(!disk.hasFaults && notes.contains { $0.contains("sync lock") })
    canvas.likes = 3
    try await server.remove(#require(canvas.scope))
    #expect(try await host(server, on: disk).likes == 3)
    await server.stop()
  }

  @Test(
    "It is reported that what a snapshot replaces cannot be removed, apart from snapshots that fail"
  )
  func unremovedHistory() async throws {
    let disk = SimulatedDisk()
    let server = Server()
    let canvas = try await host(server, on: disk, snapshotEvery: 1)
    disk.inject([.lock(.sync, EIO)])
    canvas.likes = 3
    canvas.scope?.flush()
    try await wait { notes.contains { $0.contains("sync lock") } }
    #expect(notes.count == 1 && !notes[0].contains("no snapshot"))
    #expect(try LogReader(disk).snapshot()?.sequence == 1)
    await server.stop()
  }
}
