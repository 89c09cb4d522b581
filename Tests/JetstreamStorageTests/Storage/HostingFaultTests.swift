import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// Failures of storages while a server begins to host a scope, or ends it.
@Suite("Hosting with storages that fail", .live, .timeLimit(.minutes(3)))
@MainActor
struct HostingFaultTests {
  private func fetch(_ name: String, from server: Server) async throws -> (Client, Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    return (client, canvas)
  }

  @Test(
    "A scope whose first state cannot be written can be hosted with its log once that is over",
    arguments: [SimulatedDisk.Fault.rename(EIO), .syncDirectory(EIO)])
  func firstState(fault: SimulatedDisk.Fault) async throws {
    let disk = SimulatedDisk()
    let log = FragmentLog(try RecordLog(disk))
    let canvas = Canvas()
    canvas.name = "first"
    let scope = Scope(name: "A", root: canvas)
    let server = Server()
    disk.inject([fault])
    await #expect(throws: LogError.self) { try await server.host(scope, log: log) }
    #expect(!disk.hasFaults)
    canvas.name = "changed"
    #expect(!server.runner.engine.keepsHistory(of: scope))
    try await server.host(scope, log: log)
    let (client, copy) = try await fetch("A", from: server)
    #expect(copy.name == "changed")
    client.close()
    try await server.remove(scope)
    let other = FragmentLog(try RecordLog(SimulatedDisk()))
    try await other.close()
    await #expect(throws: LogError.closed) { try await server.host(scope, log: other) }
    await server.stop()
  }

  @Test("A scope whose history does not fit is not hosted, and can be hosted with another one")
  func misfit() async throws {
    let files = try TemporaryDirectory()
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    let log = try ServerLog(files.path)
    func change(_ value: JSONValue) -> ScopeRecord {
      let fragment = SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas", properties: ["likes": value])
      return ScopeRecord(sequence: nil, fragments: [fragment])
    }
    try await log.snapshot(
      ScopeHistory(epoch: "e", sequence: 0, state: scope.sharedState(), clients: [:]))
    for (at, value) in [JSONValue.integer(7), "no number"].enumerated() {
      var record = change(value)
      record.sequence = at + 1
      try await log.append(record).durable()
    }
    try await log.records.close()
    let server = Server()
    let bad = try FragmentLog(files.path)
    await #expect(throws: ScopeError.self) { try await server.host(scope, log: bad) }
    try await bad.close()
    #expect(server.runner.engine.streamLengths == [])
    let good = FragmentLog(try RecordLog(SimulatedDisk()))
    try await server.host(scope, log: good)
    #expect(server.runner.engine.streamLengths == [0])
    let (client, copy) = try await fetch("A", from: server)
    #expect(copy.likes == 7)
    client.close()
    await server.stop()
  }

  @Test(
    "A scope that is removed while its first state is written loses no change, and its log is closed"
  )
  func removedWhileHosted() async throws {
    let files = try TemporaryDirectory()
    let snapshots = GatedQueue()
    let log = try RecordLog(
      POSIXLogDirectory(files.path), configuration: LogConfiguration(),
      queue: DispatchLogQueue("log"), snapshotQueue: snapshots)
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    let server = Server()
    snapshots.hold()
    let hosting = Task { try await server.host(scope, log: FragmentLog(log)) }
    try await wait { server.runner.engine.keepsHistory(of: scope) }
    canvas.likes = 1
    scope.flush()
    canvas.likes = 5
    let removing = Task { try await server.remove(scope) }
    try await wait { !server.runner.engine.keepsHistory(of: scope) }
    snapshots.letGo()
    try await removing.value
    let next = try FragmentLog(files.path)
    try await hosting.value
    let again = Canvas()
    try await server.host(Scope(name: "A", root: again), log: next)
    #expect(again.likes == 5)
    await server.stop()
  }

  @Test(
    "A scope that is removed while its first state cannot be written reports that to both callers")
  func removedWithoutFirstState() async throws {
    let disk = SimulatedDisk()
    let snapshots = GatedQueue()
    let log = try RecordLog(
      disk, configuration: LogConfiguration(), queue: DispatchLogQueue("log"),
      snapshotQueue: snapshots)
    let scope = Scope(name: "A", root: Canvas())
    let server = Server()
    snapshots.hold()
    let hosting = Task { try await server.host(scope, log: FragmentLog(log)) }
    try await wait { server.runner.engine.keepsHistory(of: scope) }
    let removing = Task { try await server.remove(scope) }
    try await wait { !server.runner.engine.keepsHistory(of: scope) }
    disk.inject([.rename(EIO)])
    snapshots.letGo()
    await #expect(throws: LogError.self) { try await removing.value }
    await #expect(throws: LogError.self) { try await hosting.value }
    await server.stop()
  }

