import Foundation
import Jetstream
import JetstreamWebSocket
import Pacing
import Testing

@testable import JetstreamServer

/// A server whose process is short of memory refuses what takes more, and goes on with the rest.
@Suite("Memory pressure", .paced)
struct MemoryPressureTests {
  private static let limits = {
    var limits = ServerLimits()
    limits.residentBytes = 16 << 20
    return limits
  }()
  private static let (much, less, little) = ((16 << 20) + 1, (15 << 20) + 1, 15 << 20)

  private static func world(unknown: UnknownContent = .reject) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.limits = limits
    let world = InMemoryWorld(configuration: configuration, unknown: unknown)
    world.canvas.shapes.append(contentsOf: [Shape(), Shape()])
    return world
  }

  private static func client(in world: InMemoryWorld) -> WorldClient {
    let client = world.addClient()
    client.join()
    world.settle()
    return client
  }

  /// Has a server look at its memory twice.
  private static func press(_ engine: ServerEngine) {
    for _ in 0..<2 { #expect(engine.noteMemory(much)) }
  }

  @Test("Pressure begins with the second look above the limit, and ends a sixteenth below")
  func hysteresis() {
    var pressure = MemoryPressure()
    let looks = [1600, 1601, 1600, 1601, 1601, 1501, 1500, 1600, 1601, 1501, 1601, 1602]
    let states = looks.map { bytes in
      _ = pressure.note(bytes, of: 1600)
      return pressure.isHigh
    }
    #expect(
      states == [
        false, false, false, false, true, true, false, false, false, false, false, true,
      ])
    #expect(pressure.note(1501, of: 1600) && !pressure.note(1500, of: 1600))
  }

  @Test("Additions are rejected, and changes, moves and removals are not")
  func additions() {
    let world = Self.world()
    let (ann, ben) = (Self.client(in: world), Self.client(in: world))
    Self.press(world.server)
    ann.canvas.shapes.append(Shape())
    world.settle()
    let reason = "The server is short of memory"
    #expect(ann.rejections == ["Shape: \(reason)", "Canvas: \(reason)"])
    guard case .rejected(let error)? = ann.scope.conflicts.items.first?.reason else {
      Issue.record("The addition is no conflict.")
      return
    }
    #expect(error.type == "short-of-memory" && error.retryAfter == .seconds(5))
    #expect(world.canvas.shapes.count == 2 && ann.canvas.shapes.count == 2)
    ben.canvas.shapes[0].label = "changed"
    ben.canvas.shapes.move(from: 0, to: 1)
    ben.canvas.selected = ben.canvas.shapes[1]
    world.settle()
    ben.canvas.selected = nil
    ben.canvas.shapes.remove(at: 0)
    world.settle()
    #expect(world.canvas.shapes.map(\.label) == ["changed"])
    #expect(ann.canvas.shapes.map(\.label) == ["changed"] && ben.rejections.isEmpty)
    #expect(world.limitHits == [.residentBytes: 1])

    #expect(world.server.noteMemory(Self.less))
    #expect(!world.server.noteMemory(Self.little))
    _ = ann.scope.retry(Array(ann.scope.conflicts.items))
    world.settle()
    #expect(world.canvas.shapes.count == 2 && ben.canvas.shapes.count == 2)
    #expect(
      world.log.filter { $0.contains("MiB of memory") }.map { $0.contains("are refused") }
        == [true, false])
  }

  @Test("Longer values, collections and dictionaries are rejected, and shorter ones are not")
  func longerValues() {
    let world = Self.world(unknown: .keep)
    let (canvas, shape) = (world.canvas, world.canvas.shapes[0])
    let long = String(repeating: "x", count: 100)
    shape.label = long
    shape.corners = [1: shape]
    world.scope.flush()
    let peer = RawPeer.joined(world, protocol: 2)
    func errors(_ fragments: SyncFragment...) -> Set<String?> {
      Set(peer.submit(fragments).map { $0.error?.type })
    }
    func write(_ properties: JSONObject) -> SyncFragment {
      SyncFragment(.change, uuid: shape.uuid, className: "Shape", properties: properties)
    }
    func edit(_ list: String, _ operation: PropertyOperation) -> SyncFragment {
      SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
        operations: [list: [operation]])
    }
    let reference = JSONValue.string(shape.uuid.wireText)
    #expect(errors(write(["note": "short"])) == [nil])
    Self.press(world.server)
    let refused: Set<String?> = ["short-of-memory"]
    #expect(errors(write(["label": .string(long + "x")])) == refused)
    #expect(errors(write(["tags": .array((0..<100).map { .integer($0) })])) == refused)
    #expect(errors(write(["corners/2": reference])) == refused)
    #expect(errors(write(["note": .string(long)])) == refused)
    #expect(errors(write(["other": .null])) == refused)
    #expect(errors(edit("hidden", .insert(shape.uuid, .end))) == refused)
    #expect(errors(edit("unheardOf", .insert(UUID(), .end))) == refused)

    #expect(errors(write(["label": .string(long.uppercased()), "x": 3, "tags": [1, 2]])) == [nil])
    #expect(errors(write(["corners/2": reference, "corners/1": .null])) == [nil])
    #expect(errors(write(["note": "corrected"])) == [nil])
    let move = [edit("hidden", .insert(shape.uuid, .end)), edit("shapes", .remove(shape.uuid))]
    #expect(errors(move[0], move[1]) == [nil])
    // A change set may make one value longer by as much as it makes another one shorter.
    let half = JSONValue.string(String(repeating: "x", count: 90))
    #expect(errors(write(["label": "", "note": half])) == [nil])
    // A shorter value counts once, and only if the server applies it.
    shape.label = long
    world.scope.flush()
    let longer = write(["note": .string(String(repeating: "x", count: 150))])
    #expect(errors(write(["label": ""]), write(["label": ""]), longer) == refused)
    #expect(errors(write(["label": "", "x": "no number"]), longer) == refused)
    #expect(
      errors(
        edit("hidden", .remove(shape.uuid)), edit("hidden", .insert(shape.uuid, .end)),
        edit("shapes", .insert(shape.uuid, .end))) == refused)
    #expect(canvas.hidden == [shape] && shape.corners == [2: shape] && shape.x == 3)
    #expect(world.limitHits == [.residentBytes: 10])
  }

  @Test("A model that comes back is an addition as well")
  func comesBack() {
    let world = Self.world()
    let (ann, ben) = (Self.client(in: world), Self.client(in: world))
    let shape = ben.canvas.shapes[0]
    ann.canvas.shapes.remove(at: 0)
    ann.scope.flush()
    ben.canvas.selected = shape
    Self.press(world.server)
    world.settle()
    #expect(world.canvas.selected == nil && ben.canvas.selected == nil)
    #expect(world.limitHits == [.residentBytes: 1])
  }

  @Test(
    "A new session is refused, and asks again; one that there is comes back on a new connection")
  func sessions() {
    let world = Self.world()
    let ann = Self.client(in: world)
    Self.press(world.server)
    let peer = RawPeer(world)
    #expect(peer.createSession()?.type == "short-of-memory")
    #expect(peer.close?.code == 4096)
    let ben = world.addClient()
    ben.join()
    world.exchange()
    #expect(world.server.sessionCount == 1 && ben.fetchResult == nil)
    world.cut(ann.link!)
    world.pass(5)
    #expect(ann.engine.status == .online && ann.tokens == [nil, "token1"])
    #expect(!world.server.noteMemory(Self.little))
    world.pass(10)
    #expect(ben.engine.status == .online && ben.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "A closed scope is not opened, one that is open is given, and an idle one is closed soon")
  func openings() {
    let world = OpeningWorld(limits: Self.limits)
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    #expect(world.takeSteps() == ["open A"] && world.take(1) == ["granted"])
    world.connect(2)
    Self.press(world.engine)
    world.fetch("A", on: 2)
    world.fetch("B", on: 2)
    #expect(world.take(2) == ["granted", "short-of-memory"] && world.takeSteps() == [])
    world.disconnect(1)
    world.pass(.seconds(1))
    #expect(world.takeSteps() == [])
    world.disconnect(2)
    for _ in 0..<10 { world.pass(.seconds(1)) }
    #expect(world.takeSteps() == [])
    world.pass(.seconds(1))
    #expect(world.takeSteps() == ["close A"])
    world.close("A")
    #expect(!world.engine.noteMemory(Self.little))
    world.connect(3)
    world.fetch("B", on: 3)
    #expect(world.takeSteps() == ["open B"])
  }

  @Test("Clients of version 1, which do not ask again, are given a closed scope")
  func oldClients() {
    let world = OpeningWorld(limits: Self.limits)
    world.connect(1, version: 1)
    Self.press(world.engine)
    world.fetch("A", on: 1)
    #expect(world.takeSteps() == ["open A"])
  }

  @Test("Without a limit, any amount is right")
  func unlimited() {
    let world = InMemoryWorld()
    #expect(!world.server.noteMemory(.max))
    #expect(RawPeer(world).createSession() == nil)
  }
}

