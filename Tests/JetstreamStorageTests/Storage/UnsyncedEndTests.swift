import Foundation
import JetstreamServer
import JetstreamSimulation
import Testing

@testable import Jetstream

/// Servers that tell clients of change sets before these are synced.
@Suite("A server with a log that is synced when the system decides", .live, .timeLimit(.minutes(5)))
@MainActor
struct UnsyncedEndTests {
  private let files = try! TemporaryDirectory()

  /// A queue that never does what is asked for with a delay: the log syncs only when it is told to.
  private struct PromptQueue: LogQueue {
    private let queue = DispatchLogQueue("prompt")

    func run(_ work: @escaping @Sendable () -> Void) { queue.run(work) }

    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {}
  }

  private func host(on disk: SimulatedDisk) async throws -> (server: Server, log: FragmentLog) {
    let log = FragmentLog(
      try RecordLog(
        disk, configuration: LogConfiguration(durability: .none), queue: PromptQueue(),
        snapshotQueue: PromptQueue()))
    let server = Server()
    try await server.host(Scope(name: "Canvas", root: Canvas()), log: log)
    return (server, log)
  }

  /// Adds a shape for each number, in a change set of its own, and waits until the server has accepted it.
  private func add(_ numbers: Range<Int>, to canvas: Canvas, with client: Client) async throws {
    let scope = try #require(canvas.scope)
    for number in numbers {
      let shape = Shape()
      shape.label = "\(number)"
      canvas.shapes.append(shape)
      try await client.sync(scope)
    }
  }

  /// A client that keeps a log, and comes back with it.
  @MainActor
  private final class Visitor {
    let client: Client
    let log: FragmentLog
    let canvas = Canvas()
    let scope: Scope
    var losses = 0

    init(_ server: Server, _ path: String) async throws {
      client = Client(transport: server.makeTransport())
      log = try FragmentLog(path)
      scope = Scope(name: "Canvas", root: canvas)
      client.onHistoryLoss.listen(self) { me, _ in me.losses += 1 }
      try client.fetch(scope, log: log)
      try await client.connect()
      try await client.waitForDownload(of: scope)
    }

    func close() async throws {
      client.close()
      try await log.close()
    }
  }

  /// Has a client make ten change sets, of which the first five are synced, and the visitor learn of all. Returns what a
  /// disk has then.
  private func tenChangeSets() async throws -> [String: [UInt8]] {
    let disk = SimulatedDisk()
    let (server, log) = try await host(on: disk)
    let visitor = try await Visitor(server, files.path + "/visitor")
    let writer = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await writer.connect()
    try await writer.fetch(scope)
    try await add(0..<5, to: canvas, with: writer)
    try await log.sync()
    try await add(5..<10, to: canvas, with: writer)
    try await visitor.client.sync(visitor.scope)
    #expect(visitor.canvas.shapes.count == 10)
    let found = disk.files
    try await visitor.close()
    writer.close()
    await server.stop()
    return found
  }

  /// Hosts the scope again, has a client add four shapes, and then the visitor come back. Returns how many losses the
  /// visitor was told of.
  private func goOn(on disk: SimulatedDisk, with count: Int) async throws -> Int {
    let (server, _) = try await host(on: disk)
    let writer = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await writer.connect()
    try await writer.fetch(scope)
    #expect(canvas.shapes.count == count)
    try await add(20..<24, to: canvas, with: writer)
    let visitor = try await Visitor(server, files.path + "/visitor")
    #expect(visitor.canvas.shapes.count == count + 4)
    #expect(visitor.scope.canonicalJSON == scope.canonicalJSON)
    try await visitor.close()
    writer.close()
    await server.stop()
    return visitor.losses
  }

  /// The number of epochs that were begun in a log.
  private func epochs(on disk: SimulatedDisk) throws -> Int {
    var cursor = try LogReader(disk).read()
    var count = 0
    while let record = try cursor.next() {
      if record.kind.rawValue == "epoch" { count += 1 }
    }
    return count
  }

  @Test("Clients agree after a power failure, however much of what they were told of is lost")
  func powerFailure() async throws {
    let disk = SimulatedDisk()
    disk.files = try await tenChangeSets()
    let segment = "log-000000000001.jsonl"
    let bytes = try #require(disk.files[segment])
    let ends = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }
    // Two of the five that were not synced come back with the power.
    disk.files[segment] = Array(bytes[...ends[ends.count - 4]])
    disk.crash()
    #expect(try await goOn(on: disk, with: 7) == 1)
    #expect(try epochs(on: disk) == 1)
  }

  private func open(_ notes: Notes) throws -> Server {
    let server = Server()
    let directory = try ScopeDirectory(
      files.path + "/server", configuration: LogConfiguration(durability: .none))
    server.openScopes(in: directory) { _ in .schema(ScopeSchema(of: Canvas.self)) }
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    return server
  }

  private final class Notes {
    var texts: [String] = []
  }

  @Test("A scope in a directory goes on in a new epoch after a power failure, and that is reported")
  func directory() async throws {
    let notes = Notes()
    var server = try open(notes)
    var visitor = try await Visitor(server, files.path + "/visitor")
    try await add(0..<10, to: visitor.canvas, with: visitor.client)
    try await visitor.close()
    await server.stop()

    // As if the machine had lost its power before the system had written the last three records.
    let folder = URL(fileURLWithPath: files.path + "/server/scopes/=43anvas")
    let segment = folder.appendingPathComponent("log-000000000001.jsonl")
    let bytes = try Data(contentsOf: segment)
    let ends = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }
    try bytes.prefix(through: ends[ends.count - 4]).write(to: segment)
    let lock = folder.appendingPathComponent("lock")
    var mark = try #require(LogMark(Array(Data(contentsOf: lock))))
    (mark.isOpen, mark.synced, mark.unsyncedBoot) = (true, 5, UUID())
    try Data(mark.line).write(to: lock)

    for round in 0..<2 {
      server = try open(notes)
      let writer = Client(transport: server.makeTransport())
      let canvas = Canvas()
      let scope = Scope(name: "Canvas", root: canvas)
      try await writer.connect()
      try await writer.fetch(scope)
      #expect(canvas.shapes.count == 7 + 4 * round)
      try await add(20..<24, to: canvas, with: writer)
      visitor = try await Visitor(server, files.path + "/visitor")
      #expect(visitor.losses == (round == 0 ? 1 : 0))
      #expect(visitor.scope.canonicalJSON == scope.canonicalJSON)
      try await visitor.close()
      writer.close()
      await server.stop()
    }
    #expect(notes.texts.count { $0.contains("the end of its log may be lost") } == 1)
  }

  @Test("A process that is killed loses nothing, and its history goes on in the same epoch")
  func kill() async throws {
    let disk = SimulatedDisk()
    disk.files = try await tenChangeSets()
    #expect(try await goOn(on: disk, with: 10) == 0)
    #expect(try epochs(on: disk) == 0)
    // The server was stopped, and everything has been synced since.
    let synced = SimulatedDisk()
    synced.files = disk.files
    synced.crash()
    #expect(try await goOn(on: synced, with: 14) == 0)
    #expect(try epochs(on: synced) == 0)
  }
}