  @Test(
    "A server whose log the app has closed stops hosting, and goes on where it was with the log opened again"
  )
  func closedLog() async throws {
    let files = try TemporaryDirectory()
    let server = Server()
    let notes = Notes()
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    let log = try FragmentLog(files.path)
    try await server.host(Scope(name: "A", root: Canvas()), log: log)
    let (client, copy) = try await fetch("A", from: server)
    let scope = try #require(copy.scope)
    copy.likes += 1
    try await client.sync(scope)
    try await log.close()
    copy.likes += 10
    scope.flush()
    try await wait { notes.texts.contains { $0.contains("cannot be kept any more") } }
    #expect(client.syncState(of: scope)?.pendingCount == 1)
    let canvas = Canvas()
    try await server.host(Scope(name: "A", root: canvas), log: FragmentLog(files.path))
    #expect(canvas.likes == 1)
    try await wait { client.syncState(of: scope)?.isSynced == true }
    #expect(canvas.likes == 11 && copy.likes == 11)
    client.close()
    await server.stop()
  }

  @Test(
    "A scope of a schema can be hosted with its log again, once the app has closed that or has stopped the server",
    arguments: [(0, true), (0, false), (2, true), (2, false)])
  func schemaAgain(loops: Int, isStopped: Bool) async throws {
    let files = try TemporaryDirectory()
    var configuration = Server.Configuration()
    configuration.scopeLoops = loops
    let server = Server(configuration: configuration)
    let notes = Notes()
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    let schema = ScopeSchema(of: Canvas.self)
    let log = try FragmentLog(files.path)
    try await server.host("A", schema: schema, log: log)
    let (client, copy) = try await fetch("A", from: server)
    let scope = try #require(copy.scope)
    copy.likes += 1
    try await client.sync(scope)
    if isStopped {
      await server.stop()
      try await log.close()
    } else {
      try await log.close()
      copy.likes += 10
      scope.flush()
      try await wait { notes.texts.contains { $0.contains("cannot be kept any more") } }
    }
    client.close()
    try await server.host("A", schema: schema, log: FragmentLog(files.path))
    let other = try await fetch("A", from: server)
    #expect(other.1.likes == 1)
    other.0.close()
    await server.stop()
  }

  @Test(
    "A scope whose log is closed is not served before it is hosted again, also if the app names it to a client",
    arguments: [true, false])
  func unhosted(isStopped: Bool) async throws {
    let files = try TemporaryDirectory()
    let server = Server()
    let notes = Notes()
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    let log = try FragmentLog(files.path)
    server.resolveScope = { _, _, _ in .success(scope) }
    try await server.host(scope, log: log)
    if isStopped {
      await server.stop()
      try await log.close()
    } else {
      try await log.close()
      canvas.likes += 10
      scope.flush()
      try await wait { notes.texts.contains { $0.contains("cannot be kept any more") } }
    }
    let client = Client(transport: server.makeTransport())
    let root = Canvas()
    let asked = Scope(name: "A", root: root)
    try await client.connect()
    let fetching = Task { try await client.fetch(asked) }
    try await wait {
      if case .refused? = client.syncState(of: asked)?.stall { true } else { false }
    }
    #expect(!server.runner.engine.isHosted(scope))
    try await server.host(scope, log: FragmentLog(files.path))
    try await fetching.value
    #expect(root.likes == canvas.likes)
    client.close()
    await server.stop()
  }

