import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A replica that is not what the server has is noticed with a ping, and put right.
@Suite("Replicas that verify themselves", .paced)
struct RepairTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let other: WorldClient

  init() {
    client = world.addClient()
    other = world.addClient()
    for client in world.clients { client.join() }
    world.settle()
    for number in 0..<40 {
      let shape = Shape()
      shape.x = Float(number)
      world.canvas.shapes.append(shape)
    }
    world.canvas.name = "painting"
    world.settle()
  }

  /// Something that must not happen happens to a replica.
  private func damage(_ fragments: [SyncFragment]) {
    client.scope.apply(fragments)
    #expect(client.scope.canonicalJSON != world.scope.canonicalJSON)
  }

  private func change(_ uuid: UUID, _ name: String, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: uuid, className: name, properties: properties)
  }

  private var repairs: [ScopeSync] {
    client.heard.compactMap {
      if case .scopeSync(let sync) = $0, sync.repairs { sync } else { nil }
    }
  }

  /// The server's next ping comes, and what follows from it.
  private func ping() {
    client.heard = []
    world.advance(by: .seconds(11))
    world.settle()
  }

  private func expectAgreement() {
    for client in world.clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.engine.checkInvariants() == [] && client.engine.pendingCount == 0)
    }
  }

  @Test("A property that is another in one replica is put right with one message")
  func value() {
    let shape = client.canvas.shapes[7]
    damage([change(shape.uuid, "Shape", ["x": 1000])])
    ping()
    expectAgreement()
    #expect(shape.x == 7 && client.canvas.shapes[7] === shape)
    #expect(client.repaired == [[shape.uuid]] && other.repaired.isEmpty)
    #expect(repairs.count == 1 && repairs[0].fragments.count <= 5)
    #expect(world.log.contains { $0.contains("scope Canvas: the client's state differs") })
    // All is right now, and stays so.
    ping()
    #expect(repairs.isEmpty && client.repaired.count == 1)
  }

  @Test("Models that are missing, too many, or at another place come back into order")
  func models() {
    var order = client.canvas.shapes.map(\.uuid)
    order.swapAt(3, 30)
    order.remove(at: 11)
    let stranger = UUID()
    order.insert(stranger, at: 5)
    damage([
      SyncFragment(.add, uuid: stranger, className: "Shape", properties: ["x": 3]),
      change(
        client.canvas.uuid, "Canvas",
        ["shapes": .array(order.map { .string($0.wireText) }), "name": "scrawl"]),
    ])
    #expect(client.scope.model(stranger) != nil)
    ping()
    expectAgreement()
    #expect(client.scope.model(stranger) == nil && client.repaired.count == 1)
  }

  @Test("Observers hear of what is put right as of any change of others")
  func observers() {
    let shape = client.canvas.shapes[7]
    damage([change(shape.uuid, "Shape", ["x": 1000, "y": 8])])
    var heard: [Float] = []
    let token = shape.observeChangeImmediately(\.x) { heard.append($1) }
    ping()
    #expect(heard == [7])
    token.cancel()
  }

  @Test("While something is pending nothing is compared; what is changed meanwhile is kept")
  func pending() {
    let (first, second) = (client.canvas.shapes[7], client.canvas.shapes[8])
    damage([change(first.uuid, "Shape", ["x": 1000])])
    // Edited between the ping and what comes of it.
    client.heard = []
    world.advance(by: .seconds(11))
    let link = client.link!
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    second.x = 55
    first.y = 44
    client.flush()
    world.settle()
    expectAgreement()
    #expect(first.x == 7 && first.y == 44 && second.x == 55 && repairs.count == 1)
  }

  @Test(
    "What does not help is done twice, then all is fetched again, then nothing more is done")
  func vain() {
    // Whatever is put right here is made wrong again at once.
    let shape = client.canvas.shapes[7]
    var applied: AppliedFragments? = AppliedFragments(to: client.scope) {
      [scope = client.scope] fragments in
      guard fragments.contains(where: { $0.uuid == shape.uuid }), shape.x == 7 else { return }
      scope.apply([
        SyncFragment(.change, uuid: shape.uuid, className: "Shape", properties: ["x": 1000])
      ])
    }
    damage([change(shape.uuid, "Shape", ["x": 1000])])
    for _ in 0..<2 {
      ping()
      #expect(repairs.count == 1)
    }
    ping()
    #expect(repairs.isEmpty && client.heard.count { $0.type == "ScopeState" } == 1)
    #expect(!client.events.contains { $0.contains("has not helped") })
    for _ in 0..<2 {
      ping()
      #expect(repairs.isEmpty && !client.heard.contains { $0.type == "ScopeState" })
    }
    #expect(client.events.count { $0.contains("has not helped") } == 1)
    #expect(client.engine.status == .online && client.engine.checkInvariants() == [])
    withExtendedLifetime(applied) {}
    applied = nil
  }

  @Test("Who speaks version 1, or has other classes, is not told what it could not compare")
  func others() throws {
    let old = RawPeer.joined(world)
    world.advance(by: .seconds(11))
    world.settle()
    old.take()
    let pings = old.messages.compactMap { if case .ping(let ping) = $0 { ping } else { nil } }
    #expect(!pings.isEmpty && pings.allSatisfy(\.checks.isEmpty))
    let host = try #require(world.server.hosts.values.first)
    let check = try #require(host.content.digest(budget: .max))
    let replica = client.engine.replicas[0]
    func compared(_ digest: UInt64, _ schema: UInt64, at sequence: Int) -> Replica.Comparison? {
      replica.compare(
        with: Ping.Check(scopeIndex: 0, sequence: sequence, digest: digest, schema: schema))
    }
    let place = host.sequence
    if case .equal = compared(check.digest, check.schema, at: place) {} else { Issue.record("!=") }
    #expect(compared(check.digest &+ 1, check.schema &+ 1, at: place) == nil)
    #expect(compared(check.digest &+ 1, check.schema, at: place - 1) == nil)
    if case .different = compared(check.digest &+ 1, check.schema, at: place) {
    } else {
      Issue.record("Another digest is taken for the same.")
    }
  }

  @Test("A client cannot make the server trap with what it says of parts")
  func hostile() {
    let peer = RawPeer(world)
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    func pass() {
      // With its ping the server tells what the scope comes to.
      world.advance(by: .seconds(11))
      peer.take()
    }
    pass()
    let zeros = [UInt64](repeating: 0, count: 256)
    var ping = Ping(ack: 0)
    ping.differences = [
      Ping.Difference(scopeIndex: 0, parts: zeros), Ping.Difference(scopeIndex: 9, parts: zeros),
    ]
    peer.send(.ping(ping))
    #expect(peer.syncs.filter(\.repairs).map(\.fragments.count) == [41])
    // However often one asks at a time, it is answered once.
    ping.differences = Array(repeating: ping.differences[0], count: 50)
    pass()
    peer.send(.ping(ping))
    #expect(peer.syncs.count(where: \.repairs) == 2)
    peer.send(#"{"type":"Ping","index":0,"ack":0,"differences":[{"scopeIndex":0,"parts":"00"}]}"#)
    #expect(world.endedSessions.isEmpty && peer.close?.code == 1007)
    #expect(peer.close?.reason.contains("parts should be 4096 hexadecimal digits") == true)
  }

  @Test("A scope whose digest was sent and that is left is asked about no more")
  func left() throws {
    let peer = RawPeer.joined(world, protocol: 2)
    peer.acknowledge()
    world.advance(by: .seconds(11))
    peer.take()
    let session = try #require(world.server.sessions.values.first { $0.info.token == peer.token })
    #expect(session.checked == [peer.scopeIndex])
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: peer.scopeIndex))))
    #expect(session.checked.isEmpty)
  }
}
