import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

@testable import JetstreamTool

private final class Note: ModelObject {
  @Property var text = ""
}

private final class Tally: ModelObject {
  @Property(.counter) var count = 0
}

@Suite("The options of jetstream serve")
struct ServeOptionsTests {
  @Test("Every option is read")
  func all() throws {
    let options = try ServeOptions([
      "--data", "scopes", "--host", "::", "--port", "99", "--durability", "0.5", "--history", "20",
      "--schema", "board.json", "--open", "7", "--idle", "3", "--allow-origin", "https://a.org",
      "--allow-origin", "https://b.org", "--allow-host", "proxy", "--log-level", "debug",
    ])
    var expected = ServeOptions()
    (expected.directory, expected.host, expected.port) = ("scopes", "::", 99)
    (expected.durability, expected.history) = (.interval(.milliseconds(500)), .last(20))
    (expected.schema, expected.open, expected.idleTime) = ("board.json", 7, .seconds(3))
    (expected.origins, expected.hosts) = (["https://a.org", "https://b.org"], ["proxy"])
    expected.level = .debug
    #expect(options == expected)
    #expect(try ServeOptions(["--data", "x", "--help"]).isHelp)
    let longest = try ServeOptions(["--data", "x", "--durability", "10"])
    #expect(longest.durability == .interval(.seconds(10)))
  }

  @Test("Origins and hosts in every form in which requests have them are taken")
  func names() throws {
    let origins: Set = [
      "*", "null", "http://localhost:3000", "https://my-app.example.org", "http://[::1]:8080",
      "capacitor://localhost", "https://a.org:80",
    ]
    let hosts: Set = ["my-app.example.org", "board_1", "10.0.0.1", "fe80::1", "::1"]
    let options = try ServeOptions(
      ["--data", "x"] + origins.flatMap { ["--allow-origin", $0] }
        + hosts.flatMap { ["--allow-host", $0] })
    #expect(options.origins == origins && options.hosts == hosts)
  }

  @Test(
    "What is wrong is said in a sentence",
    arguments: [
      ([], "it needs --data and a directory."),
      (["--data"], "--data needs a value."),
      (
        ["--data", "x", "--port", "65536"], "--port needs a number from 0 to 65535, not \"65536\"."
      ),
      (["--data", "x", "--open", "0"], "--open needs a number from 1 to 1000000, not \"0\"."),
      (
        ["--data", "x", "--durability", "-1"],
        "--durability needs each, none or up to 10 seconds, not \"-1\"."
      ),
      (
        ["--data", "x", "--durability", "10.5"],
        "--durability needs each, none or up to 10 seconds, not \"10.5\": clients are told after "
          + "the sync, and would wait for so long."
      ),
      (
        ["--data", "x", "--history", "some"],
        "--history needs all, none or a number of records, not \"some\"."
      ),
      (
        ["--data", "x", "--log-level", "all"],
        "--log-level needs debug, info, warning or error, not \"all\"."
      ),
      (
        ["--data", "x", "--trusted-proxy", "10.0.0.0/8"],
        "--trusted-proxy needs a numeric address, not \"10.0.0.0/8\"."
      ),
      (
        ["--data", "x", "--allow-origin", "https://a.org/"],
        "--allow-origin needs *, null or scheme://host:port without a path, not \"https://a.org/\"."
      ),
      (
        ["--data", "x", "--allow-origin", "a.org"],
        "--allow-origin needs *, null or scheme://host:port without a path, not \"a.org\"."
      ),
      (
        ["--data", "x", "--allow-origin", "https://a.org:443"],
        "browsers leave out the port 443 of --allow-origin https://a.org:443: leave it out, too."
      ),
      (
        ["--data", "x", "--allow-origin", "https://a.org:70000"],
        "--allow-origin needs a port from 1 to 65535, not \"https://a.org:70000\"."
      ),
      (
        ["--data", "x", "--allow-host", "a.org:80"],
        "--allow-host needs a name without scheme, port and path, not \"a.org:80\"."
      ),
      (
        ["--data", "x", "--allow-host", "https://a.org"],
        "--allow-host needs a name without scheme, port and path, not \"https://a.org\"."
      ),
      (
        ["--data", "x", "--allow-host", "*"],
        "--allow-host needs a name without scheme, port and path, not \"*\"."
      ),
      (["x"], "there is no option x."),
    ])
  func wrong(arguments: [String], problem: String) {
    #expect(throws: ServeOptions.Problem(text: problem)) { try ServeOptions(arguments) }
  }
}

