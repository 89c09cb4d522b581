import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

@testable import JetstreamTool

/// A worker process of a bench, against a server in the process of the tests.
@Suite("The workers of a bench", .live, .serialized, .timeLimit(.minutes(5)))
@MainActor
struct BenchWorkerTests {
  private let files = try! TemporaryDirectory()

  /// Runs a worker until it has sent its last line.
  private func worker(_ plan: BenchPlan, stops: Bool) async throws -> LogProcess {
    let process = try LogProcess("jetstream", ["bench-worker", Self.text(plan)])
    try await process.beside { try Self.direct($0, stops: stops) }
    return process
  }

  private nonisolated static func text(_ value: some Encodable) -> String {
    String(decoding: BenchLines.data(value).dropLast(), as: UTF8.self)
  }

  /// Gives a worker its orders, on a thread that waits for nothing else.
  private nonisolated static func direct(_ process: LogProcess, stops: Bool) throws {
    while let line = process.waitForLine() {
      switch BenchLines.value(BenchLine.self, of: line) {
      case .ready?: try process.say(text(BenchOrder.begin(at: BenchClock.now)))
      case .second?: if stops { try process.say(text(BenchOrder.stop)) }
      case .written(_, let accepted, _)?:
        if !stops { try process.say(text(BenchOrder.drain(accepted: accepted))) }
      case .done?: return
      case .failed(let reason)?: throw ProcessProblem(text: reason)
      case nil: throw ProcessProblem(text: "not a line of a worker: \(line)")
      }
    }
    throw ProcessProblem(text: "The worker has ended early.")
  }

  @Test(
    "Clients stay connected until the worker's input ends, then close, and the server has nothing to warn of",
    arguments: [false, true])
  func close(stops: Bool) async throws {
    let server = Server()
    server.openScopes(in: try ScopeDirectory(files.path)) { _ in .schemaOfClient }
    let url = "ws://127.0.0.1:\(try await server.listen())"
    var warnings: [String] = []
    server.onDiagnostic.listen { if $0.level >= .warning { warnings.append($0.text()) } }
    let options = try BenchOptions([
      url, "--processes", "1", "--clients", "8", "--writers", "3",
      "--seconds", stops ? "60" : "1", "--patience", "120",
    ])
    let plan = BenchPlan(options: options, worker: 1, run: "00000000")
    let process = try await worker(plan, stops: stops)
    // The writers of another worker may go on for a while.
    let client = Client(transport: server.makeTransport())
    let board = BenchBoard()
    let scope = Scope(name: "bench/1", root: board)
    try await client.connect()
    try await client.fetch(scope)
    let own = try #require(scope.root as? BenchBoard)
    #expect(own.notes.isEmpty && own.edits > 0)
    for _ in 0..<500 {
      own.edits += 1
      try await client.sync(scope)
    }
    #expect(server.connectionCount == 9)
    client.close()
    #expect(try await process.finish().status == 0)
    try await wait { server.connectionCount == 0 }
    #expect(warnings.isEmpty)
    await server.stop()
  }
}
