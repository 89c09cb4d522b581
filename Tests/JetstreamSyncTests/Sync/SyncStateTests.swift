import Foundation
import JetstreamServer
import Pacing
import Testing

@testable import Jetstream

private final class Dial: ModelObject {
  @Property(.minSyncInterval(.seconds(5))) var angle = 0
  @Property var label = ""
}

@Suite("How a scope stands to its server", .live, .serialized, .timeLimit(.minutes(5)))
@MainActor
struct SyncStateTests {
  @Test("A client tells what is pending, since when, and where the server is")
  func scripted() throws {
    let server = ScriptedServer()
    var told: [SyncState.Stall?] = []
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    var state = try #require(server.engine.state(of: server.scope))
    #expect(state.isSynced && state.stall == nil)
    #expect(state.position == ScopePosition(epoch: "e", sequence: 7))
    #expect(state.oldestPendingAge == nil)
    server.canvas.name = "a"
    #expect(server.engine.isPending(server.canvas))
    server.scope.flush()
    state = try #require(server.engine.state(of: server.scope))
    #expect(state.pendingCount == 1 && state.unsentCount == 0 && !state.isSynced)
    #expect(server.engine.isPending(server.canvas))
    server.scope.pauseIncoming()
    told.append(server.engine.state(of: server.scope)?.stall)
    server.scope.resumeIncoming()
    told.append(server.engine.state(of: server.scope)?.stall)
    server.loseSession()
    #expect(told == [.incomingPaused, nil])
    server.canvas.name = "b"
    server.scope.flush()
    state = try #require(server.engine.state(of: server.scope))
    #expect(state.pendingCount == 2 && state.unsentCount == 2 && !state.isUpToDate)
    #expect(server.engine.state(of: Scope(name: "Other", root: Canvas())) == nil)
  }

  /// A scope of a dial that is synced, and the dial.
  private func joinDial() -> (ScriptedServer, Dial) {
    let dial = Dial()
    let server = ScriptedServer(root: dial)
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let state = SyncFragment(
      .change, uuid: dial.uuid, className: "Dial", properties: ["angle": 0, "label": ""])
    server.grant(ScopePosition(epoch: "e", sequence: 0), [state])
    _ = server.takeSent()
    return (server, dial)
  }

  /// Ends the interval in which changes are collected, and accepts the change set.
  private func accept(_ server: ScriptedServer, at sequence: Int) throws {
    server.advance(by: server.scope.changeInterval)
    let sent = try #require(server.takeSyncs().last)
    server.deliver([
      .scopeSyncReply(
        ScopeSyncReply(
          replyTo: sent.index, fragmentReplies: [FragmentReply()], sequence: sequence))
    ])
  }