/// The command as a process of its own.
@Suite("jetstream serve", .live, .timeLimit(.minutes(5)))
@MainActor
struct ServeCommandTests {
  private let files = try! TemporaryDirectory()

  /// Starts the command, and returns it with the URL that it prints.
  private func serve(
    _ options: [String] = []
  ) async throws -> (process: LogProcess, url: String) {
    let process = try LogProcess(
      "jetstream", ["serve", "--data", files.path, "--port", "0"] + options)
    let line = try #require(await process.line())
    let url = try #require(line.firstMatch(of: /ws:\/\/[0-9.]+:[0-9]+/))
    return (process, String(url.output))
  }

  private func join<Root: ModelObject>(
    _ name: String, _ root: Root, _ url: String
  ) async throws -> (client: Client, scope: Scope) {
    let client = Client(url: url)
    let scope = Scope(name: name, root: root)
    try await client.connect()
    try await client.fetch(scope)
    return (client, scope)
  }

  @Test("With a file of keys, it lets in only those who have one, and some of them only read")
  func keys() async throws {
    let file = files.path + "/keys"
    let (ann, bob) = ("ann-0123456789abcdef", "bob-0123456789abcdef")
    try "# users\n\(ann) ann\n\n\(bob) bob read-only\n".write(
      toFile: file, atomically: true, encoding: .utf8)
    let (process, url) = try await serve(["--keys", file])
    let note = Note()
    let (writer, scope) = try await join("Notes", note, url + "/?x-jetstream-key=" + ann)
    note.text = "from ann"
    try await writer.sync(scope)
    let reader = Client(url: url)
    try await reader.connect(params: ["key": .string(bob)])
    let copy = Note()
    let read = Scope(name: "Notes", root: copy)
    try await reader.fetch(read)
    #expect(copy.text == "from ann")
    copy.text = "from bob"
    try await reader.sync(read)
    #expect(copy.text == "from ann" && read.conflicts.items.count == 1)
    for params: JSONValue in [[:], ["key": "ann"], ["key": 5]] {
      let stranger = Client(url: url)
      await #expect(throws: (any Error).self) { try await stranger.connect(params: params) }
      stranger.close()
    }
    writer.close()
    reader.close()
    process.stop()
    #expect(try await process.finish().status == 0)
  }

  @Test("A client that may only read makes no scope, also if all have the schema of a file")
  func readerOfNewScope() async throws {
    let (keys, schema) = (files.path + "/keys", files.path + "/note.json")
    let (ann, bob) = ("ann-0123456789abcdef", "bob-0123456789abcdef")
    try "\(ann) ann\n\(bob) bob read-only\n".write(
      toFile: keys, atomically: true, encoding: .utf8)
    try ScopeSchema(of: Note.self).json.text.write(
      toFile: schema, atomically: true, encoding: .utf8)
    let (process, url) = try await serve(["--keys", keys, "--schema", schema])
    let reader = Client(url: url)
    try await reader.connect(params: ["key": .string(bob)])
    let copy = Note()
    let read = Scope(name: "Notes", root: copy)
    let fetching = Task { try await reader.fetch(read) }
    try await wait {
      guard case .refused(let reason)? = reader.syncState(of: read)?.stall else { return false }
      #expect(reason == "There is no such scope before a client that may change it has fetched it")
      return true
    }
    let scopes = try? FileManager.default.contentsOfDirectory(atPath: files.path + "/scopes")
    #expect(scopes ?? [] == [])
    // Once the scope is there, the reader gets it.
    let note = Note()
    let (writer, scope) = try await join("Notes", note, url + "/?x-jetstream-key=" + ann)
    note.text = "from ann"
    try await writer.sync(scope)
    try await fetching.value
    #expect(copy.text == "from ann")
    writer.close()
    reader.close()
    process.stop()
    #expect(try await process.finish().status == 0)
  }

