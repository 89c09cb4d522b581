import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// The limit on a scope's size holds from the first change set of a process on, and follows what fills the scope.
@Suite("The estimated size of a scope")
struct ScopeSizeTests {
  private static func configuration(
    _ bytes: Int, leastBytes: Int = 4_000
  ) -> ServerEngine.Configuration {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.leastBytes = leastBytes
    configuration.limits.bytesPerScope = bytes
    return configuration
  }

  private static func world(_ bytes: Int, leastBytes: Int = 4_000) -> InMemoryWorld {
    InMemoryWorld(configuration: configuration(bytes, leastBytes: leastBytes))
  }

  private static func text(_ bytes: Int) -> JSONValue {
    .string(String(repeating: "x", count: bytes))
  }

  /// An addition of a shape with a label, behind the others of a canvas.
  private static func adding(
    _ bytes: Int, to root: UUID, as uuid: UUID = UUID()
  ) -> [SyncFragment] {
    [
      SyncFragment(.add, uuid: uuid, className: "Shape", properties: ["label": text(bytes)]),
      edit(.insert(uuid, .end), of: root),
    ]
  }

  private static func edit(_ operation: PropertyOperation, of root: UUID) -> SyncFragment {
    SyncFragment(
      .change, uuid: root, className: "Canvas", properties: [:],
      operations: ["shapes": [operation]])
  }

  /// Submits fragments. Returns the type of the first error; nil if all are accepted.
  private func submit(_ fragments: [SyncFragment], by peer: RawPeer) -> String? {
    let replies = peer.submit(fragments)
    peer.acknowledge()
    return replies.compactMap { $0.error }.first.map { $0.type ?? $0.message }
  }

  private func size(of scope: Scope) -> Int { scope.canonicalJSON.utf8.count }

  /// Adds shapes until one is refused. Returns their number.
  private func fill(_ world: InMemoryWorld, with bytes: Int, by peer: RawPeer, upTo most: Int)
    -> Int
  {
    var count = 0
    while count < most, submit(Self.adding(bytes, to: world.canvas.uuid), by: peer) == nil {
      count += 1
    }
    return count
  }

  @Test("A full scope that goes on from its history is full")
  func restored() throws {
    let world = Self.world(1 << 20)
    let first = RawPeer.joined(world, protocol: 2)
    let count = fill(world, with: 10_000, by: first, upTo: 200)
    #expect(count > 80 && count < 120)
    var history = ScopeHistory(
      epoch: "e", sequence: 1, state: world.scope.sharedState(), clients: [:])
    history.records = []
    let second = Self.world(1 << 20)
    try second.server.host(second.scope, history: history) { _ in }
    #expect(second.canvas.shapes.count == count)
    let peer = RawPeer.joined(second, protocol: 2)
    #expect(submit(Self.adding(20_000, to: second.canvas.uuid), by: peer) == "scope-full")
    #expect(second.canvas.shapes.count == count)
  }

