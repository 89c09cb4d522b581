import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// A server of whose scope no record becomes durable until the test says so.
private final class StalledWorld {
  let world: InMemoryWorld
  private var records = 0

  init(
    unstoredBytes: Int? = nil, _ configuration: ServerEngine.Configuration = .init()
  ) throws {
    var configuration = configuration
    configuration.limits.unstoredBytes = unstoredBytes
    world = InMemoryWorld(configuration: configuration)
    _ = try world.server.host(world.scope, history: nil) { [unowned self] _ in records += 1 }
  }

  func fail() { world.server.stalled(world.scope) }

  func store() {
    world.server.stored(records, of: world.scope)
    world.exchange()
  }

  /// Names the canvas. Returns the time for which the server does not read on.
  @discardableResult
  func name(_ name: String, by peer: RawPeer) -> Duration {
    let naming = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(name)])
    peer.send(peer.stamp(.scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: [naming]))))
    return peer.link.pause
  }

  /// Returns true if the connection of a peer is still to be left unread when the time for that is over.
  func isHeld(_ peer: RawPeer) -> Bool {
    world.server.rests(on: peer.link.id, isOver: true, now: world.now) > .zero
  }
}

extension RawPeer {
  fileprivate func fetch() { send(stamp(.scopeFetch(ScopeFetch(name: "Canvas")))) }

  /// The answers to the peer's fetches: nil for one that was granted.
  fileprivate var fetchErrors: [WireError?] {
    messages.compactMap { if case .scopeFetchReply(let reply) = $0 { reply.error } else { nil } }
  }

  fileprivate var answers: [ScopeSyncReply] {
    messages.compactMap { if case .scopeSyncReply(let reply) = $0 { reply } else { nil } }
  }
}

@Suite("A scope whose changes cannot be stored")
struct StalledHistoryTests {
  @Test("A client that only sends what needs no record is left unread, too, when many answers wait")
  func answers() throws {
    var limits = ServerEngine.Configuration()
    limits.keptLimit.messages = 100
    let stalled = try StalledWorld(unstoredBytes: 1 << 20, limits)
    let world = stalled.world
    let (writer, other) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    stalled.store()
    stalled.name("a", by: other)
    let wrong = SyncFragment(
      .change, uuid: UUID(), className: "Canvas", properties: ["name": "b"])
    func send() -> Duration {
      writer.send(
        writer.stamp(.scopeSync(ScopeSync(scopeIndex: writer.scopeIndex, fragments: [wrong]))))
      return writer.link.pause
    }
    for _ in 0..<50 { #expect(send() == .zero) }
    #expect(send() == .seconds(1) && stalled.isHeld(writer) && !stalled.isHeld(other))
    stalled.store()
    writer.take()
    #expect(writer.answers.count == 51)
    #expect(!stalled.isHeld(writer) && send() == .zero)
  }

  @Test("A client of version 1 that asks for the state over and over is left unread, too")
  func oldFetches() throws {
    var limits = ServerEngine.Configuration()
    limits.keptLimit.messages = 100
    let stalled = try StalledWorld(unstoredBytes: 1 << 20, limits)
    let world = stalled.world
    let (old, other) = (RawPeer.joined(world, protocol: 1), RawPeer.joined(world, protocol: 2))
    stalled.store()
    stalled.name("a", by: other)
    // Each has two answers.
    for _ in 0..<25 {
      old.fetch()
      #expect(old.link.pause == .zero)
    }
    old.fetch()
    #expect(old.link.pause == .seconds(1) && stalled.isHeld(old) && !stalled.isHeld(other))
    stalled.store()
    old.take()
    #expect(old.fetchErrors.count == 27)
    #expect(old.fetchErrors.allSatisfy { $0 == nil } && !stalled.isHeld(old))
  }

  @Test("A scope fetched twice while a change is being stored is granted twice, and sent once")
  func fetchedTwice() throws {
    let stalled = try StalledWorld()
    let world = stalled.world
    let writer = RawPeer.joined(world, protocol: 2)
    let reader = RawPeer(world)
    reader.createSession()
    stalled.store()
    stalled.name("a", by: writer)
    let fetches = (0..<2).map { _ in reader.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) }
    reader.send(String(decoding: Message.encodeFrame(fetches, asArray: true), as: UTF8.self))
    #expect(reader.fetchErrors.isEmpty)
    stalled.store()
    reader.take()
    #expect(reader.fetchErrors == [nil, nil])
    let states = reader.messages.count { if case .scopeState = $0 { true } else { false } }
    #expect(states == 1)
  }

