import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Limits on change sets")
struct ChangeSetLimitTests {
  private let world: InMemoryWorld
  private let client: WorldClient

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.limits.fragmentsPerChangeSet = 3
    configuration.limits.bytesPerChangeSet = 1_000
    world = InMemoryWorld(configuration: configuration)
    client = world.addClient()
    client.join()
    world.settle()
  }

  private func naming(_ name: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(name)])
  }

  /// Checks that a client goes on in its only session, and that nothing else has been applied.
  private func expectUnharmed() {
    client.canvas.likes += 1
    world.settle()
    #expect(world.canvas.likes == client.canvas.likes && world.canvas.name == client.canvas.name)
    #expect(client.tokens == [nil] && client.rejections == [])
  }

  @Test(
    "A change set with too many fragments is rejected in each of them, and nothing is applied",
    arguments: [1, 2], [false, true])
  func fragments(version: Int, isAtomic: Bool) {
    let peer = RawPeer.joined(world, protocol: version)
    let sets = (0..<4).map { naming("\($0)") }
    let replies = peer.submit(sets, atomic: isAtomic)
    #expect(replies.map { $0.error?.type } == Array(repeating: "too-many-fragments", count: 4))
    #expect(world.canvas.name == nil && world.limitHits == [.fragmentsPerChangeSet: 1])
    expectUnharmed()
    #expect(peer.submit(Array(sets[..<3])).allSatisfy { $0.error == nil })
    #expect(world.canvas.name == "2" && peer.close == nil)
    expectUnharmed()
  }

  @Test(
    "A change set that is too large is rejected in each fragment, and nothing is applied",
    arguments: [1, 2])
  func bytes(version: Int) {
    let peer = RawPeer.joined(world, protocol: version)
    let replies = peer.submit([naming("a"), naming(String(repeating: "x", count: 1_000))])
    #expect(replies.map { $0.error?.type } == ["change-set-too-large", "change-set-too-large"])
    #expect(world.canvas.name == nil && world.limitHits == [.bytesPerChangeSet: 1])
    expectUnharmed()
    #expect(peer.submit([naming(String(repeating: "x", count: 700))]).map(\.error) == [nil])
    expectUnharmed()
  }

  @Test("A client takes back what is too large, once, and goes on")
  func takenBack() {
    client.canvas.name = String(repeating: "x", count: 2_000)
    world.settle()
    #expect(world.canvas.name == nil && client.canvas.name == nil)
    #expect(client.rejections == ["Canvas: The change set is too large"])
    #expect(world.limitHits == [.bytesPerChangeSet: 1])
    client.canvas.name = "short"
    world.settle()
    #expect(world.canvas.name == "short" && client.tokens == [nil])
  }

  @Test("A decision about a change set that is too large is repeated, not made again")
  func repeated() throws {
    let peer = RawPeer(world)
    peer.createSession()
    let own = UUID()
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: own))))
    for _ in 0..<2 {
      var sync = ScopeSync(
        scopeIndex: peer.scopeIndex, fragments: (0..<4).map { naming("\($0)") })
      sync.number = 1
      let message = peer.stamp(.scopeSync(sync))
      peer.send(message)
      let replies = try #require(peer.replies(to: message.index))
      #expect(replies.map { $0.error?.type } == Array(repeating: "too-many-fragments", count: 4))
    }
    #expect(world.limitHits == [.fragmentsPerChangeSet: 1])
  }
}