  @Test("A model of an unknown class that goes and comes back counts once")
  func unknownModel() {
    let world = InMemoryWorld(
      configuration: Self.configuration(1 << 20, leastBytes: 1 << 20), unknown: .keep)
    let peer = RawPeer.joined(world, protocol: 2)
    let ghost = UUID()
    func refer(to value: JSONValue) -> SyncFragment {
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["ghost": value])
    }
    let addition = SyncFragment(
      .add, uuid: ghost, className: "Ghost", properties: ["text": Self.text(10_000)])
    let reference = JSONValue.string(ghost.wireText)
    #expect(submit([addition, refer(to: reference)], by: peer) == nil)
    let order = world.server.hostedScope(world.scope).order
    var size: Int { order.stream.estimatedBytes(of: order.modelCount) }
    let first = size
    for _ in 0..<20 {
      #expect(submit([refer(to: .null)], by: peer) == nil)
      #expect(submit([refer(to: reference)], by: peer) == nil)
    }
    #expect(abs(size - first) < 5_000, "\(first), then \(size)")
  }

  @Test("A full scope of rows that were made of its history elsewhere is full")
  func restoredRows() throws {
    let world = Self.world(100_000)
    for _ in 0..<20 {
      let shape = Shape()
      shape.label = String(repeating: "x", count: 5_000)
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    let history = ScopeHistory(
      epoch: "e", sequence: 1, state: world.scope.sharedState(), clients: [:])
    let content = try RowsContent(
      name: "Rows", ScopeSchema(of: Canvas.self), from: history, isMeasured: true)
    let engine = ServerEngine(
      configuration: Self.configuration(100_000),
      hooks: .init(fetch: { _, _, _ in .success(content) }, makeToken: { "" }, random: { 0.5 }),
      perform: { _ in })
    try engine.host(content, history: history, isRestored: true) { _ in }
    let sync = ScopeSync(scopeIndex: 0, fragments: Self.adding(100, to: world.canvas.uuid))
    let host = engine.hostedScope(content)
    #expect(engine.limit(exceededBy: sync, of: 200, from: nil, in: host) == .bytesPerScope)
  }

  @Test("A scope that the app has filled before it is hosted is full")
  func filledByApp() {
    let world = Self.world(100_000)
    let canvas = Canvas()
    for _ in 0..<20 {
      let shape = Shape()
      shape.label = String(repeating: "x", count: 5_000)
      canvas.shapes.append(shape)
    }
    world.moreScopes["Full"] = Scope(name: "Full", root: canvas, ticker: world.serverTicker)
    let peer = RawPeer.joined(world, protocol: 2)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Full"))))
    #expect(submit(Self.adding(100, to: canvas.uuid), by: peer) == "scope-full")
  }

  @Test(
    "Models that are much larger than those of a scope count as what they are", arguments: [1, 2])
  func largeModels(version: Int) {
    let world = Self.world(4 << 20, leastBytes: 256 << 10)
    for _ in 0..<2_000 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    let peer = RawPeer.joined(world, protocol: version)
    // Without operations, a collection is written as a whole.
    func addition() -> [SyncFragment] {
      if version == 2 { return Self.adding(512 << 10, to: world.canvas.uuid) }
      let uuid = UUID()
      let all = world.canvas.shapes.map(\.uuid) + [uuid]
      return [
        Self.adding(512 << 10, to: world.canvas.uuid, as: uuid)[0],
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas",
          properties: ["shapes": .array(all.map { .string($0.wireText) })]),
      ]
    }
    var count = 0
    while count < 40, submit(addition(), by: peer) == nil { count += 1 }
    #expect(count >= 5 && size(of: world.scope) < 8 << 20, "\(count) large models are taken")
  }

  @Test("A large change set that the app has made counts before the next one of a client")
  func largeChangesOfApp() {
    let world = Self.world(1 << 20)
    let peer = RawPeer.joined(world, protocol: 2)
    for _ in 0..<10 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    for shape in world.canvas.shapes { shape.label = String(repeating: "x", count: 200_000) }
    world.scope.flush()
    world.exchange()
    #expect(submit(Self.adding(100, to: world.canvas.uuid), by: peer) == "scope-full")
  }

  @Test("Models that a small change set brings back count as what they are")
  func comeBack() {
    let world = Self.world(50_000)
    let observer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    let (large, root) = (UUID(), world.canvas.uuid)
    #expect(submit(Self.adding(30_000, to: root, as: large), by: peer) == nil)
    #expect(submit([Self.edit(.remove(large), of: root)], by: peer) == nil)
    #expect(submit(Self.adding(30_000, to: root), by: peer) == nil)
    #expect(submit([Self.edit(.insert(large, .end), of: root)], by: peer) == "scope-full")
    #expect(observer.close == nil && size(of: world.scope) < 50_000)
  }

  @Test(
    "Models that an addition brings back without naming what they have count as what they are",
    arguments: [true, false])
  func comeBackByAddition(withPart: Bool) {
    let world = Self.world(50_000)
    let observer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    let (holder, part, root) = (UUID(), UUID(), world.canvas.uuid)
    var set = Self.adding(withPart ? 10 : 30_000, to: root, as: holder)
    if withPart {
      set[0].properties["parts"] = [.string(part.wireText)]
      set.append(
        SyncFragment(
          .add, uuid: part, className: "Shape", properties: ["label": Self.text(30_000)]))
    }
    #expect(submit(set, by: peer) == nil)
    #expect(submit([Self.edit(.remove(holder), of: root)], by: peer) == nil)
    #expect(submit(Self.adding(30_000, to: root), by: peer) == nil)
    let addition = SyncFragment(.add, uuid: holder, className: "Shape", properties: [:])
    let insertion = Self.edit(.insert(holder, .end), of: root)
    #expect(submit([addition, insertion], by: peer) == "scope-full")
    #expect(observer.close == nil && size(of: world.scope) < 50_000)
    // What the addition names is what the model has.
    var small = addition
    small.properties = ["label": "", "parts": []]
    #expect(submit([small, insertion], by: peer) == nil)
    #expect(size(of: world.scope) < 50_000)
  }

  @Test("A scope is full no longer once what has filled it is removed, by whichever side")
  func removed() {
    for byApp in [false, true] {
      let world = Self.world(50_000)
      let peer = RawPeer.joined(world, protocol: 2)
      let (large, root) = (UUID(), world.canvas.uuid)
      for _ in 0..<20 { #expect(submit(Self.adding(10, to: root), by: peer) == nil) }
      #expect(submit(Self.adding(40_000, to: root, as: large), by: peer) == nil)
      // The size is measured meanwhile.
      for number in 0..<100 {
        let name = SyncFragment(
          .change, uuid: root, className: "Canvas",
          properties: ["name": .string("\(number) " + String(repeating: "x", count: 400))])
        #expect(submit([name], by: peer) == nil)
      }
      #expect(submit(Self.adding(9_000, to: root), by: peer) == "scope-full")
      if byApp {
        world.canvas.shapes.removeAll { $0.uuid == large }
        world.scope.flush()
      } else {
        #expect(submit([Self.edit(.remove(large), of: root)], by: peer) == nil)
      }
      let attempts = (0..<2).map { _ in submit(Self.adding(9_000, to: root), by: peer) }
      #expect(attempts.contains(nil), "\(attempts)")
    }
  }

  @Test("A scope is full no longer once the app has made its values shorter")
  func shortened() {
    let world = Self.world(50_000)
    let peer = RawPeer.joined(world, protocol: 2)
    let root = world.canvas.uuid
    for _ in 0..<4 { #expect(submit(Self.adding(11_000, to: root), by: peer) == nil) }
    #expect(submit(Self.adding(9_000, to: root), by: peer) == "scope-full")
    for shape in world.canvas.shapes { shape.label = "short" }
    world.scope.flush()
    #expect(submit(Self.adding(9_000, to: root), by: peer) == nil)
  }

  @Test("Refusals have the scope measured a part at a time, at the session's charge, and once")
  func chargedRefusals() throws {
    let world = Self.world(50_000)
    let peer = RawPeer.joined(world, protocol: 2)
    let root = world.canvas.uuid
    for _ in 0..<150 { #expect(submit(Self.adding(1, to: root), by: peer) == nil) }
    let host = world.server.hostedScope(world.scope)
    let all = host.order.modelCount
    var efforts: [Int] = []
    for _ in 0..<100 { efforts.append(host.order.measureForRefusal()) }
    #expect(efforts.max()! < all && efforts.reduce(0, +) <= 2 * all, "\(efforts) of \(all)")
    #expect(efforts.suffix(50).allSatisfy { $0 == 0 })
    let session = try #require(world.server.sessions.values.first)
    world.canvas.name = "changed"
    world.scope.flush()
    // In the same turn: an acknowledgement begins another one.
    let replies = peer.submit(Self.adding(60_000, to: root))
    #expect(replies.first?.error?.type == "scope-full")
    let turn = world.server.work.judgements.turn
    #expect(session.traffic.effort(in: turn) > 0)
  }

  @Test("Operations on a property that the server does not know fill a scope")
  func unknownOperations() {
    let world = InMemoryWorld(configuration: Self.configuration(50_000), unknown: .keep)
    let peer = RawPeer.joined(world, protocol: 2)
    func insert(_ count: Int) -> String? {
      let operations = (0..<count).map { _ in PropertyOperation.insert(UUID(), .end) }
      return submit(
        [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
            operations: ["x": operations])
        ], by: peer)
    }
    var errors: [String?] = []
    for _ in 0..<30 { errors.append(insert(100)) }
    #expect(errors.first == .some(nil) && errors.last == "scope-full")
    #expect(size(of: world.scope) > 25_000 && size(of: world.scope) < 75_000)
  }

  @Test(
    "The value of a property that the server does not know gets no longer than a change set may be")
  func longestUnknownValue() {
    var configuration = ServerEngine.Configuration()
    configuration.limits.bytesPerChangeSet = 10_000
    let world = InMemoryWorld(configuration: configuration, unknown: .keep)
    let peer = RawPeer.joined(world, protocol: 2)
    let root = world.canvas.uuid
    func edit(_ operations: [PropertyOperation], _ model: UUID, _ name: String) -> SyncFragment {
      SyncFragment(
        .change, uuid: model, className: name, properties: [:], operations: ["x": operations])
    }
    // Of a model with an object, and of one that is kept without.
    let ghost = UUID()
    let added = submit(
      [
        SyncFragment(.add, uuid: ghost, className: "Ghost", properties: [:]),
        SyncFragment(
          .change, uuid: root, className: "Canvas", properties: ["ghost": .string(ghost.wireText)]),
      ], by: peer)
    #expect(added == nil)
    for (model, name) in [(root, "Canvas"), (ghost, "Ghost")] {
      var known: [UUID] = []
      var error: String?
      while error == nil, known.count < 1_000 {
        let new = (0..<20).map { _ in UUID() }
        error = submit([edit(new.map { .insert($0, .end) }, model, name)], by: peer)
        if error == nil { known += new }
      }
      #expect(known.count > 200 && known.count < 257)
      #expect(error?.contains("'x'") == true && error?.contains("10000 bytes") == true)
      // Others may still be moved and removed.
      #expect(submit([edit([.insert(known[0], .end)], model, name)], by: peer) == nil)
      #expect(submit([edit(known.prefix(40).map { .remove($0) }, model, name)], by: peer) == nil)
      #expect(submit([edit([.insert(UUID(), .end)], model, name)], by: peer) == nil)
      // Two fragments of a change set count together.
      let halves = (0..<2).map { _ in (0..<30).map { _ in PropertyOperation.insert(UUID(), .end) } }
      #expect(submit(halves.map { edit($0, model, name) }, by: peer) != nil)
    }
  }
}