  @Test("A client that leaves the scope each time is left unread, too", arguments: [1, 2])
  func leaving(version: Int) throws {
    let stalled = try StalledWorld(unstoredBytes: 2_000)
    let world = stalled.world
    let writer = RawPeer.joined(world, protocol: version)
    stalled.store()
    let first = writer.scopeIndex
    writer.send(writer.stamp(.scopeLeave(ScopeLeave(scopeIndex: first))))
    func visit(_ number: Int) -> Duration {
      // In version 1 a scope has another number each time.
      let index = version == 1 ? first + number : first
      let name = SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["name": .string("\(number)" + String(repeating: "x", count: 1_500))])
      let messages = [
        .scopeFetch(ScopeFetch(name: "Canvas")),
        .scopeSync(ScopeSync(scopeIndex: index, fragments: [name])),
        .scopeLeave(ScopeLeave(scopeIndex: index)),
      ].map(writer.stamp)
      writer.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
      return writer.link.pause
    }
    #expect(visit(1) == .zero)
    for number in 2...5 { #expect(visit(number) == .seconds(1)) }
    #expect(world.canvas.name?.first == "5" && stalled.isHeld(writer))
    world.advance(by: .seconds(500))
    #expect(stalled.isHeld(writer))
    stalled.store()
    #expect(!stalled.isHeld(writer))
  }

