import Foundation
import Jetstream
import JetstreamServer
import Testing

/// The command as a process, on the directory of `jetstream serve`.
@Suite("jetstream log new-epoch", .live, .timeLimit(.minutes(5)))
@MainActor
struct NewEpochToolTests {
  private let files = try! TemporaryDirectory()
  private var data: String { files.path + "/data" }
  private var log: String { data + "/scopes/notes" }

  private func serve() async throws -> (process: LogProcess, url: String) {
    let process = try LogProcess("jetstream", ["serve", "--data", data, "--port", "0"])
    let line = try #require(await process.line())
    let url = try #require(line.firstMatch(of: /ws:\/\/[0-9.]+:[0-9]+/))
    return (process, String(url.output))
  }

  private func stop(_ process: LogProcess) async throws {
    process.stop()
    #expect(try await process.finish().status == 0)
  }

  private func newEpoch(_ arguments: String...) async throws -> LogProcess.End {
    try await LogProcess("jetstream", ["log", "new-epoch"] + arguments).finish()
  }

  /// A client, which keeps a log if it is given a path.
  @MainActor
  private final class Visitor {
    let client: Client
    let canvas = Canvas()
    let scope: Scope
    private let log: FragmentLog?
    var losses = 0

    init(_ url: String, keeping path: String? = nil) async throws {
      client = Client(url: url)
      scope = Scope(name: "notes", root: canvas)
      log = try path.map { try FragmentLog($0) }
      client.onHistoryLoss.listen(self) { me, _ in me.losses += 1 }
      if let log { try client.fetch(scope, log: log) }
      try await client.connect()
      if log == nil {
        try await client.fetch(scope)
      } else {
        try await client.waitForDownload(of: scope)
      }
    }

    /// Makes so many change sets, and waits until the server has accepted each.
    func change(_ count: Int) async throws {
      for _ in 0..<count {
        canvas.shapes.append(Shape())
        try await client.sync(scope)
      }
    }

    func close() async throws {
      client.close()
      try await log?.close()
    }
  }

  /// Has a client that knows more than the server come back after another one has gone on.
  private func goOn(with count: Int) async throws {
    let (process, url) = try await serve()
    let other = try await Visitor(url)
    #expect(other.canvas.shapes.count == count)
    try await other.change(4)
    let visitor = try await Visitor(url, keeping: files.path + "/visitor")
    #expect(visitor.losses == 1 && visitor.canvas.shapes.count == count + 4)
    #expect(visitor.scope.canonicalJSON == other.scope.canonicalJSON)
    try await visitor.close()
    try await other.close()
    try await stop(process)
  }

  @Test("A backup that was put in place is another history for a client that knows more")
  func backup() async throws {
    let (process, url) = try await serve()
    let visitor = try await Visitor(url, keeping: files.path + "/visitor")
    try await visitor.change(3)
    let copy = files.path + "/copy"
    try FileManager.default.copyItem(atPath: data, toPath: copy)
    try FileManager.default.removeItem(atPath: copy + "/scopes/notes/lock")
    try await visitor.change(2)
    try await visitor.close()
    try await stop(process)
    try FileManager.default.removeItem(atPath: data)
    try FileManager.default.moveItem(atPath: copy, toPath: data)
    // A scope that could not be hosted leaves a log like these.
    let empty = try FragmentLog(data + "/scopes/empty")
    try await empty.close()
    let begun = try FragmentLog(data + "/scopes/begun")
    try await begun.beginEpoch()
    try await begun.close()
    let result = try await newEpoch(data)
    #expect(result.lines == ["\(log): a new epoch begins behind record 3."])
    #expect(result.status == 0 && result.errors.isEmpty)
    try await goOn(with: 3)
  }

  @Test("A log that has lost its end goes on in a new epoch if that is accepted")
  func lostEnd() async throws {
    let (process, url) = try await serve()
    let visitor = try await Visitor(url, keeping: files.path + "/visitor")
    try await visitor.change(3)
    try await visitor.close()
    try await stop(process)
    let segment = URL(fileURLWithPath: log + "/log-000000000001.jsonl")
    let bytes = try Data(contentsOf: segment)
    let end = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n"))) + 1
    try bytes.prefix(end).write(to: segment)
    for directory in [data, log] {
      let refused = try await newEpoch(directory)
      #expect(refused.status == 1 && refused.lines.isEmpty)
      #expect(
        refused.errors.contains("3 records were known to be durable, but only 2 are there")
          && refused.errors.contains("--accept-loss"), "\(refused.errors)")
    }
    let result = try await newEpoch("--accept-loss", log)
    #expect(result.status == 0 && result.errors.isEmpty)
    #expect(result.lines.count == 2 && result.lines[0].hasPrefix("\(log): lost: "))
    #expect(result.lines.last == "\(log): a new epoch begins behind record 2.")
    try await goOn(with: 2)
  }

  /// The number of epochs that were begun in a log.
  private func epochs(in path: String) throws -> Int {
    var cursor = try LogReader(path).read()
    var count = 0
    while let record = try cursor.next() {
      if record.kind.rawValue == "epoch" { count += 1 }
    }
    return count
  }

  @Test("All logs get a new epoch, and nothing else, if what is done cannot be told")
  func output() async throws {
    let (process, url) = try await serve()
    let visitor = try await Visitor(url)
    try await visitor.change(2)
    try await visitor.close()
    try await stop(process)
    let other = data + "/scopes/other"
    try FileManager.default.copyItem(atPath: log, toPath: other)
    var redirections = [("<&- >&- 2>&-", 0 as Int32), (">&-", 0)]
    #if os(Linux)
    redirections.append((">/dev/full", 3))
    #endif
    for (place, (redirection, status)) in redirections.enumerated() {
      let process = try LogProcess(
        "jetstream", ["log", "new-epoch", data], redirection: redirection)
      #expect(try await process.finish().status == status, "\(redirection)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: data + "/lock")).isEmpty)
      for path in [log, other] {
        #expect(try LogReader(path).verify().isWhole, "\(redirection)")
        #expect(try epochs(in: path) == place + 1, "\(redirection)")
      }
    }
  }

  @Test("It begins no epoch while a server uses the log, and in none that is not a server's")
  func refused() async throws {
    let (process, url) = try await serve()
    let visitor = try await Visitor(url, keeping: files.path + "/visitor")
    try await visitor.change(1)
    var result = try await newEpoch(data)
    #expect(result.status == 3 && result.lines.isEmpty)
    #expect(
      result.errors == "jetstream log: another process serves the scopes in \(data).\n")
    try await visitor.close()
    try await stop(process)
    result = try await newEpoch(files.path + "/visitor")
    #expect(result.status == 3 && result.errors.contains("is not the log of a server"))
    for directory in [files.path, files.path + "/none"] {
      result = try await newEpoch(directory)
      #expect(result.status == 3 && !result.errors.isEmpty)
    }
    #expect(!FileManager.default.fileExists(atPath: files.path + "/none"))
    #expect(!FileManager.default.fileExists(atPath: files.path + "/lock"))
    let (next, nextURL) = try await serve()
    // No client has fetched the scope, so its log is not open.
    result = try await newEpoch(log)
    #expect(result.status == 3 && result.errors.contains("another process serves the scopes in"))
    #expect(try epochs(in: log) == 0)
    let again = try await Visitor(nextURL, keeping: files.path + "/visitor")
    #expect(again.losses == 0 && again.canvas.shapes.count == 1)
    try await again.close()
    try await stop(next)
  }
}
