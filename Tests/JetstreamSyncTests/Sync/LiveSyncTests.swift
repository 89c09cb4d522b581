import Jetstream
import JetstreamServer
import Pacing
import Testing

@Suite("A server and clients over real sockets", .live, .timeLimit(.minutes(5)))
@MainActor
struct LiveSyncTests {
  /// Hosts a drawing on a server, and lets two participants fetch it.
  private func share(
    _ drawing: Canvas
  ) async throws -> (server: Server, port: UInt16, first: Participant, second: Participant) {
    let server = Server()
    server.host(Scope(name: "Canvas", root: drawing))
    let port = try await server.listen()
    return (
      server, port, try await Participant(port: port), try await Participant(port: port)
    )
  }

  @Test("An edit in one client fires an observer in another")
  func editTravels() async throws {
    let drawing = Canvas()
    drawing.shapes.append(Shape())
    let (server, _, first, second) = try await share(drawing)
    #expect(first.canvas.shapes.count == 1)

    first.canvas.shapes[0].x = 42
    await second.observe(second.canvas.shapes[0], until: { $0.x == 42 })
    #expect(drawing.shapes[0].x == 42)

    let made = Shape()
    made.label = "from the second"
    second.canvas.shapes.append(made)
    await first.observe(first.canvas, until: { $0.shapes.count == 2 })
    #expect(first.canvas.shapes[1].label == "from the second")
    #expect(first.canvas.shapes[1].uuid == made.uuid)
    await server.stop()
  }

  @Test("Entries of a dictionary travel, and so does their removal")
  func entriesTravel() async throws {
    let drawing = Canvas()
    let (server, port, first, second) = try await share(drawing)
    for number in 0..<300 {
      let shape = Shape()
      shape.label = "\(number)"
      first.canvas.named["shape \(number)"] = shape
    }
    await second.observe(second.canvas, until: { $0.named.count == 300 })
    #expect(second.canvas.named["shape 7"]?.label == "7")
    second.canvas.named["shape 7"] = nil
    second.canvas.named["shape 8"] = second.canvas.named["shape 9"]
    await first.observe(first.canvas, until: { $0.named.count == 299 })
    #expect(first.canvas.named["shape 8"] === first.canvas.named["shape 9"])
    #expect(drawing.named["shape 7"] == nil)
    let third = try await Participant(port: port)
    #expect(third.canvas.named.map(\.key) == first.canvas.named.map(\.key))
    await server.stop()
  }

  @Test("A client's status is told when it changes, and only then")
  func tellsStatus() async throws {
    let server = Server()
    let port = try await server.listen()
    let client = Client(url: "ws://127.0.0.1:\(port)")
    var told: [ClientStatus] = []
    client.onStatusChange.listen { told.append($0) }
    try await client.connect()
    client.close()
    // While a connection takes too long, the client waits and connects again.
    #expect(told.first == .connecting && told.suffix(2) == [.online, .offline])
    #expect(
      zip(told, told.dropFirst()).allSatisfy { $0 != $1 } && told.count { $0 == .online } == 1)
    await server.stop()
  }

  @Test("A scope that is larger than any message may be is fetched")
  func largeScope() async throws {
    let drawing = Canvas()
    for number in 0..<170 {
      let shape = Shape()
      shape.label = String(repeating: "\(number % 10)", count: 100_000)
      drawing.shapes.append(shape)
    }
    let server = Server()
    server.host(Scope(name: "Canvas", root: drawing))
    let port = try await server.listen()
    let one = try await Participant(port: port)
    #expect(one.canvas.shapes.map(\.uuid) == drawing.shapes.map(\.uuid))
    #expect(one.canvas.shapes.map(\.label) == drawing.shapes.map(\.label))
    await server.stop()
  }

  @Test(
    "A value that is larger than any message may be is taken back, and what is behind it arrives")
  func largeValue() async throws {
    let drawing = Canvas()
    let server = Server()
    server.host(Scope(name: "Canvas", root: drawing))
    let port = try await server.listen()
    let one = try await Participant(port: port)
    var words: [String] = []
    one.client.onDiagnostic.listen { words.append("\($0)") }
    one.canvas.name = String(repeating: "x", count: 17 << 20)
    one.scope.flush()
    one.canvas.likes = 3
    try await one.client.waitForUpload(of: one.scope)
    #expect(one.canvas.name == nil && drawing.name == nil && drawing.likes == 3)
    #expect(one.scope.conflicts.items.map(\.property) == ["name"])
    #expect(words.isEmpty, "the connection stays")
    await server.stop()
  }

  @Test("A lost socket changes nothing")
  func survivesCuts() async throws {
    let (server, _, first, second) = try await share(Canvas())
    for round in 0..<20 {
      let shape = Shape()
      shape.label = "\(round)"
      first.canvas.shapes.append(shape)
      first.scope.flush()
      first.client.cutConnection()
      await second.observe(second.canvas, until: { $0.shapes.count == round + 1 })
    }
    await first.settle()
    #expect(first.scope.canonicalJSON == second.scope.canonicalJSON)
    #expect(first.canvas.shapes.map(\.label) == (0..<20).map(String.init))
    await server.stop()
  }
}