  @Test(
    "A scope that has lost its log is refused until the app hosts it again or removes it, and is not opened on demand",
    arguments: [0, 2], [true, false])
  func lostLog(loops: Int, isRemoved: Bool) async throws {
    let files = try TemporaryDirectory()
    var configuration = Server.Configuration()
    configuration.scopeLoops = loops
    let server = Server(configuration: configuration)
    let notes = Notes()
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    let absence = WireError.notThere("The app has no such scope")
    var asked: [String] = []
    server.openScopes(kept: MemoryStorage()) {
      asked.append($0.name)
      throw absence
    }
    let schema = ScopeSchema(of: Canvas.self)
    let log = try FragmentLog(files.path)
    try await server.host("A", schema: schema, log: log)
    let (first, copy) = try await fetch("A", from: server)
    copy.likes += 1
    try await first.sync(copy.scope)
    try await log.close()
    copy.likes += 10
    copy.scope?.flush()
    try await wait { notes.texts.contains { $0.contains("cannot be kept any more") } }
    let client = Client(transport: server.makeTransport())
    let root = Canvas()
    let scope = Scope(name: "A", root: root)
    try await client.connect()
    var isDenied = false
    let fetching = Task {
      do {
        try await client.fetch(scope)
      } catch {
        isDenied = true
        throw error
      }
    }
    try await wait {
      if case .refused? = client.syncState(of: scope)?.stall { true } else { isDenied }
    }
    #expect(!isDenied && asked.isEmpty)
    if isRemoved {
      try await server.remove("A")
      await #expect(throws: SyncError.scopeDenied(scope: "A", error: absence)) {
        try await fetching.value
      }
      #expect(!asked.isEmpty)
    } else {
      try await server.host("A", schema: schema, log: FragmentLog(files.path))
      try await fetching.value
      try await wait { root.likes == 11 }
      #expect(asked.isEmpty)
    }
    first.close()
    client.close()
    await server.stop()
  }

  @Test("A history that is still being closed says nothing about the next one of its scope")
  func slowClose() async throws {
    let queues = (GatedQueue(), GatedQueue())
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    let server = Server()
    let engine = try #require(server.runner.engine)
    try await server.host(scope, log: FragmentLog(makeLog(on: queues.0)))
    queues.0.hold()
    canvas.likes = 1
    scope.flush()
    let removing = Task { try await server.remove(scope) }
    try await wait { !engine.keepsHistory(of: scope) }
    try await server.host(scope, log: FragmentLog(makeLog(on: queues.1)))
    queues.1.hold()
    canvas.likes = 2
    scope.flush()
    let records = engine.hostedScope(scope).order.records
    #expect(!records.isCurrent)
    queues.0.letGo()
    try await removing.value
    #expect(!records.isCurrent)
    queues.1.letGo()
    try await wait { records.isCurrent }
    #expect(engine.keepsHistory(of: scope))
    try await server.remove(scope)
    await server.stop()
  }

  private func makeLog(on queue: GatedQueue) throws -> RecordLog {
    try RecordLog(
      SimulatedDisk(), configuration: LogConfiguration(), queue: queue,
      snapshotQueue: DispatchLogQueue("snapshots"))
  }

  @Test(
    "A scope that is removed by its name while its first state is written is not served afterwards",
    arguments: [0, 2])
  func removedByName(loops: Int) async throws {
    let files = try TemporaryDirectory()
    let snapshots = GatedQueue()
    let log = try RecordLog(
      POSIXLogDirectory(files.path), configuration: LogConfiguration(),
      queue: DispatchLogQueue("log"), snapshotQueue: snapshots)
    var configuration = Server.Configuration()
    configuration.scopeLoops = loops
    let server = Server(configuration: configuration)
    let schema = ScopeSchema(of: Canvas.self)
    snapshots.hold()
    let hosting = Task { try await server.host("A", schema: schema, log: FragmentLog(log)) }
    try await wait { snapshots.isHoldingWork }
    var isRemoving = false
    let removing = Task {
      isRemoving = true
      try await server.remove("A")
    }
    try await wait { isRemoving }
    snapshots.letGo()
    try await removing.value
    try await hosting.value
    #expect(server.offers["A"] == nil)
    // Its log is closed.
    try await server.host("A", schema: schema, log: FragmentLog(files.path))
    let (client, _) = try await fetch("A", from: server)
    client.close()
    await server.stop()
  }

  @Test("A name under which a scope is being hosted is not free, nor opened on demand")
  func nameInUse() async throws {
    let snapshots = GatedQueue()
    let log = try RecordLog(
      SimulatedDisk(), configuration: LogConfiguration(), queue: DispatchLogQueue("log"),
      snapshotQueue: snapshots)
    let server = Server()
    var asked: [String] = []
    server.openScopes(kept: MemoryStorage()) {
      asked.append($0.name)
      throw WireError.notThere("The app has no such scope")
    }
    snapshots.hold()
    let hosting = Task {
      try await server.host("A", schema: ScopeSchema(of: Canvas.self), log: FragmentLog(log))
    }
    try await wait { snapshots.isHoldingWork }
    #expect(!server.offers.isFree("A"))
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "A", root: Canvas())
    try await client.connect()
    let fetching = Task { try await client.fetch(scope) }
    try await wait {
      if case .refused? = client.syncState(of: scope)?.stall { true } else { !asked.isEmpty }
    }
    snapshots.letGo()
    try await hosting.value
    try await fetching.value
    #expect(asked.isEmpty)
    client.close()
    await server.stop()
  }

  @Test(
    "The history of a scope of a schema is let go of when the scope is hosted again",
    arguments: [0, 2])
  func replacedHistory(loops: Int) async throws {
    let files = try TemporaryDirectory()
    var configuration = Server.Configuration()
    configuration.scopeLoops = loops
    let server = Server(configuration: configuration)
    let schema = ScopeSchema(of: Canvas.self)
    var log: FragmentLog? = try FragmentLog(files.path)
    weak let old = log
    try await server.host("A", schema: schema, log: #require(log))
    let (client, copy) = try await fetch("A", from: server)
    copy.likes += 1
    try await client.sync(copy.scope)
    client.close()
    await server.stop()
    try await log?.close()
    log = nil
    #expect(old != nil)
    try await server.host("A", schema: schema, log: FragmentLog(files.path))
    try await wait { old == nil }
    #expect(try await fetch("A", from: server).1.likes == 1)
    await server.stop()
  }

  @Test(
    "The schema that a client brings becomes the scope's once the history is known to fit it",
    arguments: [false, true])
  func unfitSchema(lacksProperty: Bool) async throws {
    let storage = MemoryStorage()
    let first = Server()
    first.openScopes(kept: storage) { _ in .schema(ScopeSchema(of: Canvas.self)) }
    let (client, canvas) = try await fetch("A", from: first)
    canvas.likes = 3
    try await client.sync(canvas.scope)
    client.close()
    await first.stop()
    let next = Server()
    let notes = Notes()
    next.onDiagnostic.listen { notes.texts.append($0.text()) }
    next.openScopes(kept: storage) { _ in .schemaOfClient }
    let stranger = Client(transport: next.makeTransport())
    try await stranger.connect()
    // In place of another root, a canvas that has no likes.
    let root: ModelObject = lacksProperty ? NewCanvas() : Shape()
    let fetching = Task { try await stranger.fetch(Scope(name: "A", root: root)) }
    try await wait { notes.texts.contains { $0.contains("could not be opened") } }
    stranger.close()
    _ = await fetching.result
    let (other, copy) = try await fetch("A", from: next)
    #expect(copy.likes == 3)
    other.close()
    await next.stop()
  }

  private final class Notes {
    var texts: [String] = []
  }

  @Test("The loss of a lease while a scope is closed takes away no other scope of its name")
  func lossWhileClosing() async throws {
    let storage = MemoryStorage()
    let server = Server()
    var opened: Scope?
    server.openScopes(kept: storage) { request in
      let scope = Scope(name: request.name, root: Canvas())
      opened = scope
      return .models(scope)
    }
    let (client, _) = try await fetch("A", from: server)
    client.close()
    let old = try #require(opened)
    storage.expireLease(of: "A")
    (old.root as? Canvas)?.likes += 1
    old.flush()
    let canvas = Canvas()
    canvas.name = "the app's"
    server.host(Scope(name: "A", root: canvas))
    try await server.remove(old)
    let (next, copy) = try await fetch("A", from: server)
    #expect(copy.name == "the app's")
    next.close()
    await server.stop()
  }

  /// A scope that a server has opened.
  private final class Opened {
    weak var scope: Scope?
    /// True once the server has reported that it cannot close the scope.
    var isStuck = false
  }

  @Test("A server that is released gives up a scope that cannot be closed")
  func release() async throws {
    let files = try TemporaryDirectory()
    let directory = try ScopeDirectory(files.path)
    var configuration = Server.Configuration()
    configuration.idleScopeTime = .zero
    var server: Server? = Server(configuration: configuration)
    let opened = Opened()
    server?.openScopes(in: directory) { request in
      let scope = Scope(name: request.name, root: Canvas())
      opened.scope = scope
      return .models(scope)
    }
    let token = server?.onDiagnostic.listen { note in
      if note.text().contains("cannot be closed") { opened.isStuck = true }
    }
    let (client, _) = try await fetch("A", from: #require(server))
    try FileManager.default.moveItem(
      atPath: files.path + "/scopes", toPath: files.path + "/elsewhere")
    client.close()
    try await wait { opened.isStuck }
    #expect(opened.scope != nil)
    server = nil
    try await wait { opened.scope == nil }
    _ = token
  }
}
