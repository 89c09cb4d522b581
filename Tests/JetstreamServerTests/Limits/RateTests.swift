import Foundation
import Jetstream
import JetstreamWebSocket
import Pacing
import Testing

@testable import JetstreamServer

@Suite("Rates at which a session may send")
struct RateTests {
  private func world(_ change: (inout ServerLimits) -> Void) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    change(&configuration.limits)
    return InMemoryWorld(configuration: configuration)
  }

  private func frame(_ messages: [Message]) -> String {
    String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self)
  }

  /// Sends change sets in one frame, and returns the time for which the server does not read on.
  private func send(_ count: Int, from peer: RawPeer) -> Duration {
    let root = peer.world.canvas.uuid
    peer.send(
      frame(
        (0..<count).map { number in
          let naming = SyncFragment(
            .change, uuid: root, className: "Canvas", properties: ["name": .string("\(number)")])
          return peer.stamp(
            .scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: [naming])))
        }))
    return peer.link.pause
  }

  private func errors(of peer: RawPeer) -> [WireError] {
    var errors: [WireError] = []
    for case .scopeSyncReply(let reply) in peer.messages {
      errors += reply.fragmentReplies.compactMap(\.error)
    }
    return errors
  }

  @Test("Ten seconds' worth of tokens may be taken at once, and then as many as come")
  func bucket() {
    var bucket = TokenBucket(perSecond: 100)
    #expect(bucket.take(1_000, at: .seconds(5)) == .zero)
    #expect(bucket.take(1, at: .seconds(5)) == .milliseconds(10))
    #expect(bucket.take(0, at: .seconds(5)) == .zero)
    #expect(bucket.take(50, at: .milliseconds(5_200)) == .milliseconds(310))
    #expect(bucket.take(31, at: .milliseconds(6_020)) == .zero)
    #expect(bucket.take(1_000, at: .seconds(60)) == .zero, "It holds no more than that.")
    #expect(bucket.take(1, at: .seconds(60)) == .milliseconds(10))
    var unlimited = TokenBucket(perSecond: nil)
    #expect(unlimited.take(.max, at: .zero) == .zero)
  }

  @Test("A session that sends too many change sets is left unread, and loses none of them")
  func changeSets() {
    let world = world { $0.changeSetsPerSecond = 10 }
    let client = world.addClient()
    client.join()
    world.settle()
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(send(100, from: peer) == .zero && world.limitHits == [:])
    #expect(send(40, from: peer) == .seconds(4) && world.limitHits == [.changeSetsPerSecond: 1])
    #expect(world.canvas.name == "39" && errors(of: peer) == [] && peer.close == nil)
    client.canvas.likes = 1
    world.settle()
    #expect(client.link?.pause == .zero && world.canvas.likes == 1 && client.canvas.name == "39")
    world.advance(by: .seconds(4))
    #expect(send(1, from: peer) == .milliseconds(100))
    world.advance(by: .seconds(30))
    #expect(send(100, from: peer) == .zero)
    #expect(client.tokens == [nil] && client.rejections == [])
  }

  @Test("Ten thousand change sets, fetches or pings at once are within the default limits")
  func burst() {
    var traffic = ClientTraffic(ServerLimits())
    traffic.load = .init(
      changeSets: 10_000, bytes: 16 << 20, fetches: 10_000, fullStates: 10_000, pings: 10_000)
    var hits: [ServerLimit] = []
    #expect(traffic.charge(at: .seconds(5)) { hits.append($0) } == .zero && hits == [])
    traffic.load.fetches = 1
    #expect(traffic.charge(at: .seconds(5)) { hits.append($0) } == .milliseconds(1))
    #expect(hits == [.fetchesPerSecond])
    #expect(InMemoryWorld().server.hosts.values.allSatisfy { $0.audience.rates == nil })
  }

  @Test("A session that is held up is not let go sooner for another, shorter pause")
  func shorterPause() {
    var traffic = ClientTraffic(ServerLimits())
    for (time, pause) in [(1, 10), (2, 1), (3, 2)] {
      traffic.load.pause = .seconds(pause)
      #expect(traffic.charge(at: .seconds(time)) { _ in } == .seconds(pause))
    }
    #expect(traffic.heldUntil == .seconds(11))
    traffic.load.pause = .seconds(1)
    #expect(traffic.charge(at: .seconds(13)) { _ in } == .seconds(1))
    #expect(traffic.heldUntil == .seconds(14))
  }

  @Test("A session that sends too many bytes is left unread")
  func bytes() {
    let world = world { $0.bytesPerSecond = 1_000 }
    let peer = RawPeer.joined(world, protocol: 2)
    func receive(_ size: Int) -> Duration {
      let ping = ServerEngine.Frame(
        messages: .success([.success(.ping(Ping(ack: 0)))]), isArray: false, size: size)
      return world.server.received([.frame(ping)], on: peer.link.id, now: world.now)
    }
    #expect(receive(9_000) == .zero)
    #expect(receive(4_000) == .seconds(3))
    #expect(world.limitHits == [.bytesPerSecond: 1])
  }

  @Test("Fetches, full states and pings have rates of their own")
  func others() {
    func pause(
      _ message: Message, count: Int, _ change: (inout ServerLimits) -> Void,
      hits limit: ServerLimit, protocol version: Int = 2
    ) -> Duration {
      let world = world(change)
      let peer = RawPeer.joined(world, protocol: version)
      peer.send(frame((0..<count).map { _ in peer.stamp(message) }))
      #expect(world.limitHits == [limit: 1] && peer.close == nil)
      return peer.link.pause
    }
    let fetch = Message.scopeFetch(ScopeFetch(name: "Canvas"))
    // One fetch of each peer came before.
    #expect(
      pause(fetch, count: 14, { $0.fetchesPerSecond = 1 }, hits: .fetchesPerSecond) == .seconds(5))
    #expect(
      pause(fetch, count: 12, { $0.fullStatesPerSecond = 1 }, hits: .fullStatesPerSecond)
        == .seconds(3))
    let ping = Message.ping(Ping(ack: 0))
    #expect(pause(ping, count: 13, { $0.pingsPerSecond = 1 }, hits: .pingsPerSecond) == .seconds(3))
  }

  @Test("A scope's rate holds up the session that exceeds it, and no other scope")
  func scope() {
    let world = world {
      $0.changeSetsPerSecondInScope = 10
      $0.bytesPerSecondInScope = 1 << 20
    }
    world.moreScopes["Other"] = Scope(name: "Other", root: Canvas(), ticker: world.serverTicker)
    let (first, second) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    #expect(send(90, from: first) == .zero)
    #expect(send(30, from: second) == .seconds(2))
    #expect(world.limitHits == [.changeSetsPerSecondInScope: 20])
    #expect(errors(of: second) == [] && world.canvas.name == "29")
    second.send(second.stamp(.scopeFetch(ScopeFetch(name: "Other"))))
    let root = (world.moreScopes["Other"]?.root)!
    second.submit([
      SyncFragment(.change, uuid: root.uuid, className: "Canvas", properties: ["name": "a"])
    ])
    #expect(second.link.pause == .zero && (root as? Canvas)?.name == "a")
  }

  @Test("A session that is resumed on another connection goes on being held up")
  func resumed() {
    let world = world { $0.changeSetsPerSecond = 10 }
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(send(140, from: peer) == .seconds(4))
    world.cut(peer.link)
    world.advance(by: .seconds(1))
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    #expect(world.server.pause(on: again.link.id) == .seconds(3))
    world.advance(by: .seconds(4))
    #expect(world.server.pause(on: again.link.id) == .zero)
  }

  @Test("What a connection sends in front of an invalid message is charged as well")
  func invalid() {
    let world = world { $0.changeSetsPerSecond = 10 }
    let peer = RawPeer.joined(world, protocol: 2)
    let root = world.canvas.uuid.wireText
    let model = #""uuid":"\#(root)","clsName":"Canvas""#
    let change = #"{"type":"change",\#(model),"properties":{"likes":1}}"#
    let target = #""scopeIndex":\#(peer.scopeIndex),"fragments":[\#(change)]"#
    let sets = (2..<142).map { #"{"type":"ScopeSync","index":\#($0),\#(target)}"# }
    peer.send("[" + sets.joined(separator: ",") + #",{"type":"ScopeLeave","index":142}]"#)
    #expect(world.canvas.likes == 1 && peer.close?.code == 1007)
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    #expect(world.server.pause(on: again.link.id) == .seconds(4))
    #expect(world.limitHits == [.changeSetsPerSecond: 1])
  }

  @Test("A session that is held up on another connection does not expire meanwhile")
  func resumedExpiry() {
    let world = world { $0.changeSetsPerSecond = 1 }
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(send(1_010, from: peer) == .seconds(1_000))
    world.cut(peer.link)
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    #expect(world.server.pause(on: again.link.id) == .seconds(1_000))
    world.advance(by: .seconds(1_590))
    #expect(world.server.sessionCount == 1)
    world.advance(by: .seconds(20))
    #expect(world.server.sessionCount == 0)
  }

  @Test("A session does not expire in a channel while another one has its connection left unread")
  func expiryInOtherChannel() {
    let world = world { _ in }
    let peer = RawPeer.joined(world, protocol: 2)
    for _ in 0..<2 {
      world.advance(by: .seconds(590))
      #expect(
        world.server.rests(on: peer.link.id, isOver: true, now: world.now) == .zero)
    }
    #expect(world.server.sessionCount == 1)
    world.advance(by: .seconds(610))
    #expect(world.server.sessionCount == 0)
  }

  @Test("A session does not expire while its connection is left unread")
  func expiry() {
    let world = world { $0.changeSetsPerSecond = 1 }
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(send(710, from: peer) == .seconds(700))
    world.advance(by: .seconds(1_290))
    #expect(world.server.sessionCount == 1)
    world.advance(by: .seconds(20))
    #expect(world.server.sessionCount == 0)
  }
}