  @Test("The keys may come through a pipe")
  func keysFromPipe() async throws {
    let pipe = files.path + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    async let written: Void = write("ann-0123456789abcdef ann\n", to: pipe)
    let (process, url) = try await serve(["--keys", pipe])
    try await written
    let (client, _) = try await join(
      "Notes", Note(), url + "/?x-jetstream-key=ann-0123456789abcdef")
    client.close()
    process.stop()
    #expect(try await process.finish().status == 0)
  }

  /// Writes into a named pipe, once it is opened on the other side.
  private func write(_ text: String, to path: String) async throws {
    var descriptor: Int32 = -1
    try await wait {
      descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      return descriptor >= 0
    }
    let pipe = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try ChildProcess.write(Data(text.utf8), to: pipe)
  }

  @Test("A file that cannot be read is named with the system's reason, or its first bad line")
  func unreadableFiles() async throws {
    let file = files.path + "/keys"
    try Data("0123456789abcdef ann\n0123456789abcde\u{FF} b\n".utf8.map { $0 == 0xBF ? 0xFF : $0 })
      .write(to: URL(fileURLWithPath: file))
    for (option, path, problem) in [
      ("--keys", files.path + "/none", "cannot be read: No such file or directory."),
      ("--keys", files.path, "cannot be read: Is a directory."),
      ("--schema", files.path + "/none", "cannot be read: No such file or directory."),
      ("--keys", file, "line 2 is not UTF-8."),
    ] {
      let result = try await LogProcess(
        "jetstream", ["serve", "--data", files.path + "/data", option, path]
      ).finish()
      #expect(result.status == 3 && result.errors.hasSuffix(problem + "\n"), "\(result)")
      #expect(result.errors.contains(path))
    }
  }

  @Test("One request to stop that comes as two signals is one request")
  func twoSignals() async throws {
    let (process, url) = try await serve()
    let (client, _) = try await join("Notes", Note(), url)
    process.stopByTwoSignals()
    let (lines, _, status) = try await process.finish()
    #expect(lines.last == "Stopped." && status == 0)
    client.close()
  }

  @Test(
    "A file of keys that cannot be used is refused with its line",
    arguments: [
      ("", "it has no key."), ("# nothing\n", "it has no key."),
      ("short ann", "line 1: the key should have at least 16 characters."),
      ("\n0123456789abcdef", "line 2: it should be a key, a name, and read-only or nothing."),
      (
        "0123456789abcdef ann admin",
        "line 1: it should be a key, a name, and read-only or nothing."
      ),
      ("0123456789abcdef ann\n0123456789abcdef bob", "line 2: another line has the same key."),
      (
        "# users\r\n0123456789abcdef ann\r\n0123456789abcdef bob\r\n",
        "line 3: another line has the same key."
      ),
    ])
  nonisolated func badKeys(text: String, problem: String) {
    #expect(throws: ServeKeys.Problem(text: problem)) { try ServeKeys(text) }
  }

  @Test("Apps of different classes use it at once; it is killed, started again, and asked to stop")
  func twoApps() async throws {
    for round in 1...3 {
      let (process, url) = try await serve()
      let (note, tally) = (Note(), Tally())
      let (first, notes) = try await join("Notes", note, url)
      let (second, tallies) = try await join("Tally", tally, url)
      #expect(note.text == (round == 1 ? "" : "round \(round - 1)") && tally.count == round - 1)
      note.text = "round \(round)"
      tally.count += 1
      try await first.sync(notes)
      try await second.sync(tallies)
      if round == 2 {
        process.stop()
        let (lines, errors, status) = try await process.finish()
        #expect(lines.last == "Stopped." && status == 0, "\(lines) \(errors)")
      } else {
        process.kill()
        _ = try await process.finish()
      }
      first.close()
      second.close()
    }
  }