#if os(Linux)
/// The memory of a process is known on Linux only.
@Suite("A server that is short of memory", .live, .timeLimit(.minutes(3)))
@MainActor
struct ShortOfMemoryTests {
  @Test("It says so once, from its second look on, and refuses sessions")
  func live() async throws {
    var configuration = Server.Configuration()
    configuration.limits.residentBytes = 1
    let server = Server(configuration: configuration.patient)
    var reports: [String] = []
    server.onDiagnostic.listen { if $0.level == .error { reports.append($0.text()) } }
    let port = try await server.listen()
    try await wait { !reports.isEmpty }
    let peer = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(port)", configuration: .patient)
    try peer.send(text: #"{"type":"SessionCreate","index":0,"version":"1.0.0","protocol":2}"#)
    let reply = try await peer.receive()
    let text = String(decoding: try #require(reply).bytes, as: UTF8.self)
    #expect(text.contains("short-of-memory") && server.limitHits == ["residentBytes": 1])
    #expect(reports.count == 1 && reports[0].contains("new sessions"))
    await server.stop()
  }

  @Test("It looks when it begins to be used, and not for each transport that is made")
  func looks() async {
    var configuration = Server.Configuration()
    configuration.limits.residentBytes = 1
    let server = Server(configuration: configuration)
    for _ in 0..<3 { _ = server.makeTransport() }
    #expect(!server.runner.engine.isShortOfMemory)
    await server.stop()
  }

  @Test("The resident memory grows by what the process has written to")
  func resident() throws {
    let size = 64 << 20
    // Other tests give memory back meanwhile.
    let grows = (0..<20).contains { _ in
      guard let before = ProcessMemory.residentBytes,
        let bytes = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
      else { return false }
      memset(bytes, 1, size)
      defer { munmap(bytes, size) }
      return (ProcessMemory.residentBytes ?? 0) - before > size * 3 / 4
    }
    #expect(grows)
  }
}
#endif
