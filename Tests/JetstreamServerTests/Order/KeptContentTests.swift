import Jetstream
import JetstreamServer
import Testing

@Suite(
  "Content that a scope has before it is fetched, and that is kept", .live, .timeLimit(.minutes(5)))
@MainActor
struct KeptContentTests {
  private let directory: TemporaryDirectory
  private let server: Server
  private let canvas = Canvas()
  private let hosted: Scope

  init() throws {
    directory = try TemporaryDirectory()
    server = Server()
    hosted = Scope(name: "Canvas", root: canvas)
    server.host(hosted)
  }

  /// A scope that an app has filled before it asks for a server's.
  private func filled() -> Scope {
    let own = Canvas()
    let scope = Scope(name: "Canvas", root: own)
    own.name = "mine"
    own.likes = 3
    for at in 0..<2 {
      let shape = Shape()
      shape.label = "mine \(at)"
      shape.parts = [Shape()]
      own.shapes.append(shape)
    }
    own.selected = own.shapes[1]
    scope.flush()
    return scope
  }

  private func root(of scope: Scope) throws -> Canvas { try #require(scope.root as? Canvas) }

  private func settle(_ scope: Scope, of client: Client) async throws {
    try await client.waitForDownload(of: scope)
    try await client.waitForUpload(of: scope)
    try await client.sync(scope)
  }

  @Test("It is one pending change set, and stands beside what the server has")
  func joined() async throws {
    canvas.name = "theirs"
    canvas.likes = 5
    canvas.shapes = [Shape()]
    hosted.flush()
    let scope = filled()
    let own = try root(of: scope)
    let models = own.shapes.map(\.self)
    let before = scope.canonicalJSON
    let client = Client(transport: server.makeTransport())
    var told = 0
    own.observeTreeChange(client) { _ in told += 1 }
    let log = try FragmentLog(directory.path + "/a")
    try client.fetch(scope, log: log, keepingContent: true)
    #expect(client.pendingCount == 1 && scope.canonicalJSON == before)
    scope.flush()
    #expect(told == 0, "Nothing has changed yet.")
    try await client.connect()
    try await settle(scope, of: client)
    #expect(scope.canonicalJSON == hosted.canonicalJSON)
    #expect(canvas.name == "mine" && canvas.likes == 8, "Values replace, counters add.")
    #expect(canvas.shapes.count == 3 && canvas.selected?.label == "mine 1")
    #expect(canvas.shapes.allSatisfy { $0.label.isEmpty || $0.parts.count == 1 })
    #expect(models.allSatisfy { $0.scope === scope }, "They are the same objects as before.")
    client.close()
    try await log.records.close()
  }

  @Test("It is kept over restarts before the first connection, and taken once")
  func restarts() async throws {
    let path = directory.path + "/a"
    let first = filled()
    let before = first.canonicalJSON
    for round in 0..<3 {
      let scope = round == 0 ? first : Scope(name: "Canvas", root: Canvas())
      let client = Client(transport: server.makeTransport())
      let log = try FragmentLog(path)
      try client.fetch(scope, log: log, keepingContent: true)
      #expect(client.pendingCount == 1 && scope.count == 5)
      #expect(round > 0 || scope.canonicalJSON == before)
      client.close()
      try await log.records.close()
    }
    let last = filled()
    let client = Client(transport: server.makeTransport())
    let log = try FragmentLog(path)
    try client.fetch(last, log: log, keepingContent: true)
    try await client.connect()
    try await settle(last, of: client)
    #expect(
      canvas.shapes.count == 2 && canvas.likes == 3, "The log has the scope; its content counts.")
    #expect(last.canonicalJSON == hosted.canonicalJSON)
    client.close()
    try await log.records.close()
  }

  @Test(
    "Without a log it is sent, too, and replaced unless it is asked for", arguments: [true, false])
  func withoutLog(isKept: Bool) async throws {
    canvas.shapes = [Shape()]
    let scope = filled()
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    try await client.fetch(scope, keepingContent: isKept)
    try await settle(scope, of: client)
    #expect(scope.canonicalJSON == hosted.canonicalJSON)
    #expect(canvas.shapes.count == (isKept ? 3 : 1) && canvas.name == (isKept ? "mine" : nil))
    client.close()
  }
}

@Suite("A change set of all content")
struct ContentSetTests {
  @Test("It makes an empty scope what the first one is, and undoing it empties it")
  func applied() throws {
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    let shape = Shape()
    shape.parts = [Shape(), shape]
    canvas.shapes = [shape, Shape()]
    canvas.selected = shape
    canvas.hidden = [canvas.shapes[1]]
    canvas.likes = 2
    // Waits to become a change set, and is in the one that says all.
    canvas.name = "later"
    canvas.shapes.append(Shape())
    var sets: [ChangeSet] = []
    let token = scope.onChanges.listen { sets.append($0) }
    scope.collectContent()
    scope.flush()
    #expect(sets.count == 1)
    let other = Scope(name: "Canvas", root: Canvas(), ticker: .manual())
    let fragments = sets[0].fragments.map { fragment in
      var fragment = fragment
      if fragment.uuid == canvas.uuid, let root = other.root { fragment.uuid = root.uuid }
      return fragment
    }
    #expect(other.apply(fragments).isComplete)
    let expected = scope.canonicalJSON.replacing(
      canvas.uuid.uuidString.lowercased(), with: other.root!.uuid.uuidString.lowercased())
    #expect(
      try JSONValue(parsing: other.canonicalJSON) == JSONValue(parsing: expected),
      "The order of the models aside.")
    #expect(scope.apply(sets[0].undo).isComplete)
    #expect(scope.count == 1 && canvas.name == nil && canvas.likes == 0 && canvas.shapes.isEmpty)
    token.cancel()
  }
}
