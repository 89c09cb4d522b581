import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Version 1 has no parts: a large state is read and encoded bit by bit, and sent in one message.
@Suite("Large states for clients of version 1", .paced)
struct WholeStateTests {
  private let world: InMemoryWorld
  private let writer: WorldClient

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = 2_000
    configuration.keptLimit.messages = 200
    world = InMemoryWorld(configuration: configuration)
    for _ in 0..<40 {
      let shape = Shape()
      for _ in 0..<4 { shape.parts.append(Shape()) }
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    writer = world.addClient(configuration: Self.quick)
    writer.join()
    world.settle()
    begin()
  }

  /// Acknowledges often, so that the server does not wait.
  private static var quick: ClientEngine.Configuration {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter.messages = 4
    return configuration
  }

  /// Lets the server forget the state, and encode from now on when the test says so.
  private func begin() {
    world.encodesAtOnce = false
    world.server.advance(to: world.now + .seconds(2))
    world.now += .seconds(2)
  }

  private var host: ScopeHost { world.server.hosts.values.first! }

  /// A peer with a session of version 1.
  private func peer() -> RawPeer {
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    return peer
  }

  /// The scope as a peer has it: the last state, with the changes behind it.
  private func content(of peer: RawPeer) throws -> String {
    let scope = Scope(name: "Canvas", root: Canvas(), ticker: Ticker.manual())
    var state: ScopeState?
    for message in peer.messages {
      switch message {
      case .scopeState(let whole):
        state = whole
        _ = try scope.applyFullState(whole.fragments, rootUUID: whole.rootUUID)
      case .scopeSync(let sync): _ = scope.apply(sync.fragments)
      default: break
      }
    }
    #expect(state?.more == false && state?.fragments.first?.uuid == state?.rootUUID)
    return scope.canonicalJSON
  }

  /// The types of the messages of a peer's scope, in order.
  private func types(of peer: RawPeer) -> [String] {
    #expect(peer.messages.map(\.index).filter { $0 > 0 } == Array(1..<peer.messages.count))
    return peer.messages.dropFirst().map(\.type)
  }

  private func replies(to peer: RawPeer) -> [Int] {
    peer.messages.compactMap {
      if case .scopeFetchReply(let reply) = $0 { reply.replyTo } else { nil }
    }
  }

