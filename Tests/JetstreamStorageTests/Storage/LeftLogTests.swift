import Foundation
import JetstreamSimulation
import Pacing
import Testing

@testable import Jetstream

/// The logs of scopes that a client stops to sync while their disk is full.
@Suite("Logs of scopes that are left", .live, .timeLimit(.minutes(5)))
@MainActor
struct LeftLogTests {
  enum Ending: String, CaseIterable, CustomTestStringConvertible {
    case leave, close, release

    var testDescription: String { rawValue }
  }

  private let disk = SimulatedDisk()
  private let log: FragmentLog
  private let canvas = Canvas()
  private let scope: Scope

  init() throws {
    let configuration = LogConfiguration(segmentBytes: 1 << 20, backlogBytes: 2_000)
    log = FragmentLog(try RecordLog(disk, configuration: configuration))
    scope = Scope(name: "Canvas", root: canvas)
  }

  /// Makes 50 change sets in a scope whose log does not take all of them.
  private func fill(_ client: Client) async throws {
    try client.fetch(scope, log: log)
    try await log.sync()
    disk.isFull = true
    for number in 1...50 {
      canvas.likes = number
      scope.flush()
    }
    #expect(log.lastSequence < 51)
  }

  /// The number of change sets in the log, read by another process.
  private func count() async throws -> Int? {
    try await log.close()
    let records = try RecordLog(disk)
    let history = try ClientLog(records).history()
    try await records.close()
    return history?.records.count { if case .made = $0 { true } else { false } }
  }

  @Test(
    "A log takes what it has refused when its scope is left, and is not closed without it",
    arguments: Ending.allCases)
  func refused(_ ending: Ending) async throws {
    var client: Client? = Client(url: "ws://127.0.0.1:1")
    try await fill(#require(client))
    switch ending {
    case .leave: #expect(try client?.leave(scope).count == 50)
    case .close: client?.close()
    case .release: client = nil
    }
    #expect(log.lastSequence == 51)
    await #expect(throws: LogError.self) { try await log.close() }
    disk.isFull = false
    #expect(try await count() == 50)
  }

  @Test("What was changed just before the client is closed is in the log")
  func closedAtOnce() async throws {
    let client = Client(url: "ws://127.0.0.1:1")
    try client.fetch(scope, log: log)
    canvas.likes = 1
    client.close()
    #expect(try await count() == 1)
  }

  @Test("A client that was closed ends what it has begun to sync since when it is closed again")
  func closedTwice() async throws {
    let client = Client(url: "ws://127.0.0.1:1")
    client.close()
    try client.fetch(scope, log: log)
    canvas.likes = 1
    scope.flush()
    client.close()
    #expect(client.syncState(of: scope) == nil && client.scopes.isEmpty)
    canvas.likes = 2
    scope.flush()
    #expect(try await count() == 1)
  }

  @Test(
    "Records of a scope that was left are written once the disk has room, and reported until then"
  )
  func retry() async throws {
    let client = Client(url: "ws://127.0.0.1:1")
    try await fill(client)
    _ = try client.leave(scope)
    var notes: [String] = []
    client.onDiagnostic.listen { notes.append($0.text()) }
    try await wait { notes.contains { $0.contains("cannot be kept") } }
    disk.isFull = false
    try await wait { log.records.durableSequence == 51 && client.leftLogs.isEmpty }
    #expect(try await count() == 50)
  }

  @Test("A scope that is synced again with its log has what the log had refused")
  func again() async throws {
    let client = Client(url: "ws://127.0.0.1:1")
    try await fill(client)
    _ = try client.leave(scope)
    disk.isFull = false
    // Until the log has tried again, it cannot be read.
    try? await log.sync()
    let next = Canvas()
    let other = Scope(name: "Canvas", root: next)
    try client.fetch(other, log: log)
    #expect(next.likes == 50 && client.pendingCount == 50)
    next.likes = 51
    other.flush()
    try await log.sync()
    try await wait { client.leftLogs.isEmpty }
    _ = try client.leave(other)
    #expect(try await count() == 51)
  }
}
