import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

@testable import JetstreamTool

/// The command as a process, with its workers, against a server in the process of the tests.
@Suite("The command jetstream bench", .live, .serialized, .timeLimit(.minutes(5)))
@MainActor
struct BenchToolTests {
  private let files = try! TemporaryDirectory()

  /// Starts a server that opens scopes of any schema.
  private func makeServer() async throws -> (server: Server, url: String) {
    let server = Server()
    server.openScopes(in: try ScopeDirectory(files.path)) { _ in .schemaOfClient }
    return (server, "ws://127.0.0.1:\(try await server.listen())")
  }

  /// Runs the command to its end.
  ///
  /// - Parameter onLine: Called with each line of the output, on some thread. With it, standard error goes to the output,
  ///   too.
  private func bench(
    _ arguments: String..., onLine: (@Sendable (String) -> Void)? = nil
  ) async throws -> LogProcess.End {
    let process = try LogProcess(
      "jetstream", ["bench"] + arguments, redirection: onLine == nil ? nil : "2>&1")
    return try await process.beside { process in
      var lines: [String] = []
      while let line = process.waitForLine() {
        lines.append(line)
        onLine?(line)
      }
      let end = process.waitForEnd()
      return (lines, end.errors, end.status)
    }
  }

  private func object(_ outcome: LogProcess.End) throws -> [String: JSONValue] {
    #expect(outcome.status == 0, "\(outcome.errors)")
    guard case .object(let object) = try JSONValue(parsing: outcome.lines.joined()) else {
      throw ProcessProblem(text: "no object: \(outcome.lines)")
    }
    return Dictionary(uniqueKeysWithValues: object.map { ($0.key, $0.value) })
  }

  private func number(_ value: JSONValue?) throws -> Int64 {
    guard case .integer(let number)? = value else {
      throw ProcessProblem(text: "\(String(describing: value)) is no number")
    }
    return number
  }

  /// Returns the number of latencies in a histogram.
  private func count(_ value: JSONValue?) throws -> Int64 {
    guard case .object(let object)? = value, case .array(let buckets)? = object["buckets"] else {
      throw ProcessProblem(text: "\(String(describing: value)) is no histogram")
    }
    return try buckets.reduce(0) {
      guard case .array(let pair) = $1 else { return $0 }
      return $0 + (try number(pair.last))
    }
  }

