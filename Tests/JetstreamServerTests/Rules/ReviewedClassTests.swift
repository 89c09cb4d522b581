import Foundation
import Jetstream
import Synchronization
import Testing

@testable import JetstreamServer

/// Changes of clients that name another class than that of the model, which is never checked.
@Suite("The classes of changes in a review")
struct ReviewedClassTests {
  /// The classes of the fragments that were reviewed.
  private final class Reviewed: Sendable {
    private let names = Mutex<[String]>([])

    func add(_ new: [String]) { names.withLock { $0 += new } }

    func take() -> [String] {
      names.withLock { names in
        defer { names = [] }
        return names
      }
    }
  }

  private let world: InMemoryWorld
  private let shape = Shape()
  private let reviewed = Reviewed()

  init() { self.init(unknown: .reject) }

  private init(unknown: UnknownContent, sliceSize: Int? = nil) {
    var rules = ScopeRules()
    rules.allowsUnknownContent = unknown == .keep
    rules.review { [reviewed] changes in
      reviewed.add(changes.fragments.map(\.className))
      for (index, fragment) in changes.fragments.enumerated()
      where fragment.className == "Shape" && fragment.properties["label"] == "spam" {
        changes.reject(at: index, "No spam")
      }
    }
    var configuration = ServerEngine.Configuration()
    configuration.rules = { [rules] in $0 == "Canvas" ? rules : nil }
    if let sliceSize { configuration.sliceSize = sliceSize }
    world = InMemoryWorld(configuration: configuration, unknown: unknown)
    world.judgesAtOnce = sliceSize == nil
    world.canvas.shapes.append(shape)
    world.scope.flush()
  }

  private func change(
    _ uuid: UUID, as name: String, _ properties: JSONObject = ["label": "spam"]
  ) -> SyncFragment {
    SyncFragment(.change, uuid: uuid, className: name, properties: properties)
  }

  private func add(_ uuid: UUID, as name: String) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: name, properties: [:])
  }

  private func hold(_ uuid: UUID) -> SyncFragment {
    var fragment = change(world.canvas.uuid, as: "Canvas", [:])
    fragment.operations["shapes"] = [.insert(uuid, .end)]
    return fragment
  }

  @Test("A change has the class of its model, whatever its client says", arguments: [1, 2])
  func shared(version: Int) {
    let (bob, eve) = (
      RawPeer.joined(world, protocol: version), RawPeer.joined(world, protocol: 2)
    )
    let replies = bob.submit([
      change(shape.uuid, as: "Canvas"), change(shape.uuid, as: "Bogus"),
      change(shape.uuid, as: "Canvas", ["x": 1]),
    ])
    #expect(replies.map(\.error) == [.rejected("No spam"), .rejected("No spam"), nil])
    #expect(shape.label == "" && shape.x == 1)
    #expect(reviewed.take() == ["Shape", "Shape", "Shape"])
    eve.take()
    #expect(eve.syncs.flatMap(\.fragments) == [change(shape.uuid, as: "Shape", ["x": 1])])
  }

  @Test("A change of a model that the change set adds has the class of the addition")
  func added() {
    let uuid = UUID()
    let peer = RawPeer.joined(world, protocol: 2)
    let replies = peer.submit([
      // The first addition of a class that the scope has is the one that counts.
      add(uuid, as: "Bogus"), change(uuid, as: "Canvas"), add(uuid, as: "Shape"),
      add(uuid, as: "Canvas"), hold(uuid),
    ])
    #expect(replies[1].error == .rejected("No spam"))
    #expect(replies.map { $0.error == nil } == [false, false, true, false, true])
    #expect(reviewed.take() == ["Bogus", "Shape", "Shape", "Canvas", "Canvas"])
  }

  @Test("A change of a model that has left, and is put back, has the class of that model")
  func departed() {
    let peer = RawPeer.joined(world, protocol: 2)
    world.canvas.shapes.removeAll()
    world.scope.flush()
    let replies = peer.submit([
      add(shape.uuid, as: "Canvas"), add(shape.uuid, as: "Shape"),
      change(shape.uuid, as: "Canvas"), hold(shape.uuid),
    ])
    #expect(replies[2].error == .rejected("No spam"))
    #expect(world.canvas.shapes.map(\.label) == [""])
  }

  @Test("A model of a class that the scope does not know keeps it")
  func kept() {
    let tests = ReviewedClassTests(unknown: .keep)
    let uuid = UUID()
    let peer = RawPeer.joined(tests.world, protocol: 2)
    var holding = tests.change(tests.world.canvas.uuid, as: "Canvas", [:])
    holding.properties["ideas"] = .array([.string(uuid.wireText)])
    let replies = peer.submit([
      tests.add(uuid, as: "Idea"), holding, tests.change(uuid, as: "Shape"),
    ])
    #expect(replies.map(\.error) == [nil, nil, nil])
    #expect(tests.reviewed.take() == ["Idea", "Canvas", "Idea"])
    _ = peer.submit([tests.change(uuid, as: "Shape")])
    #expect(tests.reviewed.take() == ["Idea"])
  }

  @Test("A change of a model that comes into the scope after the review is rejected")
  func arrived() {
    // The last one has decided it.
    let slices = arrived(after: nil)
    #expect(slices > 3)
    for cut in 0..<slices { _ = arrived(after: cut) }
  }

  /// Sends a change of a model that comes into the scope after a number of slices. Returns the number of slices.
  private func arrived(after cut: Int?) -> Int {
    let tests = ReviewedClassTests(unknown: .reject, sliceSize: 4)
    let (world, uuid) = (tests.world, UUID())
    let (bob, eve) = (RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2))
    let others = (0..<20).map { tests.change(tests.shape.uuid, as: "Shape", ["x": .integer($0)]) }
    let message = eve.send([tests.change(uuid, as: "Canvas")] + others)
    guard let cut else { return world.judgeAll() }
    for _ in 0..<cut { #expect(world.judge()) }
    let addition = bob.submit([tests.add(uuid, as: "Shape"), tests.hold(uuid)])
    #expect(addition.map(\.error) == [nil, nil])
    let more = world.judgeAll()
    let replies = eve.replies(to: message) ?? []
    #expect(replies.count == 21 && replies.first?.error != nil, "\(cut)")
    #expect(replies.dropFirst().allSatisfy { $0.error == nil }, "\(cut)")
    #expect(world.canvas.shapes.map(\.label) == ["", ""], "\(cut)")
    return cut + more
  }
}
