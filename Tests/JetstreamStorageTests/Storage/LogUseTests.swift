import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

@Suite("A log has one use")
@MainActor
struct LogUseTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ canvas: Canvas) -> (Client, Scope) {
    (Client(url: "ws://127.0.0.1:1"), Scope(name: "Canvas", root: canvas))
  }

  @Test("An app cannot restore the log of a client, whose pending change sets stay")
  func clientLogAsApp() async throws {
    let canvas = Canvas()
    let (client, scope) = open(canvas)
    let log = try FragmentLog(path)
    try client.fetch(scope, log: log)
    canvas.name = "pending"
    scope.flush()
    client.close()
    try await log.close()

    let wrong = try FragmentLog(path)
    let other = Scope(name: "Canvas", root: Canvas())
    await #expect(throws: LogError.self) { try await wrong.restore(into: other) }

    // A call that fails does not use the log.
    let again = Canvas()
    let (next, restored) = open(again)
    try next.fetch(restored, log: wrong)
    #expect(again.name == "pending" && next.syncState(of: restored)?.pendingCount == 1)
    next.close()
  }

  @Test("A log that an app records cannot be given to a client, nor the other way round")
  func twoUses() async {
    let client = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let directory = try TemporaryDirectory()
      try await MainActor.run {
        let scope = Scope(name: "Canvas", root: Canvas())
        let log = try FragmentLog(directory.path)
        log.record(scope) { _ in }
        try Client(url: "ws://127.0.0.1:1").fetch(scope, log: log)
      }
    }
    #expect(
      text(client).contains(
        "A log is recorded by an app already, and cannot be the log of a client, too"))
    let app = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let directory = try TemporaryDirectory()
      try await MainActor.run {
        let scope = Scope(name: "Canvas", root: Canvas())
        let log = try FragmentLog(directory.path)
        let client = Client(url: "ws://127.0.0.1:1")
        try client.fetch(scope, log: log)
        log.record(scope) { _ in }
      }
    }
    #expect(
      text(app).contains(
        "A log is the log of a client already, and cannot be recorded by an app, too"))
  }

  @Test("A log that a client keeps takes no mark of the app's")
  func markOfClient() async {
    let client = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let directory = try TemporaryDirectory()
      let log = try FragmentLog(directory.path)
      try await MainActor.run {
        let scope = Scope(name: "Canvas", root: Canvas())
        try Client(url: "ws://127.0.0.1:1").fetch(scope, log: log)
      }
      try await log.mark("before the review")
    }
    #expect(text(client).contains("takes records from no others"))
  }

  private func text(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }
}
