import Foundation
import Jetstream
import JetstreamWebSocket
import Testing

@testable import JetstreamServer

@Suite("Sessions on the server")
struct SessionTests {
  @Test("The application sees version and parameters, and its reason for denying arrives")
  func authorization() {
    let world = InMemoryWorld()
    var seen: [SessionInfo] = []
    world.authenticate = { session in
      seen.append(session)
      return session.params == ["key": "right"]
        ? .accepted() : .denied(.rejected("The key is wrong"))
    }
    let bad = RawPeer(world, params: ["app": "a"])
    bad.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{"key":"wrong"}}"#)
    guard case .sessionCreateReply(let reply)? = bad.messages.first else {
      Issue.record("There is no reply.")
      return
    }
    #expect(reply.error == .rejected("The key is wrong"))
    #expect(bad.close?.code == 4096 && bad.close?.reason.contains("The key is wrong") == true)
    #expect(seen[0].connectionParams == ["app": "a"] && seen[0].version == "0.1.0")
    let good = RawPeer(world)
    good.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{"key":"right"}}"#)
    #expect(good.token == "token2" && world.server.sessionCount == 1)

    let client = world.addClient()
    client.wantsOnline = false
    client.join()
    world.settle()
    #expect(client.events.contains { $0.contains("The key is wrong") })
    #expect(throws: SyncError.sessionDenied(reason: "The key is wrong")) {
      try client.fetchResult?.get()
    }
  }

  @Test("Parameters come from headers and query, the query wins")
  func connectionParams() {
    let headers: HTTPHeaders = [
      "X-Jetstream-App-Version": "1", "x-jetstream-sessionTOKEN": "header", "Other": "no",
    ]
    let request = HTTPRequest(
      method: "GET", target: "/a?X-JETSTREAM-sessiontoken=q%20r&x-jetstream-Name&b=1",
      headers: headers)
    #expect(
      ConnectionParams.read(from: request)
        == ["app-version": "1", "sessiontoken": "q r", "Name": ""])
  }

  @Test("A client that says nothing is refused after ten seconds")
  func silence() {
    let world = InMemoryWorld()
    let peer = RawPeer(world)
    world.advance(by: .seconds(9.9))
    peer.take()
    #expect(peer.close == nil)
    world.advance(by: .seconds(0.1))
    peer.take()
    #expect(peer.close?.code == 4096)
    #expect(peer.close?.reason == WireError.sessionEstablishTimedOut.json.text)
    #expect(world.server.connectionCount == 0)
  }

  @Test("A token resumes the session: nothing is sent before the client has spoken")
  func resume() {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world)
    world.cut(peer.link)
    world.canvas.name = "meanwhile"
    world.scope.flush()
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    again.take()
    #expect(again.messages.isEmpty)
    again.send(.ping(Ping(ack: 2, resendMissing: true)))
    #expect(again.frames == [2])
    #expect(again.messages.first == .ping(Ping(ack: 1, resendMissing: true)))
    #expect(again.syncs.first?.fragments.first?.properties["name"] == "meanwhile")
    let third = RawPeer(world, params: ["sessiontoken": peer.token!])
    again.take()
    #expect(again.close?.code == 1000, "the old connection is replaced")
    third.send(third.stamp(.scopeFetch(ScopeFetch(index: 0, name: "Nope"))))
    let stranger = RawPeer(world, params: ["sessiontoken": "nonsense"])
    stranger.take()
    #expect(stranger.close?.code == 4096)
    #expect(stranger.close?.reason == WireError.sessionTokenUnrecognized.json.text)
  }

  @Test("A session that expires while too much waits for it ends once")
  func expiresOverflowing() {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = 1
    configuration.absentLimit.messages = 4
    let world = InMemoryWorld(configuration: configuration)
    let client = world.addClient()
    client.join()
    world.settle()
    for number in 0..<8 {
      world.canvas.likes = number + 1
      world.scope.flush()
    }
    world.server.advance(to: world.now + .seconds(601))
    #expect(world.server.sessionCount == 0 && world.endedSessions.count == 1)
  }

  @Test(
    "A session that the app ends while its message is handled has no part in what follows",
    arguments: [1, 2], ["fetch", "set", "call"])
  func endedMeanwhile(version: Int, message: String) {
    let world = InMemoryWorld()
    world.procedures["Canvas.edit"] = ServedProcedure(takesArguments: false) { request in
      Issue.record("It is called.")
      try? request.commit { (_: Canvas) in }
    }
    let (peer, other) = (RawPeer.joined(world, protocol: version), RawPeer.joined(world))
    if message == "fetch" { peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 1)))) }
    let token = peer.token!
    let listener = world.scope.onChanges.listen { _ in
      world.server.endSession(token, telling: .rejected("out"))
    }
    world.canvas.name = "by the app"
    if message == "fetch" {
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    } else {
      let change = SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["likes": 7])
      var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: [change])
      if message == "call" { (sync.procedure, sync.atomic) = ("Canvas.edit", true) }
      peer.send(peer.stamp(.scopeSync(sync)))
    }
    listener.cancel()
    #expect(world.endedSessions.count == 1 && peer.close != nil)
    #expect(world.canvas.likes == 0 && world.server.checkInvariants() == [])
    let reply = other.submit([
      SyncFragment(.change, uuid: world.canvas.uuid, className: "Canvas", properties: ["likes": 1])
    ])
    #expect(reply == [FragmentReply()] && world.canvas.likes == 1)
    world.exchange()
  }

  @Test("The app is told once of the end of each session, also if it ends the others then")
  func toldOnce() {
    let world = InMemoryWorld()
    world.authenticate = { _ in .accepted(Principal("ann")) }
    let peers = (0..<3).map { _ in RawPeer(world) }
    for peer in peers { peer.createSession() }
    world.onSessionEnd = { [unowned world] in
      _ = world.server.revoke("ann", telling: .rejected("out"))
    }
    world.advance(by: .seconds(601))
    #expect(world.endedSessions.count == 3 && Set(world.endedSessions.map(\.token)).count == 3)
  }

  @Test("After ten minutes without a word a session is gone with all that it held")
  func expiry() {
    let world = InMemoryWorld()
    weak var away: Scope?
    weak var removed: Shape?
    do {
      let scope = Scope(name: "Away", root: Canvas(), ticker: Ticker.manual())
      away = scope
      world.moreScopes["Away"] = scope
      let shape = Shape()
      removed = shape
      world.canvas.shapes.append(shape)
      world.scope.flush()
    }
    let peer = RawPeer.joined(world)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Away"))))
    world.moreScopes = [:]
    world.canvas.shapes.removeAll()
    world.scope.flush()
    peer.take()
    #expect(away != nil && removed != nil, "the session may still refer to both")
    world.advance(by: .seconds(599))
    peer.send(.ping(Ping(ack: 0)))
    world.advance(by: .seconds(599))
    #expect(world.server.sessionCount == 1)
    world.advance(by: .seconds(1))
    peer.take()
    #expect(peer.close?.code == 4097 && world.server.sessionCount == 0)
    #expect(world.endedSessions.map(\.token) == [peer.token!])
    world.advance(by: .seconds(1))
    #expect(away == nil && removed == nil)
    let late = RawPeer(world, params: ["sessiontoken": peer.token!])
    late.take()
    #expect(late.close?.code == 4096)
  }

  @Test("What everybody has seen is forgotten")
  func horizon() {
    let world = InMemoryWorld()
    weak var removed: Shape?
    do {
      let shape = Shape()
      removed = shape
      world.canvas.shapes.append(shape)
      world.scope.flush()
    }
    let peer = RawPeer.joined(world)
    world.canvas.shapes.removeAll()
    world.scope.flush()
    world.advance(by: .seconds(1))
    #expect(removed != nil)
    peer.take()
    peer.acknowledge()
    world.advance(by: .seconds(1))
    #expect(removed == nil)
  }

  @Test("A session that acknowledges nothing is ended at its bound")
  func keptLimit() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 100)
    let world = InMemoryWorld(configuration: configuration)
    let peer = RawPeer.joined(world)
    for round in 0..<200 {
      world.canvas.name = "\(round)"
      world.scope.flush()
    }
    peer.take()
    #expect(peer.close?.code == 4097 && world.server.sessionCount == 0)
  }

  @Test("A state that is larger by itself than what may wait is sent")
  func stateAboveKeptLimit() throws {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit.bytes = 1_000
    let world = InMemoryWorld(configuration: configuration)
    world.canvas.name = String(repeating: "x", count: 2_000)
    world.scope.flush()
    let peer = RawPeer.joined(world, protocol: 2)
    try #require(peer.close == nil && world.server.sessionCount == 1)
    let states = peer.messages.filter { if case .scopeState = $0 { true } else { false } }
    #expect(states.count == 1)
    peer.acknowledge()
    #expect(world.server.sessions.values.allSatisfy { $0.channel.keptBytes == 0 })
  }

  @Test("Names choose scopes, an unknown one is denied with the application's reason")
  func scopes() {
    let world = InMemoryWorld()
    let notes = Canvas()
    world.moreScopes["Notes"] = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    let peer = RawPeer.joined(world)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Notes", params: ["page": 3]))))
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Other"))))
    let replies = peer.messages.compactMap { message -> ScopeFetchReply? in
      if case .scopeFetchReply(let reply) = message { reply } else { nil }
    }
    #expect(replies.map(\.scopeIndex) == [0, 1, nil])
    #expect(replies[2].error == .rejected("There is no scope Other"))
    #expect(world.fetches.map(\.params) == [[:], ["page": 3], [:]])
    notes.name = "only here"
    world.moreScopes["Notes"]?.flush()
    peer.take()
    #expect(peer.syncs.map(\.scopeIndex) == [1])
  }

  @Test("A scope that only a fetch has made known stays hosted for as long as a session has it")
  func fetchedScopeStays() {
    let world = InMemoryWorld()
    let notes = Canvas()
    world.moreScopes["Notes"] = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    let peer = RawPeer.joined(world)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Notes"))))
    world.advance(by: .seconds(1))
    peer.acknowledge()
    notes.name = "still told"
    world.moreScopes["Notes"]?.flush()
    peer.take()
    #expect(peer.syncs.map(\.scopeIndex) == [1])
  }
}
