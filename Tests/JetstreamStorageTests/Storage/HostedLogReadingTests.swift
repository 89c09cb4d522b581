import Foundation
import Jetstream
import JetstreamSimulation
import JetstreamWebSocket
import Pacing
import Synchronization
import Testing

@testable import JetstreamServer

private let isMain = DispatchSpecificKey<Bool>()

/// A disk whose files are read only when the test permits it.
private final class HeldDisk: LogDirectory {
  private let disk: SimulatedDisk
  private let state = Mutex((isHeld: false, fails: false, readers: 0, isReadAtHome: false))
  private let gate = DispatchSemaphore(value: 0)

  init(_ disk: SimulatedDisk) { self.disk = disk }

  /// The number of threads that wait for ``letGo()``.
  var readers: Int { state.withLock { $0.readers } }

  /// True if a file was read on the thread of a server, which is not held up.
  var isReadAtHome: Bool { state.withLock { $0.isReadAtHome } }

  func hold() { state.withLock { $0.isHeld = true } }

  /// Lets those who wait read.
  ///
  /// - Parameter fails: true if they fail.
  func letGo(fails: Bool = false) {
    let readers = state.withLock { state in
      (state.isHeld, state.fails) = (false, fails)
      return state.readers
    }
    for _ in 0..<readers { gate.signal() }
  }

  /// Waits, when called away from servers, until ``letGo()``.
  private func read() throws(LogFileError) {
    let isHome =
      EventLoop.current != nil
      || DispatchQueue.getSpecific(key: isMain) == true
    let waits = state.withLock { state in
      guard state.isHeld else { return false }
      if isHome { state.isReadAtHome = true } else { state.readers += 1 }
      return !isHome
    }
    guard waits else { return }
    gate.wait()
    if state.withLock({ $0.fails }) { throw LogFileError(.list, name, code: EIO) }
  }

  var name: String { disk.name }
  var boot: UUID? { disk.boot }
  func list() throws(LogFileError) -> [String] {
    try read()
    return try disk.list()
  }
  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    if access == .reading { try read() }
    return try disk.open(file, for: access)
  }
  func rename(_ file: String, to other: String) throws(LogFileError) {
    try disk.rename(file, to: other)
  }
  func remove(_ file: String) throws(LogFileError) { try disk.remove(file) }
  func sync() throws(LogFileError) { try disk.sync() }
  func lock(_ file: String) throws(LogFileError) -> (any LogFile)? { try disk.lock(file) }
}

/// Servers that host scopes whose logs take long to read.
@Suite("Hosting while a log is read", .live, .timeLimit(.minutes(3)))
@MainActor
struct HostedLogReadingTests {
  /// A scope with a log, and the place in which it is hosted.
  enum Kind {
    case models, rows, spreadRows
  }

  private let disk = SimulatedDisk()
  private let held: HeldDisk
  private let scope: Scope
  private var canvas: Canvas { scope.root as! Canvas }

  init() {
    DispatchQueue.main.setSpecific(key: isMain, value: true)
    held = HeldDisk(disk)
    scope = Scope(name: "A", root: Canvas())
  }

  private func makeServer(_ kind: Kind) -> Server {
    var configuration = Server.Configuration()
    configuration.scopeLoops = kind == .spreadRows ? 1 : 0
    return Server(configuration: configuration.patient)
  }

  private func host(_ kind: Kind, on server: Server, _ log: FragmentLog) async throws {
    switch kind {
    case .models: try await server.host(scope, log: log)
    case .rows, .spreadRows:
      try await server.host("A", schema: ScopeSchema(of: Canvas.self), log: log)
    }
  }

  private func openLog() throws -> FragmentLog { FragmentLog(try RecordLog(held)) }

  /// Fills the log with a change.
  private func fill() async throws {
    let server = Server()
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    try await server.host(scope, log: openLog())
    canvas.likes = 3
    scope.flush()
    try await server.remove(scope)
    await server.stop()
  }