  private func fetches(_ count: Int, by peer: RawPeer) -> [Message] {
    (0..<count).map { _ in peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) }
  }

  private func send(_ messages: [Message], by peer: RawPeer, endsFrame: Bool = true) {
    world.server.received(
      [
        .frame(
          .init(
            messages: .success(messages.map { .success($0) }), isArray: true,
            endsFrame: endsFrame))
      ], on: peer.link.id, now: world.now)
    peer.take()
  }

  @Test("A client is sent one state, which has what was changed while it was encoded")
  func current() throws {
    let reader = RawPeer.joined(world)
    var steps = 0
    while world.encode() {
      steps += 1
      if steps < 12 {
        #expect(reader.messages.count == 1)
        writer.canvas.shapes[steps].x += 1
        world.canvas.shapes[steps].parts.append(Shape())
        world.canvas.shapes.remove(at: 30 - steps)
      }
      world.exchange()
    }
    #expect(steps > 12)
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeState"])
    writer.canvas.name = "afterwards"
    world.settle()
    #expect(types(of: reader).dropFirst(2) == ["ScopeSync"])
    #expect(try content(of: reader) == world.scope.canonicalJSON)
    #expect(writer.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Clients that edit meanwhile, and one of version 2 that comes, agree in the end")
  func agreement() {
    let old = OldClient(world)
    world.exchange()
    let new = world.addClient(configuration: Self.quick)
    new.join()
    var steps = 0
    while world.encode() {
      steps += 1
      if steps.isMultiple(of: 3) { writer.canvas.shapes[steps % 40].x += 1 }
      if steps.isMultiple(of: 5) { world.canvas.shapes[steps % 40].label += "changed" }
      world.exchange()
    }
    old.canvas.shapes[3].label = "by the old client"
    world.encodesAtOnce = true
    world.settle()
    for scope in [old.scope, new.scope, writer.scope] {
      #expect(scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  @Test("A client that fetches a scope again is told changes until the new state comes")
  func again() throws {
    world.encodesAtOnce = true
    let reader = RawPeer.joined(world)
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeState"])
    begin()
    world.canvas.name = "changed"
    for shape in world.canvas.shapes { shape.x += 1 }
    world.exchange()
    send(fetches(1, by: reader), by: reader)
    writer.canvas.name = "meanwhile"
    world.exchange()
    reader.submit([
      SyncFragment(
        .change, uuid: world.canvas.shapes[0].uuid, className: "Shape", properties: ["y": 7])
    ])
    let before = ["ScopeFetchReply", "ScopeState", "ScopeSync", "ScopeSync", "ScopeSyncReply"]
    #expect(types(of: reader) == before)
    while world.encode() {}
    reader.take()
    #expect(types(of: reader) == before + ["ScopeFetchReply", "ScopeState"])
    #expect(try content(of: reader) == world.scope.canonicalJSON)
    #expect(reader.scopeIndex == 0 && world.canvas.shapes[0].y == 7)
  }

  @Test("Fetches of one frame are answered in order, with one state", arguments: [1, 3])
  func many(parts: Int) throws {
    let reader = peer()
    for part in 1...parts {
      send(fetches(30, by: reader), by: reader, endsFrame: part == parts)
      if part < parts { while world.encode() {} }
      reader.take()
      #expect(reader.messages.count == 1)
    }
    while world.encode() {}
    reader.take()
    #expect(replies(to: reader) == Array(1...30 * parts))
    #expect(types(of: reader).last == "ScopeState")
    #expect(types(of: reader).count { $0 == "ScopeState" } == 1)
    #expect(try content(of: reader) == world.scope.canonicalJSON)
  }

  @Test("Fetches of frames that come together are answered with one state", arguments: [0, 1])
  func together(known: Int) throws {
    let reader = peer()
    for _ in 0..<known { send(fetches(1, by: reader), by: reader) }
    while known > 0, world.encode() {}
    let frames = fetches(10, by: reader).map {
      ServerEngine.Input.frame(.init(messages: .success([.success($0)]), isArray: false))
    }
    world.server.received(frames, on: reader.link.id, now: world.now)
    while world.encode() {}
    reader.take()
    #expect(replies(to: reader) == Array(1...10 + known))
    #expect(types(of: reader).count { $0 == "ScopeState" } == 1 + known)
    #expect(try content(of: reader) == world.scope.canonicalJSON)
  }

  @Test("Sessions share the texts of the parts, and the joined one")
  func shared() {
    let readers = (0..<5).map { _ in RawPeer.joined(world) }
    var count = 0
    while world.encode() { count += 1 }
    for reader in readers {
      reader.take()
      #expect(types(of: reader) == ["ScopeFetchReply", "ScopeState"])
    }
    #expect(count > 10 && count <= host.states.last?.parts.count ?? 0)
    let late = RawPeer.joined(world)
    #expect(types(of: late) == ["ScopeFetchReply", "ScopeState"])
    world.canvas.shapes[7].x += 1
    world.exchange()
    let last = RawPeer.joined(world)
    #expect(types(of: last) == ["ScopeFetchReply", "ScopeState"] && !world.encode())
  }

  @Test("A fetch of a scope that never settles is answered all the same")
  func restless() throws {
    let reader = RawPeer.joined(world)
    var count = 0
    while world.encode() {
      count += 1
      for shape in world.canvas.shapes { shape.x += 1 }
      world.scope.flush()
      if reader.link.toClient.isEmpty == false { break }
    }
    let parts = host.states.last?.parts.count ?? 0
    #expect(parts > 10 && count > parts && count < 20 * parts)
    world.exchange()
    #expect(types(of: reader).prefix(2) == ["ScopeFetchReply", "ScopeState"])
    #expect(try content(of: reader) == world.scope.canonicalJSON)
  }

  @Test("A scope that is removed meanwhile refuses the fetches, and ends the sessions that have it")
  func removed() {
    world.encodesAtOnce = true
    let known = RawPeer.joined(world)
    begin()
    world.canvas.name = "changed"
    for shape in world.canvas.shapes { shape.x += 1 }
    let reader = peer()
    for peer in [known, reader] { send(fetches(2, by: peer), by: peer) }
    world.server.remove(world.scope, .gone("away"))
    for peer in [known, reader] { peer.take() }
    #expect(known.close?.code == 4097 && reader.close == nil)
    #expect(replies(to: reader) == [1, 2])
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeFetchReply"])
    for case .scopeFetchReply(let reply) in reader.messages { #expect(reply.error != nil) }
    world.encode()
    #expect(!world.encode())
  }

  @Test("A session that ends, or leaves, meanwhile is not sent the state")
  func gone() {
    world.encodesAtOnce = true
    let leaver = RawPeer.joined(world)
    begin()
    for shape in world.canvas.shapes { shape.x += 1 }
    send(fetches(1, by: leaver), by: leaver)
    leaver.send(leaver.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))))
    let ender = RawPeer.joined(world)
    world.cut(ender.link)
    world.now += .seconds(601)
    leaver.acknowledge()
    world.server.advance(to: world.now)
    // The writer's session ends as well.
    #expect(world.endedSessions.count == 2)
    while world.encode() {}
    leaver.take()
    #expect(leaver.messages.count { $0.type == "ScopeState" } == 1)
    #expect(host.audience.valueSessions == 0)
    world.server.advance(to: world.now + .seconds(2))
    #expect(host.states.size == 0)
  }

  @Test("A client that loses its connection meanwhile is sent the state when it is back")
  func resumed() throws {
    let reader = RawPeer.joined(world)
    let token = try #require(reader.token)
    world.cut(reader.link)
    let back = RawPeer(world, params: ["sessiontoken": token])
    back.send(.ping(Ping(ack: 0, resendMissing: true)))
    while world.encode() {}
    back.take()
    #expect(back.messages.map(\.type) == ["Ping", "ScopeFetchReply", "ScopeState"])
    #expect(try content(of: back) == world.scope.canonicalJSON)
  }

  @Test("A session with too many fetches without an answer ends")
  func flood() {
    let reader = peer()
    for _ in 0..<5 { send(fetches(50, by: reader), by: reader) }
    #expect(reader.close?.code == 4097 && replies(to: reader) == [])
    while world.encode() {}
    #expect(host.audience.valueSessions == 0)
  }

  @Test("A scope that the app does not offer itself is kept while a fetch of it waits")
  func kept() {
    let root = Canvas()
    for _ in 0..<100 { root.shapes.append(Shape()) }
    world.moreScopes["Other"] = Scope(name: "Other", root: root, ticker: Ticker.manual())
    let reader = peer()
    reader.send(reader.stamp(.scopeFetch(ScopeFetch(name: "Other"))))
    world.encode()
    world.server.advance(to: world.now)
    while world.encode() {}
    reader.take()
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeState"])
  }

  @Test("A state of one part is sent at once, until it grows")
  func small() {
    world.canvas.shapes = []
    world.exchange()
    begin()
    let reader = RawPeer.joined(world)
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeState"] && !world.encode())
    for _ in 0..<100 { world.canvas.shapes.append(Shape()) }
    let late = RawPeer.joined(world)
    #expect(types(of: late) == [])
    while world.encode() {}
    late.take()
    #expect(types(of: late) == ["ScopeFetchReply", "ScopeState"])
  }

  @Test("The app is asked again about a session whose open fetch of a scope was refused")
  func refusedRights() throws {
    var asked: [String] = []
    world.access = { _, name in
      asked.append(name)
      return .decided(.success(.readOnly))
    }
    let reader = RawPeer.joined(world)
    let session = try #require(world.server.sessions.values.first { $0.info.token == reader.token })
    #expect(replies(to: reader) == [] && session.subscriptions.access.knownNames == ["Canvas"])
    let refused = host
    world.server.remove(world.scope, .gone("away"))
    reader.take()
    #expect(replies(to: reader) == [1] && session.subscriptions.access.knownNames == [])
    #expect(session.subscriptions.access.name(of: refused) == nil)
    #expect(world.server.knownAccess(of: nil).isEmpty)
    world.access = { _, name in
      asked.append(name)
      return .decided(.failure(.notThere("There is no Canvas")))
    }
    send(fetches(1, by: reader), by: reader)
    #expect(replies(to: reader) == [1, 2] && asked == ["Canvas", "Canvas"])
    while world.encode() {}
    reader.take()
    #expect(types(of: reader) == ["ScopeFetchReply", "ScopeFetchReply"])
  }

  @Test("A session that has the scope keeps its rights when a later fetch is refused")
  func keptRights() throws {
    world.encodesAtOnce = true
    world.access = { _, _ in .decided(.success(.readOnly)) }
    let reader = RawPeer.joined(world)
    let session = try #require(world.server.sessions.values.first { $0.info.token == reader.token })
    begin()
    for shape in world.canvas.shapes { shape.x += 1 }
    world.scope.flush()
    send(fetches(1, by: reader), by: reader)
    world.server.refuseOpenFetches(of: host, by: session, .rejected("not now"))
    world.server.endTurn()
    reader.take()
    #expect(replies(to: reader) == [1, 2])
    #expect(session.subscriptions.access.knownNames == ["Canvas"])
  }
}
