import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Limits on the size of a scope")
struct ScopeLimitTests {
  private func world(
    _ change: (inout ServerLimits) -> Void
  ) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.streamLimit.leastBytes = 4_000
    change(&configuration.limits)
    return InMemoryWorld(configuration: configuration)
  }

  private func client(in world: InMemoryWorld) -> WorldClient {
    let client = world.addClient()
    client.join()
    world.settle()
    return client
  }

  /// A set of shapes that a client adds at the end of the root's `shapes`.
  private func adding(_ count: Int, to canvas: Canvas, label: String = "") -> [SyncFragment] {
    let ids = (0..<count).map { _ in UUID() }
    let all = canvas.shapes.map(\.uuid) + ids
    return [
      SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas",
        properties: ["shapes": .array(all.map { .string($0.wireText) })])
    ]
      + ids.map {
        SyncFragment(.add, uuid: $0, className: "Shape", properties: ["label": .string(label)])
      }
  }

  @Test("A change set that would add too many models is rejected, and those that add none are not")
  func models() {
    let world = world { $0.modelsPerScope = 4 }
    let client = client(in: world)
    let peer = RawPeer.joined(world)
    #expect(peer.submit(adding(2, to: world.canvas)).allSatisfy { $0.error == nil })
    let replies = peer.submit(adding(2, to: world.canvas))
    #expect(replies.map { $0.error?.type } == ["scope-full", "scope-full", "scope-full"])
    #expect(world.canvas.shapes.count == 2 && world.limitHits == [.modelsPerScope: 1])
    #expect(peer.submit(adding(1, to: world.canvas)).allSatisfy { $0.error == nil })
    world.settle()
    #expect(world.scope.count == 4)
    // The scope is full: changes, moves and removals go on.
    client.canvas.shapes[0].label = "changed"
    client.canvas.selected = client.canvas.shapes[1]
    world.settle()
    #expect(world.canvas.shapes[0].label == "changed" && world.canvas.selected != nil)
    client.canvas.shapes.append(Shape())
    world.settle()
    #expect(
      client.canvas.shapes.count == 3 && client.rejections.contains("Shape: The scope is full"))
    client.canvas.selected = nil
    client.canvas.shapes.remove(at: 2)
    world.settle()
    client.canvas.shapes.append(Shape())
    world.settle()
    #expect(world.canvas.shapes.count == 3 && client.tokens == [nil])
    #expect(world.limitHits == [.modelsPerScope: 2])
  }

  @Test("Models that come back count, with all below them")
  func comeBack() {
    let world = world { $0.modelsPerScope = 4 }
    let (peer, outer) = (RawPeer.joined(world, protocol: 2), Shape())
    for _ in 0..<2 { outer.parts.append(Shape()) }
    world.canvas.shapes.append(outer)
    world.scope.flush()
    func edit(_ operation: PropertyOperation) -> WireError? {
      let fragment = SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
        operations: ["shapes": [operation]])
      return peer.submit([fragment])[0].error
    }
    #expect(edit(.remove(outer.uuid)) == nil && edit(.insert(outer.uuid, .end)) == nil)
    #expect(edit(.remove(outer.uuid)) == nil)
    #expect(peer.submit(adding(1, to: world.canvas)).allSatisfy { $0.error == nil })
    #expect(edit(.insert(outer.uuid, .end))?.type == "scope-full")
    #expect(world.scope.count == 2 && world.limitHits == [.modelsPerScope: 1])
  }

  @Test("The app's own models are not limited, and count")
  func ownModels() {
    let world = world { $0.modelsPerScope = 3 }
    let client = client(in: world)
    for _ in 0..<4 { world.canvas.shapes.append(Shape()) }
    world.settle()
    #expect(client.canvas.shapes.count == 4)
    client.canvas.shapes.append(Shape())
    world.settle()
    #expect(world.canvas.shapes.count == 4 && client.canvas.shapes.count == 4)
  }

  @Test("A scope of rows has the same limit")
  func rows() throws {
    var configuration = ServerEngine.Configuration()
    configuration.limits.modelsPerScope = 3
    let content = RowsContent(name: "Rows", ScopeSchema(of: Canvas.self))
    let engine = ServerEngine(
      configuration: configuration,
      hooks: .init(fetch: { _, _, _ in .success(content) }, makeToken: { "" }, random: { 0.5 }),
      perform: { _ in })
    let host = engine.hostedScope(content)
    func limit(adding count: Int) -> ServerLimit? {
      let additions = (0..<count).map { _ in
        SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
      }
      return engine.limit(
        exceededBy: ScopeSync(scopeIndex: 0, fragments: additions), of: 100, from: nil, in: host)
    }
    #expect(host.order.modelCount == 1)
    #expect(limit(adding: 2) == nil && limit(adding: 3) == .modelsPerScope)
  }

  @Test("A scope that is too large takes no more models until others are removed")
  func bytes() {
    let world = world { $0.bytesPerScope = 50_000 }
    let client = client(in: world)
    let label = String(repeating: "x", count: 400)
    func add() -> Bool {
      let before = client.rejections.count
      let shape = Shape()
      shape.label = label
      client.canvas.shapes.append(shape)
      world.settle()
      return client.rejections.count == before
    }
    var count = 0
    while count < 500, add() { count += 1 }
    let size = world.scope.canonicalJSON.utf8.count
    #expect(size > 25_000 && size < 100_000, "\(count) shapes have \(size) bytes.")
    #expect(world.limitHits[.bytesPerScope] == 1 && world.canvas.shapes.count == count)
    let other = label.uppercased()
    client.canvas.shapes[0].label = other
    world.settle()
    #expect(world.canvas.shapes[0].label == other)
    #expect(!add())
    for place in (count / 2..<count).reversed() { client.canvas.shapes.remove(at: place) }
    world.settle()
    #expect(add() && client.tokens == [nil])
  }

  @Test("A scope that is too large takes no longer values until others are shorter")
  func longerValues() {
    let world = world { $0.bytesPerScope = 50_000 }
    for _ in 0..<100 { world.canvas.shapes.append(Shape()) }
    let client = client(in: world)
    func label(_ shape: Int, _ count: Int) -> Bool {
      let before = client.rejections.count
      client.canvas.shapes[shape].label = String(repeating: "x", count: count)
      world.settle()
      return client.rejections.count == before
    }
    var count = 0
    while count < 100, label(count, 4_000) { count += 1 }
    let size = world.scope.canonicalJSON.utf8.count
    #expect(size > 25_000 && size < 100_000, "\(count) long labels make \(size) bytes.")
    #expect(world.limitHits == [.bytesPerScope: 1])
    // Values that are short, or not longer than before, are taken.
    #expect(label(count, 64) && label(0, 3_999) && !label(0, 8_000))
    client.canvas.shapes[0].x = 7
    client.canvas.selected = client.canvas.shapes[1]
    world.settle()
    #expect(world.canvas.shapes[0].x == 7 && world.canvas.selected != nil)
    for shape in 0..<count { #expect(label(shape, 10)) }
    #expect(label(0, 4_000) && client.tokens == [nil])
  }

  @Test("A procedure takes no longer values of a client than a plain change set")
  func longerValuesOfCalls() {
    let world = world { $0.bytesPerScope = 50_000 }
    world.procedures["Canvas.edit"] = ServedProcedure(takesArguments: false) { [world] request in
      do {
        try request.commit { (_: Canvas) in }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
    for _ in 0..<100 { world.canvas.shapes.append(Shape()) }
    let peer = RawPeer.joined(world)
    func label(_ shape: Int, _ count: Int) -> WireError? {
      let change = SyncFragment(
        .change, uuid: world.canvas.shapes[shape].uuid, className: "Shape",
        properties: ["label": .string(String(repeating: "x", count: count))])
      var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: [change])
      (sync.procedure, sync.atomic) = ("Canvas.edit", true)
      let message = peer.stamp(.scopeSync(sync))
      peer.send(message)
      world.exchange()
      peer.acknowledge()
      let replies = peer.replies(to: message.index)
      #expect(replies?.count == 1, "\(peer.close as Any) \(world.log)")
      return replies?.first?.error
    }
    var count = 0
    while count < 100, label(count, 4_000) == nil { count += 1 }
    let size = world.scope.canonicalJSON.utf8.count
    #expect(size > 25_000 && size < 100_000, "\(count) long labels make \(size) bytes.")
    #expect(world.limitHits == [.bytesPerScope: 1])
    #expect(label(count, 4_000)?.type == "scope-full" && label(count, 60) == nil)
  }

  @Test("A scope without a limit takes whatever comes")
  func unlimited() {
    let world = world { ($0.modelsPerScope, $0.bytesPerScope) = (nil, nil) }
    let peer = RawPeer.joined(world)
    #expect(peer.submit(adding(500, to: world.canvas)).allSatisfy { $0.error == nil })
    #expect(world.limitHits == [:])
  }
}