  @Test("A scope is not synced while a minimal sync interval holds a value back, which is reported")
  func heldBack() throws {
    let (server, dial) = joinDial()
    var state: SyncState? { server.engine.state(of: server.scope) }
    dial.angle = 1
    try accept(server, at: 1)
    #expect(server.states.last?.isSynced == true)
    dial.angle = 2
    server.advance(by: server.scope.changeInterval)
    #expect(server.takeSyncs().isEmpty && server.engine.isPending(dial))
    #expect(state?.pendingCount == 0 && state?.isSynced == false)
    #expect(server.states.last?.isSynced == false)
    // Another property is sent and accepted meanwhile.
    dial.label = "a"
    try accept(server, at: 2)
    #expect(state?.pendingCount == 0 && state?.isSynced == false)
    #expect(server.states.last?.isSynced == false)
    server.advance(by: .seconds(5))
    try accept(server, at: 3)
    #expect(state?.isSynced == true && server.states.last?.isSynced == true)
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A scope is not synced while changes of it are collected, also if they come to nothing")
  func collected() throws {
    let (server, dial) = joinDial()
    var state: SyncState? { server.engine.state(of: server.scope) }
    dial.label = "a"
    #expect(state?.pendingCount == 0 && state?.isSynced == false)
    dial.label = ""
    server.advance(by: server.scope.changeInterval)
    #expect(server.takeSyncs().isEmpty && state?.isSynced == true)
    #expect(server.states.last?.isSynced == true)
    server.scope.modify("nothing") {
      dial.label = "b"
      #expect(state?.isSynced == false)
      dial.label = ""
    }
    #expect(state?.isSynced == true && server.states.last?.isSynced == true)
  }

  @Test("A change that is sent and accepted is reported twice")
  func reportedTwice() throws {
    let (server, dial) = joinDial()
    let before = server.states.count
    for sequence in 1...3 {
      dial.label += "a"
      try accept(server, at: sequence)
    }
    #expect(server.states.dropFirst(before).map(\.pendingCount) == [1, 0, 1, 0, 1, 0])
    #expect(server.states.last?.isSynced == true)
  }

  @Test("A root that was changed before its first state is pending no more once that is decided")
  func rootBeforeState() throws {
    let server = ScriptedServer()
    server.connect()
    let own = server.canvas.uuid
    let change = SyncFragment(.change, uuid: own, className: "Canvas", properties: ["name": "mine"])
    let set = ChangeSet(
      fragments: [change],
      undo: [SyncFragment(.change, uuid: own, className: "Canvas", properties: ["name": .null])])
    // Another process has made the set and sent it under the server's name of the root, which it has not
    // kept any more.
    try server.engine.fetch(
      server.scope, params: [:],
      history: ReplicaHistory(
        client: UUID(), root: own, nextNumber: 2, records: [.made(number: 1, set)]),
      now: .zero, store: { _ in }, completion: { _ in })
    #expect(server.engine.isPending(server.canvas) && server.canvas.name == "mine")
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let root = UUID()
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 1, replyTo: 1, scopeIndex: 0,
          standing: ScopeStanding(
            position: ScopePosition(epoch: "e", sequence: 1), decided: 1,
            decisions: [.init(number: 1, fragmentReplies: [FragmentReply()], sequence: 1)]))),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: root,
          fragments: [
            SyncFragment(.add, uuid: root, className: "Canvas", properties: ["name": "mine"])
          ])))
    #expect(server.canvas.name == "mine" && server.canvas.uuid == root)
    #expect(server.engine.pendingCount == 0 && !server.engine.isPending(server.canvas))
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A scope whose session resumes is up to date once it has what it has missed")
  func resumed() throws {
    let world = InMemoryWorld()
    var records = 0
    _ = try world.server.host(world.scope, history: nil) { _ in records += 1 }
    let client = world.addClient()
    client.join()
    world.settle()
    #expect(client.engine.state(of: client.scope)?.isUpToDate == true)
    world.cut(try #require(client.link))
    world.canvas.name = "others"
    world.pass(5)
    // The server sends nothing that is not durable.
    var state = try #require(client.engine.state(of: client.scope))
    #expect(state.connection == .online && client.tokens.count == 2 && client.canvas.name == nil)
    #expect(!state.isUpToDate)
    world.server.stored(records, of: world.scope)
    world.exchange()
    state = try #require(client.engine.state(of: client.scope))
    #expect(state.isUpToDate && client.canvas.name == "others")
  }

  @Test("The answer to a client that resumes names the sequence at which it is up to date")
  func latest() {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    var ping = Ping(ack: 1, resendMissing: true)
    ping.latest = [
      Ping.Place(scopeIndex: 0, sequence: 9), Ping.Place(scopeIndex: 5, sequence: 20),
    ]
    server.receive(.ping(ping))
    var states: [Bool?] = []
    for sequence in [8, 9] {
      states.append(server.engine.state(of: server.scope)?.isUpToDate)
      var sync = ScopeSync(index: 0, scopeIndex: 0, fragments: [])
      sync.sequence = sequence
      server.receive(.scopeSync(sync))
    }
    #expect(states == [false, false])
    #expect(server.engine.state(of: server.scope)?.isUpToDate == true)
  }

  /// The connection is lost, and the client resumes the session; the server names its sequence.
  private func resume(_ server: ScriptedServer, receivedUpTo index: Int, latest sequence: Int) {
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    var ping = Ping(ack: index, resendMissing: true)
    ping.latest = [Ping.Place(scopeIndex: 0, sequence: sequence)]
    server.receive(.ping(ping))
  }

  /// Returns the sequences among these behind whose change sets the scope is up to date.
  private func upToDate(_ server: ScriptedServer, behind sequences: ClosedRange<Int>) -> [Int] {
    sequences.filter { sequence in
      var sync = ScopeSync(index: 0, scopeIndex: 0, fragments: [])
      sync.sequence = sequence
      server.receive(.scopeSync(sync))
      return server.engine.state(of: server.scope)?.isUpToDate == true
    }
  }

  @Test("A grant that was on its way when the connection was lost does not make its scope current")
  func resumedBeforeGrant() {
    let server = ScriptedServer()
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    resume(server, receivedUpTo: 1, latest: 9)
    server.grant(ScopePosition(epoch: "e", sequence: 7))
    #expect(server.engine.state(of: server.scope)?.isUpToDate == false)
    #expect(upToDate(server, behind: 8...10) == [9, 10])
  }

  @Test("Nor does the answer to a request for what the scope has missed", arguments: [true, false])
  func resumedBeforeAnswer(isWhole: Bool) throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    server.receive(
      text: isWhole
        ? ##"{"type":"ScopeSync","index":#,"scopeIndex":0,"fragments":[7]}"##
        : #"{"type":"ScopeSync","index":0,"scopeIndex":0,"fragments":[],"sequence":9}"#)
    let fetch = try #require(server.takeSent().last)
    resume(server, receivedUpTo: fetch.index, latest: 11)
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "e", sequence: 9), resumes: !isWhole)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: isWhole ? 4 : 3, replyTo: fetch.index, scopeIndex: 0, standing: standing)))
    if isWhole { server.receive(server.state(5)) }
    #expect(server.engine.state(of: server.scope)?.isUpToDate == false)
    #expect(upToDate(server, behind: isWhole ? 10...12 : 8...12) == [11, 12])
  }

  @Test("States can be followed, and uploads and downloads awaited")
  func live() async throws {
    let server = Server()
    let shared = Canvas()
    let scope = Scope(name: "Canvas", root: shared)
    server.host(scope)
    let port = try await server.listen()
    let one = try await Participant(port: port)
    let follower = Task { [one] in
      var states: [SyncState] = []
      for await state in one.client.syncStates(of: one.scope) {
        states.append(state)
        if states.count > 1, state.isSynced { break }
      }
      return states
    }
    await Task.yield()
    one.canvas.likes += 1
    #expect(one.client.isPending(one.canvas))
    try await one.client.waitForUpload(of: one.scope)
    #expect(!one.client.isPending(one.canvas))
    #expect(shared.likes == 1)
    let states = await follower.value
    #expect(states.first?.pendingCount == 0 && states.last?.isSynced == true)
    // What the server does while there is no connection is there after waiting for it.
    one.client.cutConnection()
    shared.name = "others"
    scope.flush()
    try await one.client.waitForDownload(of: one.scope)
    try await wait { one.canvas.name == "others" }
    await #expect(throws: SyncError.notFetched(scope: "Canvas")) {
      try await one.client.waitForUpload(of: scope)
    }
    let rest = Task { [one] in
      for await _ in one.client.syncStates(of: one.scope) {}
      return true
    }
    await Task.yield()
    one.canvas.likes += 1
    one.client.close()
    #expect(await rest.value)
    #expect(one.client.syncState(of: one.scope) == nil)
    await #expect(throws: SyncError.notFetched(scope: "Canvas")) {
      try await one.client.waitForDownload(of: one.scope)
    }
    await server.stop()
  }
}
