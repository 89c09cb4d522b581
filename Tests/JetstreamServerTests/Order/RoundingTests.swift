import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Dial: ModelObject {
  @Property var level: Float = 0
  @Property var parts: ModelArray<Dial> = []
  @Property(.merge(.max)) var peak: Float = 0
}

/// The same of an app that has wider numbers.
private final class WideDial: ModelObject {
  override class var wireName: String { "Dial" }
  @Property var level: Double = 0
  @Property var parts: ModelArray<WideDial> = []
  @Property(.merge(.max)) var peak: Double = 0
}

@Suite("A value that the server rounds is told to its writer, too", .paced)
struct RoundingTests {
  private let world = InMemoryWorld()
  private let dial = Dial()
  private let scope: Scope

  init() {
    scope = Scope(name: "Canvas", root: dial, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
  }

  private func change(_ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: dial.uuid, className: "Dial", properties: properties)
  }

  private func effective(_ peer: RawPeer) -> [SyncFragment]? {
    peer.messages.reversed().lazy.compactMap { message -> ScopeSyncReply? in
      if case .scopeSyncReply(let reply) = message { reply } else { nil }
    }.first?.effective
  }

  @Test("A client of version 2 gets the rounded value with the reply")
  func versionTwo() {
    let peer = RawPeer.joined(world, protocol: 2)
    peer.submit([change(["level": 16_777_217])])
    #expect(effective(peer)?.first?.properties["level"]?.canonicalText == "16777216")
    // What is written as it came is not sent back.
    peer.submit([change(["level": 5])])
    #expect(effective(peer) == nil)
    peer.submit([change(["level": 0.1])])
    #expect(effective(peer) == nil)
    let uuid = UUID()
    var list = change([:])
    list.operations = ["parts": [.insert(uuid, .end)]]
    peer.submit([
      SyncFragment(
        .add, uuid: uuid, className: "Dial",
        properties: ["level": 16_777_217, "parts": [], "peak": 0]), list,
    ])
    #expect(effective(peer)?.first?.properties["level"]?.canonicalText == "16777216")
  }

  @Test("An old client is corrected")
  func versionOne() {
    let peer = RawPeer.joined(world)
    peer.submit([change(["level": 16_777_217])])
    #expect(peer.syncs.last?.fragments.first?.properties["level"]?.canonicalText == "16777216")
    peer.acknowledge()
    let count = peer.syncs.count
    peer.submit([change(["level": 0.1])])
    #expect(peer.syncs.count == count)
  }

  @Test("A client whose class has wider numbers ends with the server's, byte for byte")
  func widerClass() throws {
    let (one, two) = (world.addClient(root: WideDial()), world.addClient(root: WideDial()))
    for client in [one, two] { client.join() }
    world.settle()
    let root = try #require(one.scope.root as? WideDial)
    root.level = 16_777_217
    let part = WideDial()
    part.level = 33_554_433
    root.parts.append(part)
    one.flush()
    world.settle()
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == scope.canonicalJSON)
    }
    #expect(root.level == 16_777_216 && part.level == 33_554_432)
  }

  @Test("A merge rule gets rounded values, so that a rounded base is no change of others")
  func mergeBase() {
    let peer = RawPeer.joined(world, protocol: 2)
    var first = change(["peak": 16_777_217])
    first.bases = ["peak": 0]
    peer.submit([first])
    #expect(dial.peak == 16_777_216)
    var second = change(["peak": 5])
    second.bases = ["peak": 16_777_217]
    peer.submit([second])
    #expect(dial.peak == 5, "nobody else has changed it since")
  }
}
