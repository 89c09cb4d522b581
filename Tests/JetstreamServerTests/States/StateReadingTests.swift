import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A large state is read and encoded bit by bit, while its scope goes on changing.
@Suite("States that are read while the scope changes", .paced)
struct StateReadingTests {
  private let world: InMemoryWorld
  private let writer: WorldClient

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = 2_000
    self.init(InMemoryWorld(configuration: configuration))
  }

  private init(_ world: InMemoryWorld) {
    self.world = world
    for number in 0..<40 {
      let shape = Shape()
      shape.label = "\(number)"
      for _ in 0..<4 { shape.parts.append(Shape()) }
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    writer = world.addClient(configuration: Self.quick)
    writer.join()
    world.settle()
    world.encodesAtOnce = false
    world.canvas.name = "changed, so that the next one begins anew"
    world.scope.flush()
    world.server.advance(to: world.now + .seconds(2))
    world.now += .seconds(2)
  }

  /// Acknowledges often, so that the server does not wait.
  private static var quick: ClientEngine.Configuration {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter.messages = 4
    return configuration
  }

  private var host: ScopeHost { world.server.hosts.values.first! }

  private func expectAgreement() {
    for client in world.clients {
      let isEqual = client.scope.canonicalJSON == world.scope.canonicalJSON
      #expect(isEqual, "client \(client.number)")
      #expect(client.engine.checkInvariants() == [] && client.engine.pendingCount == 0)
    }
    #expect(world.endedSessions.isEmpty)
  }

  /// Makes one change below a canvas: to values, to the tree, or to both.
  private func change(_ canvas: Canvas) {
    let shapes = canvas.shapes
    let at = Int.random(in: 0..<shapes.count, using: &world.generator)
    let other = Int.random(in: 0..<shapes.count, using: &world.generator)
    switch Int.random(in: 0..<8, using: &world.generator) {
    case 0: canvas.name = "\(at)"
    case 1: shapes[at].label += String(repeating: "long ", count: 60)
    case 2: shapes[at].parts.append(Shape())
    case 3: if shapes.count > 20 { canvas.shapes.remove(at: at) }
    case 4:
      if let part = shapes[at].parts.first {
        shapes[at].parts.remove(at: 0)
        shapes[other].parts.append(part)
      }
    case 5:
      // A whole subtree to the other end.
      let moved = canvas.shapes.remove(at: at)
      canvas.shapes.append(moved)
    case 6:
      if at != other, shapes.count > 20 {
        let moved = canvas.shapes.remove(at: at)
        canvas.shapes[min(other, canvas.shapes.count - 1)].parts.append(moved)
      }
    default: shapes[at].x += 1
    }
  }

  @Test("A model that moves below one that was read, before its own turn, comes with the copy")
  func movedBack() {
    let canvas = Canvas()
    let (first, last, part) = (Shape(), Shape(), Shape())
    part.parts.append(Shape())
    last.parts.append(part)
    canvas.shapes = [first, last]
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    scope.flush()
    var reader = StateReader(ModelContent(scope), root: canvas.uuid, partBytes: 1)
    // It is full once the first shape was read.
    #expect(reader.readPart()?.fragments.map(\.uuid) == [canvas.uuid])
    first.parts.append(part)
    last.parts.removeAll()
    scope.flush()
    for shape in [first, last] { reader.note(shape.uuid) }
    while reader.readPart() != nil {}
    #expect(reader.hasReadAll && reader.checkInvariants() == [])
    let copied = reader.copy(at: 0).parts.flatMap(\.fragments).map(\.uuid)
    #expect(Set(copied) == Set(scope.fullState().map(\.uuid)) && copied.count == 5)
    #expect(reader.checkInvariants() == [])
  }

  @Test("Models of unknown classes are read again only where they have changed")
  func unknownModels() throws {
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    let models = (0..<20).map { number in
      SyncFragment(
        .add, uuid: UUID(), className: "Novel",
        properties: ["text": .string(String(repeating: "x", count: 200) + "\(number)")])
    }
    func refer(to models: [SyncFragment]) -> SyncFragment {
      SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas",
        properties: ["novels": .array(models.map { .string($0.uuid.wireText) })])
    }
    scope.apply(models + [refer(to: models)])
    var reader = StateReader(ModelContent(scope), root: canvas.uuid, partBytes: 1000)
    func copy() -> [StatePart] {
      while reader.readPart() != nil {}
      let parts = reader.copy(at: 0).parts
      let state = Set(parts.flatMap(\.fragments).map(\.json.text))
      #expect(state == Set(scope.fullState().map(\.json.text)))
      #expect(reader.checkInvariants() == [])
      return parts
    }
    func count(of parts: [StatePart], notIn others: [StatePart]) -> Int {
      parts.count { part in !others.contains { $0 === part } }
    }
    let first = copy()
    #expect(first.count > 4)
    // Without a change, with one of a model that is known, and with one of a model that is not.
    #expect(count(of: copy(), notIn: first) == 0)
    canvas.name = "other"
    scope.flush()
    reader.note(canvas.uuid)
    let second = copy()
    #expect(count(of: second, notIn: first) == 1)
    scope.apply([
      SyncFragment(.change, uuid: models[7].uuid, className: "Novel", properties: ["text": "y"])
    ])
    reader.note(models[7].uuid)
    let third = copy()
    #expect(count(of: third, notIn: second) == 1)
    // One has gone and another one has come, of which there is no note.
    let other = SyncFragment(.add, uuid: UUID(), className: "Novel", properties: ["text": "z"])
    scope.apply([other, refer(to: models.dropFirst() + [other])])
    reader.note(canvas.uuid)
    let fourth = copy()
    #expect(count(of: fourth, notIn: third) <= 3)
    scope.apply([refer(to: [])])
    reader.note(canvas.uuid)
    #expect(copy().count == 1)
  }

  @Test("The reader gets a state that all agree on", arguments: 1...10 as ClosedRange<UInt64>)
  func agreement(seed: UInt64) {
    world.generator = SeededGenerator(seed: seed)
    let reader = world.addClient(configuration: Self.quick)
    reader.join()
    world.exchange()
    var steps = 0
    while world.encode() {
      steps += 1
      if Bool.random(using: &world.generator) { change(writer.canvas) }
      if Bool.random(using: &world.generator) { change(world.canvas) }
      if steps.isMultiple(of: 3) { world.exchange() }
      // Another one comes in the middle.
      if steps == 10 { world.addClient(configuration: Self.quick).join() }
    }
    #expect(steps > 10)
    world.encodesAtOnce = true
    world.settle()
    expectAgreement()
    #expect(world.clients.count == 3)
    for client in world.clients { #expect(throws: Never.self) { try client.fetchResult?.get() } }
  }

  @Test("Edits are answered meanwhile")
  func edits() {
    world.exchange()
    let reader = world.addClient(configuration: Self.quick)
    reader.join()
    world.exchange()
    for number in 0..<5 {
      writer.canvas.name = "edit \(number)"
      world.exchange()
      #expect(world.canvas.name == "edit \(number)" && writer.engine.pendingCount == 0)
      #expect(world.encode() && reader.fetchResult == nil)
    }
    world.encodesAtOnce = true
    world.encode()
    world.settle()
    expectAgreement()
  }

  @Test("All who ask share each text, and a change makes only the texts anew that have it")
  func texts() {
    func come() -> Int {
      var count = 0
      for _ in 0..<5 { world.addClient(configuration: Self.quick).join() }
      world.exchange()
      while world.encode() {
        count += 1
        world.exchange()
      }
      world.settle()
      return count
    }
    let all = come()
    #expect(all > 10 && all <= host.states.last?.parts.count ?? 0)
    #expect(come() == 0)
    let shapes = world.canvas.shapes
    for at in [0, 20, 39] { shapes[at].label = "changed" }
    let again = come()
    #expect(again > 1 && again <= 3)
    expectAgreement()
  }

  @Test("An app that changes its models whenever it is told of a change takes nothing back unseen")
  func restless() {
    let token = world.scope.onChanges.listen { [canvas = world.canvas] _ in canvas.likes += 1 }
    world.canvas.name = "first"
    let first = world.addClient(configuration: Self.quick)
    first.join()
    while world.encode() { world.exchange() }
    token.cancel()
    // Nothing tells of a change that is taken back before it is sealed.
    let likes = world.canvas.likes
    world.canvas.likes += 1
    world.canvas.likes = likes
    world.encodesAtOnce = true
    world.settle()
    world.addClient(configuration: Self.quick).join()
    world.settle()
    expectAgreement()
    #expect(world.clients.count == 3)
  }

  @Test("A change that the app takes back while the state is read is not sent")
  func takenBack() {
    let reader = world.addClient(configuration: Self.quick)
    reader.join()
    world.exchange()
    let (shapes, labels) = (world.canvas.shapes, world.canvas.shapes.map(\.label))
    for _ in 0..<5 {
      for shape in shapes { shape.label = "not for long" }
      world.encode()
      for (shape, label) in zip(shapes, labels) { shape.label = label }
    }
    while world.encode() {}
    world.encodesAtOnce = true
    world.settle()
    expectAgreement()
  }

  @Test("What waits does not grow with the pings and fetches of those who wait")
  func bounded() {
    let peer = RawPeer.joined(world, protocol: 2)
    var sizes: Set<Int> = []
    while world.encode() {
      peer.take()
      for _ in 0..<10 { peer.acknowledge() }
      if host.states.last == nil { continue }
      // Each fetch gets a new copy, of which most parts have changed.
      for shape in world.canvas.shapes { shape.x += 1 }
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
      sizes.insert(host.states.size)
      if sizes.count > 20 || peer.syncs.count > 0 { break }
      if peer.messages.count > 400 { break }
    }
    let parts = host.states.last?.parts.count ?? 0
    #expect(parts > 10 && !sizes.isEmpty && sizes.max()! <= parts + 4)
  }

  @Test("A scope that is removed before its state was read refuses the fetch")
  func removed() {
    let reader = world.addClient(configuration: Self.quick)
    reader.join()
    world.exchange()
    #expect(reader.fetchResult == nil)
    world.server.remove(world.scope, .gone("away"))
    world.exchange()
    #expect(throws: SyncError.self) { try reader.fetchResult?.get() }
    #expect(reader.fetchResult != nil)
    world.encode()
    #expect(!world.encode())
  }

  @Test("A session that ends, or leaves, before the state was read is not sent it")
  func gone() {
    let leaver = RawPeer.joined(world, protocol: 2)
    let ender = RawPeer.joined(world, protocol: 2)
    let link = ender.link!
    leaver.send(leaver.stamp(.scopeLeave(ScopeLeave(scopeIndex: host.audience.scopeIndex))))
    world.cut(link)
    world.now += .seconds(601)
    leaver.acknowledge()
    world.server.advance(to: world.now)
    #expect(world.endedSessions.count == 2)
    while world.encode() {}
    leaver.take()
    for peer in [leaver, ender] {
      #expect(
        !peer.messages.contains {
          switch $0 {
          case .scopeFetchReply, .scopeState: true
          default: false
          }
        })
    }
    #expect(host.states.fetches.isEmpty)
    world.server.advance(to: world.now + .seconds(2))
    #expect(host.states.size == 0)
  }

  @Test(
    "A history is copied at once after it was prepared", arguments: 1...5 as ClosedRange<UInt64>)
  func preparedHistory(seed: UInt64) throws {
    world.generator = SeededGenerator(seed: seed)
    var prepared: (history: ScopeHistory, json: String)?
    world.server.prepareHistory(of: world.scope) {
      guard let history = world.server.history(of: world.scope) else { return }
      prepared = (history, world.scope.canonicalJSON)
    }
    var steps = 0
    while world.encode() {
      steps += 1
      if Bool.random(using: &world.generator) { change(writer.canvas) }
      if Bool.random(using: &world.generator) { change(world.canvas) }
      if steps.isMultiple(of: 3) { world.exchange() }
      // One who fetches has the texts made on the way.
      if seed == 5, steps == 10 { world.addClient(configuration: Self.quick).join() }
      #expect(prepared == nil || steps > 10)
    }
    let (history, json) = try #require(prepared)
    #expect(history.parts.count > 10)
    let other = InMemoryWorld()
    try other.server.host(other.scope, history: history) { _ in }
    #expect(other.scope.canonicalJSON == json, "seed \(seed)")
    world.encodesAtOnce = true
    world.settle()
    expectAgreement()
    // The next one is there, but for what has changed.
    var isDone = false
    world.encodesAtOnce = false
    world.server.prepareHistory(of: world.scope) { isDone = true }
    #expect(isDone && world.encodings.isEmpty)
  }

  @Test("A scope that is removed while its history is prepared leaves nothing behind")
  func removedPreparation() {
    var isDone = false
    world.server.prepareHistory(of: world.scope) { isDone = true }
    #expect(world.encode() && !isDone)
    world.server.remove(world.scope, .gone("It is gone"))
    while world.encode() {}
    #expect(!isDone && world.server.hosts.isEmpty && world.server.work.encoding.isEmpty)
  }

  // MARK: Overflow

  @Test(
    "A session whose fetches have waited is answered no more of them than may wait for it",
    arguments: [false, true])
  func overflow(isStored: Bool) throws {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = 2_000
    configuration.keptLimit.messages = 60
    configuration.limits.unstoredBytes = nil
    try StateReadingTests(InMemoryWorld(configuration: configuration)).overflow(isStored)
  }

  private func overflow(_ isStored: Bool) throws {
    let peer = RawPeer.joined(world, protocol: 2)
    while world.encode() {}
    peer.take()
    peer.acknowledge()
    let wrong = SyncFragment(.change, uuid: UUID(), className: "Shape", properties: ["x": 1])
    for _ in 0..<40 { #expect(peer.submit([wrong]).first?.error != nil) }
    let session = try #require(world.server.sessions.values.first { $0.info.token == peer.token })
    let told = session.channel.highestSent
    for shape in world.canvas.shapes { shape.x += 1 }
    world.scope.flush()
    world.server.advance(to: world.now + .seconds(2))
    world.now += .seconds(2)
    let fetches = (0..<40).map { _ in peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))) }
    peer.send(String(decoding: Message.encodeFrame(fetches, asArray: true), as: UTF8.self))
    if isStored {
      host.order.records.store = { _ in }
      world.canvas.name = "not durable"
      world.scope.flush()
    }
    while world.encode() {}
    if isStored {
      #expect(session.channel.highestSent == told && !session.link.hasEnded)
      world.server.stored(1, of: world.scope)
    }
    // As many as there was room for, and one more that was too many.
    #expect(session.link.hasEnded)
    #expect(session.channel.highestSent - session.channel.highestAcknowledged == 61)
    #expect(session.channel.highestSent - told < 40)
    #expect(world.server.checkInvariants() == [])
  }
}