@Suite("Connections that are left unread", .live, .timeLimit(.minutes(5)))
@MainActor
struct UnreadConnectionTests {
  @Test("A peer that sends too much is read later, while others keep working")
  func peer() async throws {
    var configuration = Server.Configuration()
    configuration.limits.changeSetsPerSecond = 20
    let room = try await LiveRoom(configuration)
    let start = ContinuousClock.now
    let shape = room.shape
    let time = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      func change(_ index: Int) -> String {
        #"{"type":"ScopeSync","index":\#(index),"scopeIndex":0,"fragments":[{"type":"change","#
          + #""uuid":"\#(shape)","clsName":"Shape","properties":{"x":0}}]}"#
      }
      try peer.send("[" + (2..<222).map(change).joined(separator: ",") + "]")
      let early = try await peer.replies(to: 221)
      // A frame that had come with the first one would be read together with it.
      try peer.send(change(222))
      let late = try await peer.replies(to: 222)
      #expect(early.map(\.error) == [nil] && late.map(\.error) == [nil])
      return ContinuousClock.now - start
    }
    #expect(time >= .seconds(0.9), "Twenty change sets above what may come at once take a second.")
    #expect(room.server.limitHits["changeSetsPerSecond", default: 0] > 0)
    #expect(room.log.filter { $0.contains("session") && $0.contains("ends") } == [])
  }

  @Test("A client that sends too much goes on in its session, and all arrives in its order")
  func client() async throws {
    var configuration = Server.Configuration()
    configuration.limits.changeSetsPerSecond = 50
    let room = try await LiveRoom(configuration)
    for number in 0..<560 {
      let shape = Shape()
      shape.label = "\(number)"
      room.first.canvas.hidden.append(shape)
      room.first.scope.flush()
    }
    await room.first.settle()
    #expect(room.canvas.hidden.map(\.label) == (0..<560).map { "\($0)" })
    #expect(room.server.sessionCount == 2)
    await room.second.observe(room.second.canvas, until: { $0.hidden.count == 560 })
    await room.server.stop()
  }
}