  /// Returns the root of a scope as the server has it.
  private func board(_ name: String, of server: Server) async throws -> BenchBoard {
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: name, root: BenchBoard())
    try await client.connect()
    try await client.fetch(scope)
    client.close()
    return try #require(scope.root as? BenchBoard)
  }

  @Test("Each accepted change set is seen by all other clients of its scope, in all processes")
  func counts() async throws {
    let (server, url) = try await makeServer()
    let object = try object(
      await bench(
        url, "--processes", "2", "--clients", "7", "--scopes", "2", "--writers", "2",
        "--in-flight", "3", "--seconds", "1", "--json", "--patience", "120"))
    var (accepted, deliveries): (Int64, Int64) = (0, 0)
    // The scopes have four clients and three; each change set is seen by all of them but its writer.
    for (name, watchers) in [("bench/1", 3), ("bench/2", 2)] as [(String, Int64)] {
      let board = try await board(name, of: server)
      #expect(board.edits > 0 && board.notes.isEmpty, "\(name)")
      accepted += Int64(board.edits)
      deliveries += Int64(board.edits) * watchers
    }
    #expect(try number(object["accepted"]) == accepted)
    #expect(try number(object["deliveries"]) == deliveries)
    #expect(try count(object["untilAccepted"]) == accepted)
    #expect(try count(object["untilSeen"]) == deliveries)
    for name in ["missed", "rejected", "undecided", "unmade", "disconnected", "errors"] {
      #expect(object[name] == 0, "\(name)")
    }
    // A client that hears nothing from a busy server for too long comes again.
    #expect(object["reconnects"] != nil)
    #expect(object["seconds"] == 1 && object["interrupted"] == false)
    #expect(object["problems"] == [:])
    await server.stop()
  }

  @Test("With a rate, writers make exactly so many change sets, of the size that was asked for")
  func rate() async throws {
    let (server, url) = try await makeServer()
    let outcome = try await bench(
      url, "--clients", "3", "--writers", "2", "--rate", "40", "--seconds", "1", "--patience",
      "120", "--size", "5000")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let table = outcome.lines.map { $0.split(separator: " ") }
    #expect(table.contains { $0.starts(with: ["change", "sets", "accepted", "80"]) })
    #expect(table.contains { $0.starts(with: ["deliveries", "160"]) })
    let progress = outcome.errors.split(separator: "\n")
    #expect(progress.count == 2 && progress[1].contains("1 s") && progress[1].contains("sets/s"))
    let log = try FileManager.default.subpathsOfDirectory(atPath: files.path).compactMap {
      try? FileManager.default.attributesOfItem(atPath: "\(files.path)/\($0)")[.size] as? Int
    }
    #expect(log.reduce(0, +) > 80 * 5_000)
    await server.stop()
  }

  @Test("A server that cannot be reached, or refuses, is described in one sentence")
  func refusals() async throws {
    let refusing = Server()
    let url = "ws://127.0.0.1:\(try await refusing.listen())"
    let denied = try await bench(url)
    #expect(denied.status == 1 && denied.lines.isEmpty)
    #expect(denied.errors.hasPrefix("jetstream bench: The server denied scope bench/1: "))
    #expect(denied.errors.split(separator: "\n").count == 1)
    refusing.host(Scope(name: "bench/1", root: Canvas()))
    let other = try await bench(url)
    #expect(other.status == 1 && other.lines.isEmpty)
    #expect(other.errors.hasPrefix("jetstream bench: The server's reply cannot be used: "))
    refusing.authenticate = { _ in throw WireError.notYou("not today") }
    let unknown = try await bench(url)
    #expect(unknown.status == 1)
    #expect(unknown.errors == "jetstream bench: The server denied the session: not today\n")
    await refusing.stop()
    let gone = try await bench(url)
    #expect(gone.status == 1)
    #expect(gone.errors.hasPrefix("jetstream bench: \(url) cannot be used: "))
    let wrong = try await bench(url, "--speed")
    #expect(wrong.status == 2)
    #expect(wrong.errors.hasPrefix("jetstream bench: there is no option --speed.\n"))
    #expect(try await bench("--help").lines.first == "usage: jetstream bench [options] URL")
  }

  @Test("Clients that wait for their scopes give the server's reason")
  func lateness() async throws {
    let server = Server()
    let granted = Scope(name: "bench/1", root: BenchBoard())
    server.resolveScope = { _, name, _ in
      name == granted.name
        ? .success(granted)
        : .failure(.notNow("it is being repaired", retryAfter: .seconds(60)))
    }
    let url = "ws://127.0.0.1:\(try await server.listen())"
    let options = try BenchOptions([
      url, "--clients", "5", "--scopes", "2", "--processes", "1",
    ])
    let clients = BenchClients(BenchPlan(options: options, worker: 1, run: "00000000"))
    let opening = Task { try await clients.open() }
    let sentence =
      "2 of 5 clients have not got their scope in 10 seconds: it is being repaired"
    var turns = Turns()
    while await clients.lateness != sentence { try await turns.next() }
    opening.cancel()
    await #expect(throws: SyncError.cancelled) { try await opening.value }
    await server.stop()
  }

  @Test("A bench whose server goes away prints what it has measured, and fails")
  func lostServer() async throws {
    // A process can be ended by any thread: that of the test may be busy until the bench is over.
    let server = try LogProcess("jetstream", ["serve", "--data", files.path, "--port", "0"])
    let address = try #require(await server.line()?.firstMatch(of: /ws:\/\/[0-9.]+:[0-9]+/))
    let outcome = try await bench(
      String(address.output), "--seconds", "3", "--patience", "120"
    ) { line in
      if line.contains("sets/s") { server.kill() }
    }
    #expect(outcome.status == 1)
    #expect(outcome.lines.contains { $0.hasPrefix("change sets accepted") })
    #expect(outcome.lines.last?.hasPrefix("jetstream bench: not all was measured") == true)
  }

  #if os(Linux)
  /// Returns the processes whose command lines have these words.
  private nonisolated static func processes(with words: String...) -> [pid_t] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { pid_t($0) }.filter { process in
      let data = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
      let line = String(decoding: data, as: UTF8.self)
      return words.allSatisfy { line.contains($0) }
    }
  }

  @Test("A worker that dies is named, and ends the bench and the other workers")
  func death() async throws {
    let (server, url) = try await makeServer()
    let outcome = try await bench(url, "--seconds", "60", "--patience", "120") { line in
      guard line.contains("sets/s") else { return }
      let workers = Self.processes(with: "bench-worker", url, "\"worker\":2")
      for worker in workers { kill(worker, SIGKILL) }
    }
    #expect(outcome.status == 1)
    #expect(outcome.lines.last == "jetstream bench: worker 2 was ended by signal 9.")
    #expect(Self.processes(with: "bench-worker", url).isEmpty)
    await server.stop()
  }

  @Test("An interrupted bench prints what it has measured, and leaves no workers")
  func interruption() async throws {
    let (server, url) = try await makeServer()
    let outcome = try await bench(url, "--seconds", "60", "--patience", "120") { line in
      // On a busy machine, nothing may have been accepted in the first second.
      guard line.contains("sets/s"), !line.contains(" 0 change sets/s") else { return }
      for process in Self.processes(with: "bench\0\(url)") { kill(process, SIGINT) }
    }
    #expect(outcome.status == 130)
    let heading = outcome.lines.first { $0.hasPrefix("10 clients, ") }
    #expect(heading?.hasSuffix(" s, interrupted") == true, "\(outcome.lines)")
    let accepted = outcome.lines.first { $0.hasPrefix("change sets accepted") }
    #expect(accepted?.contains(" 0 ") == false)
    #expect(Self.processes(with: "bench-worker", url).isEmpty)
    let board = try await board("bench/1", of: server)
    #expect(board.notes.isEmpty && board.edits > 0)
    await server.stop()
  }
  #endif
}
