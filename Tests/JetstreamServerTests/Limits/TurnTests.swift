import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Change sets of a few bytes that take out, or put back, more models than a turn may cost.
@Suite("Turns of sessions that move many models")
struct TurnTests {
  private let world: InMemoryWorld
  private let box = Shape()
  private let crate = Shape()

  init() { self.init(rules: nil) }

  private init(rules: ScopeRules?, limits: ServerLimits = ServerLimits()) {
    var configuration = ServerEngine.Configuration()
    configuration.limits = limits
    configuration.sliceSize = 4
    configuration.rules = { _ in rules }
    world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
    for shape in [box, crate] {
      shape.parts = ModelArray((0..<5).map { _ in Shape() })
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
  }

  private func taking(_ operation: PropertyOperation) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": [operation]])
  }

  private var removal: SyncFragment { taking(.remove(box.uuid)) }
  private var putBack: SyncFragment { taking(.insert(box.uuid, .end)) }

  private func likes(_ count: Int64) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["likes": .integer(count)])
  }

  /// Sends change sets of one fragment each in one frame. Returns their indices.
  private func send(_ fragments: [SyncFragment], by peer: RawPeer) -> [Int] {
    let messages = fragments.map {
      peer.stamp(.scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: [$0])))
    }
    peer.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
    return messages.map(\.index)
  }

  /// The number of those that are answered.
  private func answered(_ indices: [Int], of peer: RawPeer) -> Int {
    peer.take()
    return indices.count { peer.replies(to: $0) != nil }
  }

  @Test("Others have their turn between two of them, and all are decided in their order")
  func turns() {
    let (eve, bob) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    let indices = send([removal, putBack, removal, putBack, likes(9)], by: eve)
    for count in 1...4 {
      #expect(answered(indices, of: eve) == count)
      #expect(world.canvas.shapes.contains(box) == (count % 2 == 0))
      #expect(bob.submit([likes(Int64(count))]) == [FragmentReply()])
      #expect(world.canvas.likes == count)
      // Nothing more is read of it meanwhile.
      #expect(world.server.rests(on: eve.link.id, isOver: true, now: world.now) > .zero)
      #expect(world.judge())
    }
    #expect(world.server.rests(on: eve.link.id, isOver: true, now: world.now) == .zero)
    // The last one moves nothing.
    #expect(answered(indices, of: eve) == 5 && world.canvas.likes == 9)
    #expect(!world.judge() && world.server.work.judgements.isEmpty)
    #expect(indices.allSatisfy { eve.replies(to: $0) == [FragmentReply()] })
    let sequences = eve.messages.compactMap { message -> Int? in
      if case .scopeSyncReply(let reply) = message { reply.sequence } else { nil }
    }
    #expect(sequences.count == 5 && sequences == sequences.sorted())
  }

  @Test("What comes in one turn without a date gets one date, and the next turn a later one")
  func dates() {
    (world.date, world.dateStep) = (Date(timeIntervalSince1970: 1_000), 1)
    var dates: [TimeInterval?] = []
    let observation = world.scope.onRemoteChanges.listen {
      dates.append($0.date?.timeIntervalSince1970)
    }
    let peer = RawPeer.joined(world, protocol: 2)
    let start = world.date?.timeIntervalSince1970
    _ = send([likes(1), likes(2)], by: peer)
    _ = send([likes(3)], by: peer)
    #expect(dates == [start, start, start.map { $0 + 1 }])
    withExtendedLifetime(observation) {}
  }

  private struct Refusal: Error, Encodable {}

  @Test(
    "Calls of a procedure that move many models count like change sets, also if they fail",
    arguments: [false, true])
  func calls(fails: Bool) {
    world.procedures["Canvas.edit"] = ServedProcedure(takesArguments: false) { [world] request in
      do {
        try request.commit { (_: Canvas) in if fails { throw Refusal() } }
      } catch {
        world.server.ended(request, after: error, Refusal.self)
      }
    }
    let (eve, bob) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    let calls = [removal, fails ? removal : putBack, removal].map {
      eve.stamp(
        .scopeSync(
          ScopeSync(
            scopeIndex: eve.scopeIndex, fragments: [$0], atomic: true, procedure: "Canvas.edit")))
    }
    eve.send(String(decoding: Message.encodeFrame(calls, asArray: true), as: UTF8.self))
    let indices = calls.map(\.index)
    for count in 1...3 {
      #expect(answered(indices, of: eve) == count)
      #expect(world.canvas.shapes.contains(box) == (fails || count == 2))
      #expect(bob.submit([likes(Int64(count))]) == [FragmentReply()])
      #expect(world.judge() == (count < 3))
    }
    for index in indices {
      #expect((eve.replies(to: index)?.first?.error == nil) == !fails)
    }
  }

  @Test("A turn has as much effort as one session may have, and the sessions take turns")
  func sessions() {
    let eve = RawPeer.joined(world, protocol: 2)
    let mallory = RawPeer.joined(world, protocol: 2)
    let first = send([removal, putBack, removal], by: eve)
    let (out, back) = (taking(.remove(crate.uuid)), taking(.insert(crate.uuid, .end)))
    let second = send([out, back, out], by: mallory)
    #expect(answered(first, of: eve) == 1 && answered(second, of: mallory) == 1)
    var counts: [[Int]] = []
    while world.judge() {
      counts.append([answered(first, of: eve), answered(second, of: mallory)])
    }
    #expect(counts == [[2, 1], [2, 2], [3, 2], [3, 3]])
    #expect(world.canvas.shapes.isEmpty)
  }

  @Test("A rule that is asked about many models counts, also if it denies them")
  func denied() {
    var rules = ScopeRules(otherwise: .allow)
    rules.delete(Shape.self, "Shapes stay") { _, shape in shape.label == "old" }
    let tests = Self(rules: rules)
    for part in tests.box.parts.dropFirst() { part.label = "old" }
    tests.box.label = "old"
    tests.world.scope.flush()
    let eve = RawPeer.joined(tests.world, protocol: 2)
    let indices = tests.send([tests.removal, tests.removal, tests.removal], by: eve)
    for count in 1...3 {
      #expect(tests.answered(indices, of: eve) == count)
      #expect(tests.world.judge() == (count < 3))
    }
    for index in indices {
      #expect(eve.replies(to: index)?.map { $0.error?.message } == ["Shapes stay"])
    }
    #expect(tests.world.canvas.shapes.contains(tests.box))
  }

  @Test(
    "Models that a change set would bring back count, also if there is no room for them",
    arguments: [ServerLimit.modelsPerScope, .bytesPerScope])
  func refused(limit: ServerLimit) {
    var limits = ServerLimits()
    if limit == .modelsPerScope {
      limits.modelsPerScope = 19
    } else {
      limits.bytesPerScope = 22_000
    }
    let tests = Self(rules: nil, limits: limits)
    let (world, big) = (tests.world, Shape())
    func label(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }
    big.parts = ModelArray(
      (0..<5).map { _ in
        let part = Shape()
        part.label = label(2_000)
        return part
      })
    world.canvas.shapes.append(big)
    world.scope.flush()
    let eve = RawPeer.joined(world, protocol: 2)
    let removal = tests.send([tests.taking(.remove(big.uuid))], by: eve)
    #expect(tests.answered(removal, of: eve) == 1 && !world.canvas.shapes.contains(big))
    for _ in 0..<2 {
      let shape = Shape()
      shape.label = label(6_000)
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    let insertion = tests.taking(.insert(big.uuid, .end))
    let indices = tests.send([insertion, insertion, insertion], by: eve)
    for count in 1...3 {
      #expect(tests.answered(indices, of: eve) == count)
      #expect(world.judge() == (count < 3))
    }
    for index in indices {
      #expect(eve.replies(to: index)?.map { $0.error?.type } == ["scope-full"])
    }
    #expect(world.limitHits[limit] == 3 && !world.canvas.shapes.contains(big))
  }

  @Test("What waits is decided without the connection, and is dropped with the scope that is left")
  func left() {
    let eve = RawPeer.joined(world, protocol: 2)
    let mallory = RawPeer.joined(world, protocol: 2)
    let indices = send([removal, putBack], by: eve)
    #expect(answered(indices, of: eve) == 1)
    world.cut(eve.link)
    #expect(world.judge() && world.canvas.shapes.contains(box))
    let others = send([removal, putBack], by: mallory)
    #expect(answered(others, of: mallory) == 1)
    mallory.send(mallory.stamp(.scopeLeave(ScopeLeave(scopeIndex: mallory.scopeIndex))))
    while world.judge() {}
    #expect(!world.canvas.shapes.contains(box) && answered(others, of: mallory) == 1)
    #expect(world.server.work.judgements.isEmpty)
  }

  @Test("A session may end while it waits for its turn")
  func ended() throws {
    for isHeavy in [true, false] {
      let eve = RawPeer.joined(world, protocol: 2)
      let indices = send([removal, isHeavy ? putBack : likes(3), removal], by: eve)
      #expect(answered(indices, of: eve) == 1)
      #expect(world.server.endSession(try #require(eve.token), telling: .rejected("Out")))
      while world.judge() {}
      #expect(!world.canvas.shapes.contains(box) && world.canvas.likes == 0)
      #expect(world.server.work.judgements.isEmpty && answered(indices, of: eve) == 1)
      world.canvas.shapes.append(box)
      world.scope.flush()
    }
  }

  @Test("A whole collection that is compared with another one counts", arguments: [1, 2])
  func wholes(version: Int) {
    for _ in 0..<3 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    let names = world.canvas.shapes.map { JSONValue.string($0.uuid.wireText) }
    let orders = [names.reversed(), names, names.reversed()].map { order in
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["shapes": .array(order)])
    }
    let eve = RawPeer.joined(world, protocol: version)
    let indices = send(orders, by: eve)
    for count in 1...3 {
      #expect(answered(indices, of: eve) == count)
      #expect(world.judge() == (count < 3))
    }
    #expect(world.canvas.shapes.last == box)
  }

  @Test("Small change sets are all handled in the turn in which they come", arguments: [1, 2])
  func small(version: Int) {
    let peer = RawPeer.joined(world, protocol: version)
    let indices = send((1...20).map { likes($0) }, by: peer)
    #expect(answered(indices, of: peer) == 20 && !world.judge())
  }

  @Test("What waits for a turn is judged by what its client had seen when it sent that")
  func horizon() {
    for _ in 0..<3 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    let names = world.canvas.shapes.map { JSONValue.string($0.uuid.wireText) }
    let orders = [names.reversed(), names].map { order in
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["shapes": .array(order)])
    }
    let eve = RawPeer.joined(world)
    let unknown = Shape()
    world.canvas.shapes.append(unknown)
    world.scope.flush()
    let indices = send(orders, by: eve)
    eve.acknowledge()
    world.advance(by: .seconds(1))
    #expect(answered(indices, of: eve) == 1 && world.judge())
    #expect(answered(indices, of: eve) == 2 && world.canvas.shapes.contains(unknown))
  }

  @Test("A model that another client removes meanwhile comes back with what has waited for a turn")
  func revival() {
    let eve = RawPeer.joined(world, protocol: 2)
    eve.acknowledge()
    world.canvas.shapes.removeAll { $0 === box }
    world.scope.flush()
    let out = taking(.remove(crate.uuid))
    let indices = send([out, putBack], by: eve)
    eve.acknowledge()
    world.advance(by: .seconds(1))
    #expect(answered(indices, of: eve) == 1 && world.judge())
    #expect(answered(indices, of: eve) == 2 && world.canvas.shapes.contains { $0.uuid == box.uuid })
  }
}
