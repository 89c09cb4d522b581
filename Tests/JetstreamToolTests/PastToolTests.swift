import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

/// The tool as a process, on the logs of a server and of a client of a scope that three people have edited.
@Suite("The past of a shared scope, on the command line", .live, .timeLimit(.minutes(5)))
@MainActor
struct PastToolTests {
  private func run(_ arguments: String...) async throws -> [String] {
    let result = try await LogProcess("jetstream", ["log"] + arguments).finish()
    #expect(result.status == 0 && result.errors.isEmpty, "\(arguments): \(result.errors)")
    return result.lines
  }

  @Test("A peer's text gives no commands to the terminal")
  func controlCharacters() async throws {
    let directory = try TemporaryDirectory()
    let log = try FragmentLog(directory.path)
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await log.restore(into: scope)
    log.record(scope) { Issue.record("\($0)") }
    scope.modify("\u{1b}[31m red\u{9b}31m", author: "A\u{7}da") { canvas.name = "\u{9b}2J" }
    scope.flush()
    try await log.close()
    let lines =
      try await run("blame", directory.path, canvas.uuid.uuidString, "name")
      + run("tail", directory.path) + run("show", directory.path)
    let controls = lines.joined().unicodeScalars.filter {
      $0.properties.generalCategory == .control && $0 != "\t"
    }
    #expect(controls.isEmpty && lines.contains { $0.contains(#"\u001b[31m red\u009b31m"#) })
  }

  /// Has three people edit a scope, of which the server and the first of them keep a log.
  ///
  /// - Returns: the root's UUID.
  private func edit(server serverPath: String, client clientPath: String) async throws -> UUID {
    let canvas = Canvas()
    canvas.name = "at first"
    let hosted = Scope(name: "Canvas", root: canvas)
    let server = Server()
    server.authenticate = { session in
      guard case .object(let params) = session.params, case .string(let name)? = params["user"]
      else { throw WireError.notYou("no user") }
      return Principal("id of \(name)", name: name)
    }
    let serverLog = try FragmentLog(serverPath)
    try await server.host(hosted, log: serverLog)
    let clientLog = try FragmentLog(clientPath, configuration: LogConfiguration(history: .all))
    var people: [(client: Client, scope: Scope, canvas: Canvas, name: String)] = []
    for name in ["Ada", "Grace", "Barbara"] {
      let client = Client(transport: server.makeTransport())
      let scope = Scope(name: "Canvas", root: Canvas())
      if people.isEmpty { try client.fetch(scope, log: clientLog) }
      try await client.connect(params: ["user": .string(name)])
      if people.isEmpty {
        try await client.waitForDownload(of: scope)
      } else {
        try await client.fetch(scope)
      }
      people.append((client, scope, try #require(scope.root as? Canvas), name))
    }
    for round in 0..<3 {
      for person in people {
        for other in people { try await other.client.sync(other.scope) }
        let (canvas, name) = (person.canvas, person.name)
        person.scope.modify("round \(round)", author: name) {
          canvas.name = "\(name)'s, round \(round)"
          canvas.likes += 2
          let shape = Shape()
          shape.label = "by \(name)"
          canvas.shapes.insert(shape, at: 0)
          canvas.selected = shape
        }
        try await person.client.waitForUpload(of: person.scope)
        person.scope.modify("tidy", author: name) {
          canvas.shapes.move(from: 0, to: canvas.shapes.count - 1)
          if round == 1, let old = canvas.shapes.first { canvas.shapes.remove(old) }
          canvas.shapes.last?.parts.append(Shape())
        }
        try await person.client.waitForUpload(of: person.scope)
      }
    }
    for person in people { try await person.client.sync(person.scope) }
    await server.stop()
    people[0].scope.modify("pending", author: "Ada") { people[0].canvas.name = "pending" }
    people[0].scope.flush()
    for person in people { person.client.close() }
    try await clientLog.close()
    try await server.remove(hosted)
    return canvas.uuid
  }

  private func compare(_ path: String, root: UUID, from first: Int) async throws {
    let reader = try LogReader(path)
    let last = try #require(try reader.verify().records?.upperBound)
    #expect(last - first >= 18)
    let then = Scope(name: "Then", root: Canvas())
    for sequence in first...last {
      try reader.restore(into: then, at: sequence)
      #expect(
        try await run("show", "--json", "--at", "\(sequence)", path) == [then.canonicalJSON],
        "\(path) at \(sequence)")
    }
    #expect(try await run("show", path) == run("show", "--at", "\(last)", path))
    for (from, to) in [(first, last), (last, first), (last - 5, last - 2), (first + 3, first + 9)] {
      let found = try await run("diff", "--json", "--from", "\(from)", "--to", "\(to)", path)
      #expect(
        found == [try reader.difference(from: from, to: to).json.canonicalText], "\(from) to \(to)")
      let set = try reader.difference(from: from, to: to, using: then)
      guard case .object(let object) = try JSONValue(parsing: found.joined()),
        case .array(let added)? = object["added"], case .array(let changed)? = object["changed"]
      else {
        Issue.record("no difference: \(found)")
        continue
      }
      let additions = set.fragments.filter { $0.kind == .add }
      #expect(
        Set(added.map(\.canonicalText)) == Set(additions.map(\.json.canonicalText)),
        "\(from) to \(to)")
      #expect(changed.count == set.fragments.count - additions.count, "\(from) to \(to)")
      for case .object(let change) in changed {
        guard case .string(let text)? = change["uuid"],
          case .object(let properties)? = change["properties"]
        else { continue }
        let fragment = set.fragments.first { $0.uuid.wireText == text }
        let after = properties.compactMap { key, value -> (String, JSONValue)? in
          guard case .object(let values) = value else { return nil }
          return values["after"].map { (key, $0) }
        }
        let expected = fragment.map { JSONValue.object($0.properties).canonicalText }
        #expect(JSONValue.object(JSONObject(after)).canonicalText == expected, "\(from) to \(to)")
      }
    }
    for property in ["name", "likes", "shapes"] {
      let writes = try reader.writes(to: property, of: root)
      let lines = try await run("blame", path, root.uuidString, property).map { line in
        line.split(separator: "\t").map(String.init)
      }
      #expect(lines.map(\.first) == writes.map { "\($0.sequence)" }, "\(property)")
      #expect(lines.map { $0[2] } == writes.map { $0.author ?? "-" }, "\(property)")
      #expect(lines.map { $0[4] } == writes.map { $0.message ?? "-" }, "\(property)")
      #expect(Set(writes.compactMap(\.author)) == ["Ada", "Grace", "Barbara"], "\(property)")
    }
  }

  @Test("blame, show and diff say of both logs what the library says")
  func bothLogs() async throws {
    let directory = try TemporaryDirectory()
    let (server, client) = (directory.path + "/server", directory.path + "/ada")
    let root = try await edit(server: server, client: client)
    try await compare(server, root: root, from: 0)
    var cursor = try LogReader(client).read()
    var first = 1
    while let record = try cursor.next(), record.kind != ReplicaRecord.Kind.base {
      first = record.sequence + 1
    }
    try await compare(client, root: root, from: first)
    let lines = try await run("show", client)
    #expect(lines.first?.hasPrefix("Canvas ") == true && lines.contains(#"  name: "pending""#))
    #expect(try await run("show", server).contains(#"  name: "Barbara's, round 2""#))
  }
}
