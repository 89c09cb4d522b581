import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

/// A server that lives on an event loop, with the drawing that it offers.
private actor Room {
  private let loop = EventLoop.next()
  private let drawing = Canvas()
  private var server: Server?
  /// The loops on which sessions were judged.
  private var loops: [EventLoop?] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func open(_ directory: String? = nil) async throws -> UInt16 {
    let server = Server()
    let scope = Scope(name: "Canvas", root: drawing)
    if let directory {
      try await server.host(scope, log: FragmentLog(directory))
    } else {
      server.host(scope)
    }
    server.authenticate = { [unowned self] _ in
      noteLoop()
      return nil
    }
    self.server = server
    return try await server.listen()
  }

  private func noteLoop() { loops.append(EventLoop.current) }

  var isOnLoop: Bool { !loops.isEmpty && loops.allSatisfy { $0 === loop } }

  func add(_ label: String) {
    let shape = Shape()
    shape.label = label
    drawing.shapes.append(shape)
  }

  var labels: [String] { drawing.shapes.map(\.label) }

  func close() async throws {
    await server?.stop()
    server = nil
  }
}

@Suite("A server that lives on an event loop", .live, .timeLimit(.minutes(5)))
@MainActor
struct LoopServerTests {
  @Test(
    "Edits travel both ways, judged on the loop, with a log and without", arguments: [false, true])
  func serves(withLog: Bool) async throws {
    let room = Room()
    let directory = try withLog ? TemporaryDirectory() : nil
    let port = try await room.open(directory?.path)
    let (first, second) = (try await Participant(port: port), try await Participant(port: port))
    for number in 0..<200 {
      let shape = Shape()
      shape.label = "\(number)"
      first.canvas.shapes.append(shape)
      first.scope.flush()
    }
    await second.observe(second.canvas, until: { $0.shapes.count == 200 })
    // Of a frame that is too large to be decoded on the loop.
    first.canvas.name = String(repeating: "x", count: 200_000)
    await second.observe(second.canvas, until: { $0.name != nil })
    await room.add("its own")
    await first.observe(first.canvas, until: { $0.shapes.count == 201 })
    #expect(first.canvas.shapes.map(\.label) == (0..<200).map { "\($0)" } + ["its own"])
    #expect(await room.labels == first.canvas.shapes.map(\.label))
    #expect(await room.isOnLoop)
    try await room.close()
    withExtendedLifetime(directory) {}
  }
}
