import Foundation
import Jetstream
import JetstreamServer
import Testing

/// What version 2 of the protocol adds: sets that are sent as they were made, under a name and a number,
/// and a stream with places.
@Suite("Version 2 of the protocol")
struct ProtocolTwoTests {
  private let world = InMemoryWorld()

  private func join(_ configuration: ClientEngine.Configuration = .init()) -> WorldClient {
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    return client
  }

  private func append(_ label: String, to canvas: Canvas) {
    let shape = Shape()
    shape.label = label
    canvas.shapes.append(shape)
  }

  private func labels(_ canvas: Canvas) -> [String] { canvas.shapes.map(\.label) }

  /// The session of a client ends; it gets another one.
  private func expire(_ client: WorldClient) {
    if let link = client.link { world.cut(link) }
    world.server.advance(to: world.now + .seconds(3600))
  }

  private func expectEqual(
    _ clients: WorldClient..., sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for client in clients {
      #expect(
        client.scope.canonicalJSON == world.scope.canonicalJSON, sourceLocation: sourceLocation)
    }
  }

  @Test("Both sides agree on the highest version that they have in common", arguments: [1, 2, 7])
  func negotiation(highest: Int) {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = highest
    let client = join(configuration)
    #expect(client.engine.session.version == min(highest, 2))
    append("a", to: client.canvas)
    world.settle()
    expectEqual(client)
  }

  @Test("A change of a collection costs what was done to it, both ways")
  func operations() {
    for _ in 0..<200 { world.canvas.shapes.append(Shape()) }
    let (one, two) = (join(), join())
    one.sent = []
    one.canvas.shapes.remove(at: 100)
    world.settle()
    let frame = one.sent.first {
      $0.count > 40 && String(decoding: $0, as: UTF8.self).contains("ScopeSync")
    }
    #expect(frame.map(\.count) ?? .max < 400)
    #expect(world.canvas.shapes.count == 199)
    expectEqual(one, two)
  }

  @Test("Counters of several clients add up, and so do those of an older one")
  func counters() {
    let (one, two) = (join(), join())
    world.canvas.likes = 10
    world.settle()
    one.canvas.likes += 2
    two.canvas.likes += 3
    one.scope.flush()
    two.scope.flush()
    world.settle()
    #expect(world.canvas.likes == 15)
    expectEqual(one, two)
  }

  @Test("A set that arrives again, in another session, is applied once and answered as before")
  func exactlyOnce() throws {
    let (one, two) = (join(), join())
    one.canvas.likes += 1
    append("once", to: one.canvas)
    one.scope.flush()
    let link = try #require(one.link)
    world.deliver(link, toServer: true)
    #expect(world.canvas.likes == 1)
    // The reply is lost with the session.
    expire(one)
    world.settle()
    #expect(world.canvas.likes == 1 && labels(world.canvas) == ["once"])
    #expect(one.engine.pendingCount == 0 && one.rejections.isEmpty)
    expectEqual(one, two)
  }

  @Test("What was rejected before the session was lost is not tried again")
  func rejectedOnce() throws {
    let one = join()
    append("theirs", to: world.canvas)
    world.settle()
    one.canvas.shapes[0].label = "mine"
    world.canvas.shapes.removeAll()
    world.scope.flush()
    one.scope.flush()
    world.deliver(try #require(one.link), toServer: true)
    let sequence = world.server.positions[0].sequence
    expire(one)
    world.settle()
    #expect(one.rejections.count == 1 && world.server.positions[0].sequence == sequence)
    expectEqual(one)
  }

  @Test(
    "A model that is added again in the frame in which our change of it is accepted has our value")
  func acceptedWithAddition() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    let (root, shape) = (server.canvas.uuid, Shape())
    func told(_ sequence: Int, _ fragments: SyncFragment...) -> Message {
      var sync = ScopeSync(scopeIndex: 0, fragments: fragments)
      sync.sequence = sequence
      return .scopeSync(sync)
    }
    func change(_ operations: PropertyOperations) -> SyncFragment {
      SyncFragment(
        .change, uuid: root, className: "Canvas", properties: [:], operations: operations)
    }
    let addition = SyncFragment(
      .add, uuid: shape.uuid, className: "Shape", properties: ["label": "theirs"])
    server.deliver([told(8, addition, change(["shapes": [.insert(shape.uuid, .end)]]))])
    let known = try #require(server.canvas.shapes.first)
    known.label = "mine"
    server.scope.flush()
    server.canvas.shapes.removeAll()
    server.scope.flush()
    let sent = server.takeSyncs().map(\.index)
    #expect(sent.count == 2)
    // Others have taken it out and put it back, somewhere else.
    let reply = ScopeSyncReply(
      replyTo: sent[0], fragmentReplies: [FragmentReply()], sequence: 11)
    server.deliver([
      told(9, change(["shapes": [.remove(shape.uuid)]])),
      told(10, addition, change(["hidden": [.insert(shape.uuid, .end)]])),
      .scopeSyncReply(reply),
    ])
    #expect(server.canvas.hidden.map(\.label) == ["mine"])
    #expect(server.engine.checkInvariants().isEmpty)
  }

  @Test("After a lost session a client is sent what it missed, not the state")
  func resume() throws {
    let (one, two) = (join(), join())
    world.cut(try #require(one.link))
    for number in 0..<5 {
      append("\(number)", to: two.canvas)
      two.scope.flush()
    }
    append("mine", to: one.canvas)
    one.scope.flush()
    expire(one)
    var states = 0
    world.onDeliver = { link, toServer in
      guard !toServer, link.peer === one, let frame = link.toClient.first else { return }
      if String(decoding: frame, as: UTF8.self).contains("ScopeState") { states += 1 }
    }
    world.settle()
    #expect(states == 0 && one.canvas.shapes.count == 6)
    expectEqual(one, two)
  }

  @Test("Of two moves of one model the first one counts, and there is one copy of it everywhere")
  func moves() throws {
    append("moved", to: world.canvas)
    let (one, two) = (join(), join())
    for client in [one, two] {
      let shape = client.canvas.shapes[0]
      client.canvas.shapes.remove(shape)
      if client === one {
        client.canvas.hidden.append(shape)
      } else {
        client.canvas.selected = shape
      }
      if client === two { client.canvas.hidden.insert(shape, at: 0) }
      client.scope.flush()
    }
    world.settle()
    #expect(world.canvas.shapes.isEmpty && world.canvas.hidden.count == 1)
    expectEqual(one, two)
  }

  @Test(
    "A server that has lost its history: what is pending is sent again, or taken back",
    arguments: [
      HistoryLoss.recover, .discard,
    ])
  func historyLost(policy: HistoryLoss) {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = policy
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "old", sequence: 7))
    server.canvas.name = "pending"
    server.scope.flush()
    let pending = server.takeSyncs()
    #expect(pending.map(\.number) == [1])
    server.loseSession()
    let fetch = server.takeSent().last
    guard case .scopeFetch(let body)? = fetch else {
      Issue.record("The scope was not fetched again.")
      return
    }
    #expect(body.since == ScopePosition(epoch: "old", sequence: 7) && body.decided == 0)
    server.grant(ScopePosition(epoch: "new", sequence: 2))
    #expect(server.historyLosses == 1)
    switch policy {
    case .recover:
      #expect(server.canvas.name == "pending" && server.takeSyncs().map(\.number) == [1])
    case .discard:
      #expect(server.canvas.name == nil && server.takeSyncs().isEmpty)
      #expect(server.rejections.count == 1 && server.engine.pendingCount == 0)
    }
  }

  @Test(
    "Of what is pending when history is lost, only that is taken back which the server does not have"
  )
  func keptAndLost() {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = .discard
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "old", sequence: 7))
    let kept = server.scope.modify { server.canvas.name = "kept" }
    let lost = server.scope.modify { server.canvas.likes += 5 }
    server.loseSession()
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "new", sequence: 8), decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [FragmentReply()], sequence: 8)])
    let root = SyncFragment(
      .change, uuid: server.scope.root!.uuid, className: "Canvas",
      properties: ["name": "kept", "shapes": [], "hidden": []])
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(index: 2, scopeIndex: 0, rootUUID: root.uuid, fragments: [root])))
    #expect(server.historyLosses == 1 && server.engine.pendingCount == 0)
    #expect(kept.state == .accepted && lost.state == .rejected)
    #expect(server.canvas.name == "kept" && server.canvas.likes == 0)
    #expect(server.scope.conflicts.items.map(\.property) == ["likes"])
  }

  @Test("What is taken back and written by another client in one frame shows what the client wrote")
  func takenBackAndWritten() {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = .discard
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "old", sequence: 7))
    server.canvas.name = "the same"
    server.scope.flush()
    server.loseSession()
    let standing = ScopeStanding(position: ScopePosition(epoch: "new", sequence: 2))
    let root = SyncFragment(
      .change, uuid: server.scope.root!.uuid, className: "Canvas",
      properties: ["name": .null, "shapes": [], "hidden": []])
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Canvas", properties: ["name": "the same"])
    var told = ScopeSync(index: 3, scopeIndex: 0, fragments: [change])
    told.sequence = 3
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
      .scopeState(ScopeState(index: 2, scopeIndex: 0, rootUUID: root.uuid, fragments: [root])),
      .scopeSync(told))
    #expect(server.engine.pendingCount == 0 && server.canvas.name == "the same")
  }

  @Test("A server that has gone back is asked for its state, whatever else it has done since")
  func goneBack() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "same", sequence: 7))
    server.engine.setMode(.paused, of: server.scope, now: server.now)
    func takeFetch() throws -> ScopeFetch {
      let fetches = server.takeSent().compactMap {
        if case .scopeFetch(let fetch) = $0 { fetch } else { nil }
      }
      return try #require(fetches.last)
    }
    let first = try takeFetch()
    let back = ScopeStanding(position: ScopePosition(epoch: "same", sequence: 5), resumes: true)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 3, replyTo: first.index, scopeIndex: 0, standing: back)))
    // By the time this arrives, the server may be at 7 again, of another past.
    let second = try takeFetch()
    #expect(first.since?.sequence == 7 && second.since == nil && second.tell == .missed)
    // Nor is that forgotten with the session, before the state has come.
    server.loseSession()
    #expect(try takeFetch().since == nil)
    server.grant(ScopePosition(epoch: "same", sequence: 9))
    #expect(server.historyLosses == 1)
  }

  @Test("A set whose place was told before its decision is decided all the same, and counts once")
  func toldBeforeDecided() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "same", sequence: 7))
    server.canvas.likes += 2
    server.canvas.name = "mine"
    server.scope.flush()
    func takeFetches() -> [ScopeFetch] {
      server.takeSent().compactMap { if case .scopeFetch(let fetch) = $0 { fetch } else { nil } }
    }
    server.loseSession()
    #expect(takeFetches().map(\.tell) == [.everything])
    let before = ScopeStanding(position: ScopePosition(epoch: "same", sequence: 7), resumes: true)
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: before)))
    // Now the server has got the set, in a frame of the session before.
    var told = ScopeSync(
      scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: server.canvas.uuid, className: "Canvas", properties: ["name": "mine"],
          operations: ["likes": [.add(2)]])
      ])
    (told.index, told.sequence) = (2, 8)
    server.receive(.scopeSync(told))
    #expect(server.engine.pendingCount == 1)
    // Then nothing is wanted any more.
    server.engine.setMode(.paused, of: server.scope, now: server.now)
    let fetch = try #require(takeFetches().first)
    #expect(fetch.tell == .nothing && server.engine.pendingCount == 1)
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "same", sequence: 8), resumes: true, decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [FragmentReply()], sequence: 8)])
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 3, replyTo: fetch.index, scopeIndex: 0, standing: standing)))
    #expect(server.engine.pendingCount == 0)
    #expect(server.canvas.likes == 2 && server.canvas.name == "mine")
    #expect(server.engine.checkInvariants().isEmpty)
  }

  @Test("A client that the server takes for another one takes another name")
  func anotherIdentity() {
    var names: [UUID] = []
    var configuration = ClientEngine.Configuration()
    configuration.makeClientID = {
      names.append(UUID())
      return names.last!
    }
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "same", sequence: 7))
    server.canvas.name = "pending"
    server.scope.flush()
    let index = server.takeSyncs().first?.index ?? 0
    server.reply(to: index, FragmentReply(error: .setNumberReused(1)))
    #expect(names.count == 1 && server.engine.configuration.clientID == names.first)
    #expect(server.canvas.name == "pending" && server.engine.pendingCount == 1)
    server.advance(by: .seconds(1))
    server.open()
    guard case .sessionCreate(let request)? = server.takeSent().last else {
      Issue.record("No session was asked for.")
      return
    }
    #expect(request.client == names.first && request.protocol == 2)
  }
}

@Suite("Two who call themselves the same")
struct SameNameTests {
  @Test("A set whose number another one has had is not taken for that one")
  func sameName() {
    let world = InMemoryWorld()
    let configuration = ClientEngine.Configuration()
    // As after a copy of a disk: both have this name, and number their sets alike.
    let one = world.addClient(configuration: configuration)
    let two = world.addClient(configuration: configuration)
    for client in [one, two] { client.join() }
    world.settle()
    for number in 1...3 {
      one.canvas.likes = number
      one.scope.flush()
    }
    two.canvas.name = "not lost"
    two.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    world.settle()
    #expect(world.canvas.name == "not lost" && world.canvas.likes == 3)
    #expect(one.canvas.name == "not lost" && two.canvas.likes == 3)
    #expect(one.scope.canonicalJSON == two.scope.canonicalJSON)
  }
}
