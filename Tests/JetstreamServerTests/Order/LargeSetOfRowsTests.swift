import Foundation
import Jetstream
import Synchronization
import Testing

@testable import JetstreamServer

/// The models that the rules were asked about.
private final class Questions: Sendable {
  private let models = Mutex<[UUID]>([])

  func note(_ uuid: UUID) { models.withLock { $0.append(uuid) } }

  /// Returns the number of questions about each model.
  func counts() -> [UUID: Int] {
    models.withLock { $0.reduce(into: [:]) { $0[$1, default: 0] += 1 } }
  }
}

@Suite("Large change sets of scopes that are hosted from a schema")
struct LargeSetOfRowsTests {
  private let world: InMemoryWorld
  private let content = RowsContent(name: "Rows", ScopeSchema(of: Canvas.self))
  private let questions = Questions()
  private let uuids = (0..<10).map { _ in UUID() }

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.sliceSize = 4
    var rules = ScopeRules()
    rules.create(Shape.self, "The canvas is closed") { [questions] _, shape in
      questions.note(shape.uuid)
      return shape.x < 100 && shape.root(as: Canvas.self)?.name != "closed"
    }
    configuration.rules = { [rules] name in name == "Rows" ? rules : nil }
    world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
    world.rows = ["Rows": content]
    world.server.host(content)
  }

  private func peer() -> RawPeer {
    let peer = RawPeer(world)
    #expect(peer.createSession() == nil)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Rows"))))
    return peer
  }

  private var root: UUID { content.document.root.uuid }

  private func name(_ name: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: root, className: "Canvas", properties: ["name": .string(name)])
  }

  /// Shapes that the canvas is to hold, the first of which has another value than the rest.
  private func additions(first: Int64 = 5) -> [SyncFragment] {
    let insertion = SyncFragment(
      .change, uuid: root, className: "Canvas", properties: [:],
      operations: ["shapes": uuids.map { .insert($0, .end) }])
    return [insertion]
      + uuids.map {
        let x = $0 == uuids[0] ? first : 5
        return SyncFragment(.add, uuid: $0, className: "Shape", properties: ["x": .integer(x)])
      }
  }

  @discardableResult
  private func send(_ fragments: [SyncFragment], from peer: RawPeer) -> Message {
    let message = peer.stamp(
      .scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: fragments)))
    peer.send(message)
    return message
  }

  @Test("Rules are asked once about what they permit, while nothing changes the scope")
  func judgedOnce() {
    let (ann, bob) = (peer(), peer())
    let message = send(additions(), from: ann)
    #expect(world.judgeAll() > 5)
    #expect(ann.replies(to: message.index) == Array(repeating: FragmentReply(), count: 11))
    #expect(questions.counts() == Dictionary(uniqueKeysWithValues: uuids.map { ($0, 1) }))
    #expect(content.document.count == 11 && bob.syncs.map(\.fragments.count) == [11])
  }

  @Test("Of what is denied, only the rest is applied, without another look at it")
  func deniedInPart() {
    let (ann, bob) = (peer(), peer())
    var fragments = additions(first: 100)
    // It would fall with the shape that is denied.
    fragments[0].operations["shapes"].removeFirst()
    let holder = SyncFragment(
      .change, uuid: root, className: "Canvas", properties: [:],
      operations: ["hidden": [.insert(uuids[0], .end)]])
    let message = send(fragments + [holder], from: ann)
    world.judgeAll()
    let errors = ann.replies(to: message.index)?.map { $0.error?.message }
    #expect(errors?[1] == "The canvas is closed" && errors?[0] == nil && errors?[11] != nil)
    #expect(content.document.count == 10 && bob.syncs.count == 1)
    // The others once more, since without the fragments that are denied other differences are left.
    #expect(questions.counts()[uuids[0]] == 1 && questions.counts()[uuids[1]] == 2)
  }

  @Test("What has changed meanwhile counts", arguments: ["open", "closed"])
  func changed(name: String) {
    let (ann, bob) = (peer(), peer())
    let message = send(additions(), from: ann)
    while questions.counts().count < 10 { #expect(world.judge()) }
    bob.submit([self.name(name)])
    world.judgeAll()
    let errors = ann.replies(to: message.index)?.compactMap { $0.error?.message } ?? []
    #expect(errors.count { $0 == "The canvas is closed" } == (name == "closed" ? 10 : 0))
    #expect(questions.counts()[uuids[0]] == 2)
    #expect(content.document.count == (name == "closed" ? 1 : 11))
  }

  @Test("A model that is gone for good meanwhile does not come back by its insertion")
  func forgotten() {
    let (ann, bob) = (peer(), peer())
    bob.submit([
      SyncFragment(.add, uuid: uuids[0], className: "Shape", properties: [:]),
      SyncFragment(
        .change, uuid: root, className: "Canvas", properties: [:],
        operations: ["shapes": [.insert(uuids[0], .end)]]),
    ])
    bob.submit([
      SyncFragment(
        .change, uuid: root, className: "Canvas", properties: [:],
        operations: ["shapes": [.remove(uuids[0])]])
    ])
    ann.take()
    ann.acknowledge()
    #expect(world.server.departedCount(of: content) == 1)
    var fragments = additions()
    // It may come back without an addition, as long as it is not forgotten.
    fragments.removeAll { $0.uuid == uuids[0] }
    let message = send(fragments, from: ann)
    while questions.counts().count < 10 { #expect(world.judge()) }
    // Now all have seen that it is gone.
    var ping = Ping(ack: 0)
    ping.seen = [Ping.Place(scopeIndex: bob.scopeIndex, sequence: 2)]
    bob.send(.ping(ping))
    world.advance(by: .seconds(1))
    #expect(world.server.departedCount(of: content) == 0)
    world.judgeAll()
    let errors = ann.replies(to: message.index)?.compactMap(\.error) ?? []
    #expect(errors.count == 10 && content.document.count == 1)
  }
}