  @Test("A second process on the same directory is refused, and so is a port that is taken")
  func refused() async throws {
    let (process, url) = try await serve()
    let second = try await LogProcess("jetstream", ["serve", "--data", files.path, "--port", "0"])
      .finish()
    #expect(second.status == 3)
    #expect(
      second.errors
        == "jetstream serve: another process serves the scopes in \(files.path).\n")
    let other = try TemporaryDirectory()
    let port = String(url.split(separator: ":").last ?? "")
    let third = try await LogProcess("jetstream", ["serve", "--data", other.path, "--port", port])
      .finish()
    #expect(third.status == 3 && third.errors.contains("port \(port) on 127.0.0.1 is taken"))
    process.kill()
    _ = try await process.finish()
  }

  @Test("It goes on while its output is not read")
  func unreadOutput() async throws {
    let (process, url) = try await serve()
    // Each request is refused with a warning that names the origin, and all of them take more than a pipe does.
    let origin = "https://" + String(repeating: "a", count: 12_000) + ".example"
    for _ in 0..<20 {
      await #expect(throws: WebSocketError.handshakeRefused(status: 403)) {
        _ = try await WebSocketClient.connect(
          to: url, headers: [("Origin", origin)], configuration: .patient)
      }
    }
    process.stop()
    let (lines, errors, status) = try await process.finish()
    #expect(lines.last == "Stopped." && status == 0)
    #expect(errors.hasPrefix("20") && errors.contains("refused 127.0.0.1: Pages of https://aaa"))
  }

  @Test("A schema from a file is the one of all scopes")
  func schema() async throws {
    let file = files.path + "/note.json"
    try ScopeSchema(of: Note.self).json.text.write(toFile: file, atomically: true, encoding: .utf8)
    let (process, url) = try await serve(["--schema", file])
    let note = Note()
    let (client, scope) = try await join("A", note, url)
    note.text = "fits"
    try await client.sync(scope)
    client.close()
    process.kill()
    _ = try await process.finish()
    let broken = files.path + "/broken.json"
    try "{}".write(toFile: broken, atomically: true, encoding: .utf8)
    let wrong = try await LogProcess(
      "jetstream", ["serve", "--data", files.path, "--schema", broken]
    ).finish()
    #expect(wrong.status == 3 && wrong.errors.contains("broken.json is no schema"), "\(wrong)")
  }

  /// The additions that clients have made to the counters of scopes.
  @MainActor
  private final class Additions {
    /// Those that the server has accepted, by scope.
    var accepted: [String: Int] = [:]
    /// Those of which the outcome is not known.
    var unknown: [String: Int] = [:]
  }

  @Test(
    "What was accepted is there after the process was killed while scopes were opened and closed")
  func killed() async throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    let additions = Additions()
    for round in 0..<6 {
      let (process, url) = try await serve(["--open", "2", "--idle", "0"])
      // Each client uses one scope after the other, so that they are opened and closed all the time.
      let goal = additions.accepted.values.reduce(0, +) + Int.random(in: 1...12, using: &random)
      let clients = (0..<3).map { number in
        Task { await add(to: url, from: number, additions) }
      }
      try await wait { additions.accepted.values.reduce(0, +) >= goal }
      process.kill()
      _ = try await process.finish()
      for client in clients {
        client.cancel()
        await client.value
      }
      let (next, nextURL) = try await serve(["--open", "8"])
      for (name, count) in additions.accepted {
        let tally = Tally()
        let (client, _) = try await join(name, tally, nextURL)
        let most = count + additions.unknown[name, default: 0]
        #expect((count...most).contains(tally.count), "round \(round), seed \(seed)")
        additions.accepted[name] = tally.count
        client.close()
      }
      additions.unknown = [:]
      next.stop()
      #expect(try await next.finish().status == 0)
    }
  }

  private func add(to url: String, from number: Int, _ additions: Additions) async {
    let client = Client(url: url)
    defer { client.close() }
    guard (try? await client.connect()) != nil else { return }
    var turn = number
    while !Task.isCancelled {
      turn += 1
      let name = "Tally \(turn % 6)"
      let tally = Tally()
      let scope = Scope(name: name, root: tally)
      guard (try? await client.fetch(scope)) != nil else { return }
      tally.count += 1
      additions.unknown[name, default: 0] += 1
      guard (try? await client.sync(scope)) != nil else { return }
      additions.unknown[name, default: 0] -= 1
      additions.accepted[name, default: 0] += 1
      _ = try? client.leave(scope)
    }
  }
}