  /// Begins to host the scope, and returns while its log is being read.
  private func begin(
    _ kind: Kind, on server: Server, _ log: FragmentLog
  ) async throws -> Task<Void, any Error> {
    held.hold()
    let hosting = Task { try await host(kind, on: server, log) }
    try await wait { held.readers > 0 || held.isReadAtHome }
    if held.isReadAtHome {
      try await hosting.value
      await server.stop()
    }
    try #require(!held.isReadAtHome, "The log is read on the server's thread.")
    return hosting
  }

  private func fetch(
    _ name: String, from server: Server
  ) async throws -> (client: Client, scope: Scope, canvas: Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    return (client, scope, canvas)
  }

  @Test("The server goes on with other scopes", arguments: [Kind.models, .rows, .spreadRows])
  func goesOn(kind: Kind) async throws {
    try await fill()
    let server = makeServer(kind)
    server.host("B", schema: ScopeSchema(of: Canvas.self))
    let hosting = try await begin(kind, on: server, openLog())
    let other = try await fetch("B", from: server)
    other.canvas.likes = 1
    try await other.client.waitForUpload(of: other.scope)
    // One that fetches the scope meanwhile gets it once it is there.
    let early = Client(transport: server.makeTransport())
    let copy = Scope(name: "A", root: Canvas())
    try await early.connect()
    let fetching = Task { try await early.fetch(copy) }
    try await wait {
      if case .refused? = early.syncState(of: copy)?.stall { true } else { false }
    }
    held.letGo()
    try await hosting.value
    try await fetching.value
    #expect((copy.root as? Canvas)?.likes == 3)
    for client in [other.client, early] { client.close() }
    await server.stop()
  }

  @Test("A scope that is removed meanwhile is not hosted, and its log is closed")
  func removed() async throws {
    try await fill()
    let server = makeServer(.models)
    let log = try openLog()
    let hosting = try await begin(.models, on: server, log)
    var isRemoved = false
    let removing = Task {
      try await server.remove(scope)
      isRemoved = true
    }
    // The second hosting with the log waits for the end of the first.
    var isBegun = false
    let again = Task {
      isBegun = true
      try await server.host(Scope(name: "A", root: Canvas()), log: log)
    }
    try await wait { isBegun }
    #expect(!isRemoved)
    held.letGo()
    try await hosting.value
    try await removing.value
    await #expect(throws: LogError.closed) { try await again.value }
    #expect(!server.runner.engine.isHosted(scope) && server.runner.storedScopes.isEmpty)
    try await server.host(scope, log: openLog())
    #expect(canvas.likes == 3 && server.runner.engine.keepsHistory(of: scope))
    await server.stop()
  }

  @Test(
    "A server that stops meanwhile does not host the scope before the app hosts it again",
    arguments: [Kind.models, .rows, .spreadRows])
  func stopped(kind: Kind) async throws {
    try await fill()
    let server = makeServer(kind)
    let hosting = try await begin(kind, on: server, openLog())
    await server.stop()
    held.letGo()
    try await hosting.value
    #expect(server.runner.storedScopes.isEmpty)
    // The log was closed: another one can be opened.
    try await host(kind, on: server, openLog())
    let member = try await fetch("A", from: server)
    #expect(member.canvas.likes == 3)
    member.client.close()
    await server.stop()
  }

  @Test("A scope that was served without a log goes on from its log once that is read")
  func servedBefore() async throws {
    try await fill()
    let server = makeServer(.models)
    server.host(scope)
    canvas.likes = 7
    let hosting = try await begin(.models, on: server, openLog())
    held.letGo()
    try await hosting.value
    #expect(canvas.likes == 3)
    let member = try await fetch("A", from: server)
    #expect(member.canvas.likes == 3)
    member.client.close()
    await server.stop()
  }

  @Test(
    "A log that cannot be read is an error for the caller that hosts, also if the scope is removed")
  func unreadable() async throws {
    try await fill()
    let server = makeServer(.models)
    let log = try openLog()
    let hosting = try await begin(.models, on: server, log)
    let removing = Task { try await server.remove(scope) }
    held.letGo(fails: true)
    await #expect(throws: LogError.self) { try await hosting.value }
    try await removing.value
    try await server.host(scope, log: log)
    #expect(canvas.likes == 3)
    await server.stop()
  }
}
