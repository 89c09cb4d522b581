import Jetstream
import JetstreamServer
import Testing

@Suite("What a peer asks for many times at once is done once")
struct FloodTests {
  private func frame(_ messages: [Message]) -> String {
    String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self)
  }

  @Test("A frame with a thousand fetches of a scope is told its state once", arguments: [1, 2])
  func fetches(version: Int) {
    let world = InMemoryWorld()
    for _ in 0..<50 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    let peer = RawPeer(world)
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":\#(version),"params":{}}"#)
    peer.send(
      frame((0..<1000).map { _ in peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) }))
    #expect(peer.messages.count { $0.type == "ScopeFetchReply" } == 1000)
    let states = peer.messages.compactMap {
      if case .scopeState(let state) = $0 { state } else { nil }
    }
    #expect(states.map(\.fragments.count) == [51])
  }

  @Test(
    "A frame with a hundred fetches of a client that comes back is sent what it has missed once")
  func fetchesSince() {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world, protocol: 2)
    let start = world.server.positions[0]
    for number in 1...100 {
      world.canvas.name = "\(number)"
      world.scope.flush()
    }
    peer.take()
    let before = peer.syncs.count
    peer.send(
      frame(
        (0..<100).map { _ in
          peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", since: start)))
        }))
    #expect(peer.messages.count { $0.type == "ScopeFetchReply" } == 101)
    #expect(peer.syncs.count - before <= 100)
    #expect(peer.syncs.last?.sequence == start.sequence + 100)
  }

  @Test("Of each scope that is fetched in a frame, the client is sent the state if that is less")
  func statesOfSeveralScopes() throws {
    let world = InMemoryWorld()
    let notes = Canvas()
    let scope = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = scope
    let peer = RawPeer.joined(world, protocol: 2)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Notes"))))
    let start = Dictionary(uniqueKeysWithValues: world.server.positions.map { ($0.epoch, $0) })
    // Values do not count that later ones replace: additions do.
    for (scope, canvas) in [(world.scope, world.canvas), (scope, notes)] {
      for _ in 0..<400 {
        let shape = Shape()
        shape.label = String(repeating: "x", count: 1_000)
        canvas.shapes.append(shape)
        scope.flush()
        canvas.shapes.removeAll()
        scope.flush()
      }
    }
    peer.take()
    let before = peer.messages.count
    let fetches = ["Canvas", "Notes"].flatMap { name in
      start.values.map { peer.stamp(.scopeFetch(ScopeFetch(name: name, since: $0))) }
    }
    peer.send(frame(fetches))
    let told = peer.messages[before...]
    #expect(told.count { $0.type == "ScopeState" } >= 2)
    #expect(!told.contains { if case .scopeSync = $0 { true } else { false } })
  }

  @Test("A session for which too much waits ends within the frame")
  func overflow() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 20)
    let world = InMemoryWorld(configuration: configuration)
    let peer = RawPeer.joined(world)
    peer.acknowledge()
    let before = world.fetches.count
    peer.send(
      frame((0..<1000).map { _ in peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) }))
    #expect(peer.close?.code == 4097)
    #expect(world.fetches.count - before <= 21)
    #expect(world.endedSessions.count == 1)
  }

  @Test("A client is sent what it has missed once in a frame, and four times in a ping interval")
  func resends() {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world, protocol: 2)
    for number in 0..<20 {
      world.canvas.name = "\(number)"
      world.scope.flush()
    }
    peer.take()
    let request = Message.ping(Ping(ack: 0, resendMissing: true))
    func resent(by text: String) -> Int {
      let before = peer.syncs.count
      peer.send(text)
      return peer.syncs.count - before
    }
    #expect(resent(by: frame(Array(repeating: request, count: 2000))) == 20)
    for _ in 0..<3 { #expect(resent(by: frame([request])) == 20) }
    #expect(resent(by: frame([request])) == 0)
    world.advance(by: .seconds(9))
    peer.take()
    #expect(resent(by: frame([request])) == 0)
    world.advance(by: .seconds(1))
    let before = peer.syncs.count
    peer.take()
    #expect(peer.syncs.count - before == 20, "Nothing that was asked for is dropped.")
    // Another connection has lost something else.
    world.cut(peer.link)
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    again.send(frame([request]))
    #expect(again.syncs.count == 20)
  }

  @Test("A client may call a scope different once for each digest that it was told")
  func differences() throws {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world, protocol: 2)
    var ping = Ping(ack: 0)
    ping.differences = [Ping.Difference(scopeIndex: 0, parts: .init(repeating: 0, count: 256))]
    peer.send(.ping(ping))
    #expect(peer.syncs.filter(\.repairs).isEmpty)
    for round in 1...3 {
      world.advance(by: .seconds(11))
      peer.take()
      peer.send(frame(Array(repeating: .ping(ping), count: 1000)))
      peer.send(.ping(ping))
      #expect(peer.syncs.count(where: \.repairs) == round)
    }
  }

  @Test("Nothing waits for a client that is away, and it is told all when it is back")
  func away() throws {
    let world = InMemoryWorld()
    let client = world.addClient()
    client.join()
    world.settle()
    client.wantsOnline = false
    world.cut(try #require(client.link))
    for _ in 0..<1000 {
      world.canvas.likes += 1
      world.scope.flush()
    }
    #expect(world.server.restingTables["sent", default: 0] <= 1)
    client.wantsOnline = true
    world.settle()
    #expect(client.canvas.likes == 1000 && world.endedSessions.isEmpty)
    #expect(client.engine.state(of: client.scope)?.isUpToDate == true)
  }

  @Test("A session of version 1 that is away ends once too much waits for it")
  func awayOfVersion1() {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world)
    peer.acknowledge()
    world.cut(peer.link)
    for _ in 0..<250 {
      world.canvas.likes += 1
      world.scope.flush()
    }
    world.advance(by: .seconds(1))
    #expect(world.endedSessions.isEmpty)
    for _ in 0..<10 {
      world.canvas.likes += 1
      world.scope.flush()
    }
    world.advance(by: .seconds(1))
    #expect(world.endedSessions.count == 1 && world.server.sessionCount == 0)
  }

  @Test("A session of version 1 that comes back is told what it has missed")
  func returnOfVersion1() throws {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world)
    peer.acknowledge()
    world.cut(peer.link)
    for _ in 0..<100 {
      world.canvas.likes += 1
      world.scope.flush()
    }
    #expect(world.server.restingTables["sent", default: 0] <= 1)
    #expect(world.server.restingTables["touched", default: 0] == 0)
    let again = RawPeer(world, params: ["sessiontoken": try #require(peer.token)])
    again.send(frame([Ping(ack: 0, resendMissing: true)].map { .ping($0) }))
    #expect(again.syncs.suffix(100).map(\.fragments.count) == Array(repeating: 1, count: 100))
    #expect(again.syncs.last?.fragments[0].properties["likes"] == 100)
    // What comes now is told at once.
    world.canvas.likes += 1
    world.scope.flush()
    again.take()
    #expect(again.syncs.last?.fragments[0].properties["likes"] == 101)
  }

  @Test("A session that has never fetched ends seconds after its connection")
  func unused() {
    let world = InMemoryWorld()
    let idle = RawPeer(world)
    idle.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    let gone = RawPeer(world)
    gone.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    let back = RawPeer(world)
    back.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    let user = RawPeer.joined(world)
    for peer in [gone, back, user] { world.cut(peer.link) }
    world.advance(by: .seconds(4))
    _ = RawPeer(world, params: ["sessiontoken": back.token!])
    world.advance(by: .seconds(2))
    #expect(world.endedSessions.map(\.token) == [gone.token])
    #expect(world.server.sessionCount == 3)
  }

  @Test("A session with too many fetches that wait for a state ends within the frame")
  func waitingFetches() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 200)
    configuration.stateBytes = 1_000
    let world = InMemoryWorld(configuration: configuration)
    for _ in 0..<50 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    world.encodesAtOnce = false
    func fetches(_ count: Int, of peer: RawPeer) -> String {
      frame((0..<count).map { _ in peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) })
    }
    let patient = RawPeer.joined(world, protocol: 2)
    patient.send(fetches(99, of: patient))
    let peer = RawPeer.joined(world, protocol: 2)
    let before = world.fetches.count
    peer.send(fetches(1000, of: peer))
    #expect(peer.close?.code == 4097)
    #expect(world.fetches.count - before <= 201)
    #expect(world.endedSessions.count == 1)
    #expect(patient.messages.count { $0.type == "ScopeFetchReply" } == 0)
    while world.encode() {}
    patient.take()
    #expect(patient.messages.count { $0.type == "ScopeFetchReply" } == 100)
    #expect(patient.close == nil && world.endedSessions.count == 1)
  }
}
