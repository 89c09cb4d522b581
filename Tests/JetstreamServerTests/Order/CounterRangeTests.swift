import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Gauge: ModelObject {
  @Property(.counter) var small: UInt8 = 0
  @Property(.counter) var signed: Int8 = 0
  @Property(.counter) var wide: UInt64 = 0
  @Property(.counter) var word = 0
  @Property var name = ""
}

@Suite("Counters stay within their type at each step, on every replica", .paced)
struct CounterRangeTests {
  private let world = InMemoryWorld()
  private let gauge = Gauge()
  private let scope: Scope

  init() {
    scope = Scope(name: "Canvas", root: gauge, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    gauge.small = 250
    gauge.signed = -120
    gauge.wide = .max - 3
    gauge.word = .max - 3
    scope.flush()
  }

  private func join() -> WorldClient {
    let client = world.addClient(root: Gauge())
    client.join()
    world.settle()
    return client
  }

  private func gauge(_ client: WorldClient) -> Gauge { client.scope.root as! Gauge }

  private func expectEqual(
    _ clients: WorldClient..., sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for client in clients {
      #expect(client.engine.checkInvariants() == [], sourceLocation: sourceLocation)
      #expect(client.scope.canonicalJSON == scope.canonicalJSON, sourceLocation: sourceLocation)
    }
  }

  /// Adds to every counter, to all but beyond its range.
  private func push(_ gauge: Gauge, _ amount: Int) {
    gauge.small = UInt8(clamping: Int(gauge.small) + amount)
    gauge.signed = Int8(clamping: Int(gauge.signed) - amount)
    gauge.wide =
      amount > 0
      ? gauge.wide &+ min(UInt64(amount), .max - gauge.wide) : gauge.wide - UInt64(-amount)
    gauge.word = amount > 0 ? gauge.word + min(amount, .max - gauge.word) : gauge.word + amount
  }

  @Test("Additions of two clients that leave the range together end at its bound everywhere")
  func overflow() throws {
    let (one, two) = (join(), join())
    push(gauge(one), 3)
    push(gauge(two), 3)
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    two.flush()
    world.settle()
    #expect(gauge.small == 255 && gauge.wide == .max && gauge.word == .max)
    #expect(gauge.signed == -126)
    expectEqual(one, two)
    push(gauge(one), -2)
    world.settle()
    push(gauge(two), 4)
    world.settle()
    #expect(gauge.small == 255 && gauge.wide == .max && gauge.word == .max)
    expectEqual(one, two)
  }

  @Test("Steps that come while own steps are pending are done in the server's order")
  func underPending() throws {
    let (one, two) = (join(), join())
    for _ in 0..<3 {
      push(gauge(one), 3)
      one.flush()
      push(gauge(one), -2)
      one.flush()
    }
    push(gauge(two), 5)
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    world.settle()
    expectEqual(one, two)
    push(gauge(two), 9)
    gauge(one).name = "also"
    push(gauge(one), -1)
    world.settle()
    expectEqual(one, two)
  }

  @Test("A rejected step is taken out of a sum that has met its bound, and all are equal")
  func rejected() throws {
    let (one, two) = (join(), join())
    push(gauge(two), 4)
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    // A set with a number too large for its property is rejected together with its steps.
    let handle = one.scope.modifyAtomically {
      push(gauge(one), 3)
    }
    push(gauge(one), -2)
    one.flush()
    world.settle()
    #expect(handle.state == .accepted)
    expectEqual(one, two)
  }

  @Test("The undo of a step that has met the bound adds the opposite, and all are equal")
  func undo() throws {
    let (one, two) = (join(), join())
    let history = UndoHistory(of: one.scope)
    push(gauge(one), 5)
    one.flush()
    push(gauge(two), 3)
    two.flush()
    world.deliver(try #require(two.link), toServer: true)
    world.settle()
    #expect(gauge.small == 255)
    expectEqual(one, two)
    history.undo()
    world.settle()
    #expect(gauge.small == 250)
    expectEqual(one, two)
  }

  @Test("A counter that was assigned a number written as a fraction counts on")
  func fraction() throws {
    let one = join()
    let peer = RawPeer.joined(world, protocol: 2)
    var fragment = SyncFragment(
      .change, uuid: gauge.uuid, className: "Gauge", properties: ["small": .double(7)])
    peer.submit([fragment])
    fragment.properties = [:]
    fragment.operations = ["small": [.add(300)]]
    peer.submit([fragment])
    push(gauge(one), -5)
    world.settle()
    #expect(gauge.small == 250)
    expectEqual(one)
  }
}