  @Test("Answers that have waited in a scope that was left count until they would have come")
  func answersOfLeft() throws {
    var limits = ServerEngine.Configuration()
    limits.keptLimit.messages = 100
    let stalled = try StalledWorld(unstoredBytes: 1 << 20, limits)
    let world = stalled.world
    let (reader, other) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    stalled.store()
    stalled.name("a", by: other)
    func visit() -> Duration {
      let messages = [
        .scopeLeave(ScopeLeave(scopeIndex: reader.scopeIndex)),
        .scopeFetch(ScopeFetch(name: "Canvas")),
      ].map(reader.stamp)
      reader.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
      return reader.link.pause
    }
    for _ in 0..<50 { #expect(visit() == .zero) }
    #expect(visit() == .seconds(1) && stalled.isHeld(reader) && !stalled.isHeld(other))
    stalled.store()
    #expect(!stalled.isHeld(reader))
  }

  @Test("A client that goes on sending is left unread until there is less to store")
  func hold() throws {
    let stalled = try StalledWorld(unstoredBytes: 2_000)
    let world = stalled.world
    let (writer, reader) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    #expect(stalled.name("a", by: writer) == .zero)
    #expect(stalled.name(String(repeating: "b", count: 2_000), by: writer) == .seconds(1))
    #expect(world.limitHits == [.unstoredBytes: 1])
    #expect(stalled.isHeld(writer) && writer.answers.isEmpty)
    reader.send(.ping(Ping(ack: 0)))
    #expect(reader.link.pause == .zero, "It adds nothing.")
    #expect(!stalled.isHeld(reader))
    // The session is kept however long that takes.
    for _ in 0..<4 {
      world.advance(by: .seconds(500))
      #expect(stalled.isHeld(writer) && !stalled.isHeld(reader))
    }
    stalled.store()
    #expect(!stalled.isHeld(writer) && world.server.sessionCount == 2)
    // The inverse of this one has the long name.
    stalled.name("c", by: writer)
    stalled.store()
    #expect(stalled.name("d", by: writer) == .zero)
    #expect(reader.messages.contains { $0.type == "ScopeSync" })
  }

  @Test("A fetch that would show changes which are not stored is refused, and granted later, once")
  func fetches() throws {
    let stalled = try StalledWorld()
    let world = stalled.world
    let writer = RawPeer.joined(world, protocol: 2)
    stalled.name("a", by: writer)
    let waiting = RawPeer.joined(world, protocol: 2)
    let old = RawPeer.joined(world, protocol: 1)
    writer.fetch()
    #expect(waiting.fetchErrors.isEmpty && writer.fetchErrors == [nil])
    stalled.fail()
    world.exchange()
    // A client that has the scope waits, and so does a client of version 1, which would not ask again.
    #expect(waiting.fetchErrors == [.historyStalled] && writer.fetchErrors == [nil])
    let late = RawPeer.joined(world, protocol: 2)
    let lateOld = RawPeer.joined(world, protocol: 1)
    #expect(late.fetchErrors == [.historyStalled])
    #expect(old.fetchErrors.isEmpty && lateOld.fetchErrors.isEmpty)
    #expect(WireError.historyStalled.denial == .notNow)
    stalled.store()
    #expect(waiting.fetchErrors == [.historyStalled] && writer.fetchErrors == [nil, nil])
    #expect(old.fetchErrors == [nil] && lateOld.fetchErrors == [nil])
    #expect(writer.answers.count == 1)
    waiting.fetch()
    late.fetch()
    #expect(waiting.fetchErrors == [.historyStalled, nil])
    #expect(late.fetchErrors == [.historyStalled, nil])
  }

  @Test("A failure of which no change is left to be stored refuses nothing")
  func nothingToStore() throws {
    let stalled = try StalledWorld()
    stalled.fail()
    #expect(RawPeer.joined(stalled.world, protocol: 2).fetchErrors == [nil])
  }
}

@Suite("A server whose disk is full", .live, .timeLimit(.minutes(3)))
@MainActor
struct FullDiskTests {
  private func fetch(_ name: String, from server: Server) async throws -> (Client, Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    return (client, canvas)
  }

  @Test("Other scopes go on, and nothing is lost once there is room again")
  func full() async throws {
    let disk = SimulatedDisk()
    var configuration = Server.Configuration()
    configuration.limits.unstoredBytes = 4_000
    let server = Server(configuration: configuration)
    var notes: [String] = []
    server.onDiagnostic.listen { notes.append($0.text()) }
    let hosted = Canvas()
    try await server.host(
      Scope(name: "A", root: hosted), log: FragmentLog(try RecordLog(disk)))
    server.host(Scope(name: "B", root: Canvas()))
    let (writer, canvas) = try await fetch("A", from: server)
    let (reader, copy) = try await fetch("A", from: server)
    let scope = try #require(canvas.scope)
    disk.inject(Array(repeating: .write(ENOSPC), count: 10_000))
    for number in 0..<100 {
      canvas.name = "\(number)" + String(repeating: "x", count: 200)
      scope.flush()
    }
    try await wait {
      server.limitHits["unstoredBytes"] == 1 && notes.contains { $0.contains("cannot be kept") }
    }
    #expect(copy.name == nil && canvas.name?.hasPrefix("99") == true)
    let (other, _) = try await fetch("B", from: server)
    other.close()
    let (last, late) = (Client(transport: server.makeTransport()), Canvas())
    let lateScope = Scope(name: "A", root: late)
    try await last.connect()
    let fetching = Task { try await last.fetch(lateScope) }
    disk.clearFaults()
    try await wait { client(writer, isSynced: scope) && copy.name == canvas.name }
    try await fetching.value
    #expect(late.name == canvas.name && hosted.name == canvas.name)
    for client in [writer, reader, last] { client.close() }
    await server.stop()
  }

  private func client(_ client: Client, isSynced scope: Scope) -> Bool {
    client.syncState(of: scope)?.isSynced == true
  }
}
