import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("What the server does with submissions", .paced)
struct SubmissionTests {
  private let world = InMemoryWorld()
  private let shape = Shape()

  init() {
    world.canvas.shapes.append(shape)
    world.scope.flush()
  }

  private func change(_ model: ModelObject, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: model.uuid, className: model is Canvas ? "Canvas" : "Shape",
      properties: properties)
  }

  private func add(_ uuid: UUID, _ properties: JSONObject = [:]) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Shape", properties: properties)
  }

  private func list(_ uuids: UUID...) -> JSONValue {
    .array(uuids.map { .string($0.wireText) })
  }

  @Test("The origin is told nothing, each other session one message")
  func broadcast() {
    let peers = (0..<3).map { _ in RawPeer.joined(world) }
    #expect(peers[0].submit([change(shape, ["x": 5])]) == [FragmentReply()])
    for peer in peers { peer.take() }
    #expect(peers.map(\.syncs.count) == [0, 1, 1])
    #expect(peers[1].syncs[0].fragments == [change(shape, ["x": 5])])
    #expect(shape.x == 5)
  }

  @Test("A session that fetches a scope twice keeps its number and is told once")
  func fetchTwice() {
    let peer = RawPeer.joined(world)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    shape.x = 3
    world.scope.flush()
    peer.take()
    #expect(peer.syncs.count == 1)
    #expect(peer.messages.filter { $0.type == "ScopeState" }.count == 2)
  }

  @Test("Operations are not part of this version of the protocol: they are refused")
  func operations() {
    let peer = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    let before = world.scope.canonicalJSON
    var edit = change(world.canvas, [:])
    edit.operations = ["shapes": [.remove(shape.uuid)]]
    #expect(peer.submit([edit]).map { $0.error != nil } == [true])
    #expect(world.scope.canonicalJSON == before)
    other.take()
    #expect(other.syncs.isEmpty)
  }

  @Test("A wrong fragment is refused alone")
  func independence() {
    let peer = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    let replies = peer.submit([
      change(shape, ["x": "no"]), change(shape, ["y": 2]), change(shape, ["x": 9, "nope": 1]),
      add(UUID()), change(world.canvas, ["selected": .string(shape.uuid.wireText)]),
    ])
    #expect(replies.map { $0.error == nil } == [false, true, false, false, true])
    #expect(shape.x == 0 && shape.y == 2 && world.canvas.selected === shape)
    other.take()
    #expect(other.syncs.map(\.fragments.count) == [2])
  }

  @Test("Additions may refer to each other in any order, and to themselves")
  func references() {
    let peer = RawPeer.joined(world)
    let uuids = (0..<3).map { _ in UUID() }
    let replies = peer.submit([
      change(world.canvas, ["shapes": list(shape.uuid, uuids[2])]),
      add(uuids[0], ["parts": list(uuids[0])]), add(uuids[1], ["parts": list(uuids[0])]),
      add(uuids[2], ["parts": list(uuids[1])]), change(shape, ["parts": list(uuids[0])]),
    ])
    #expect(replies.allSatisfy { $0.error == nil })
    #expect(world.scope.count == 5)
  }

  @Test("What refers to a rejected addition is rejected with it, however long the chain")
  func chains() {
    let peer = RawPeer.joined(world)
    let uuids = (0..<20_000).map { _ in UUID() }
    var fragments = zip(uuids, uuids.dropFirst()).map { add($0, ["parts": list($1)]) }
    fragments.append(add(uuids.last!, ["x": "no"]))
    fragments.append(change(world.canvas, ["shapes": list(shape.uuid, uuids[0])]))
    #expect(peer.submit(fragments).allSatisfy { $0.error != nil })
    #expect(world.scope.count == 2)
  }

  @Test("What loses its last parent leaves the store with all below it")
  func orphans() {
    let part = Shape()
    shape.parts.append(part)
    world.scope.flush()
    let peer = RawPeer.joined(world)
    peer.submit([change(world.canvas, ["shapes": []])])
    #expect(world.scope.count == 1)
    let reply = peer.submit([change(part, ["x": 1])])[0]
    #expect(reply.error?.message.hasPrefix("ModelObject not found") == true)
    // The same identity may come again.
    let uuid = shape.uuid
    let replies = peer.submit([
      add(uuid, ["x": 4]), change(world.canvas, ["shapes": list(uuid)]),
    ])
    #expect(replies.allSatisfy { $0.error == nil } && world.canvas.shapes.first?.x == 4)
  }

  @Test("Replies and changes come in the order of the requests")
  func order() {
    let peers = (0..<2).map { _ in RawPeer.joined(world) }
    for round in 0..<10 {
      let peer = peers[round % 2]
      peer.submit([change(shape, ["x": .integer(Int64(round)), "y": .integer(Int64(round))])])
    }
    for peer in peers { peer.take() }
    let told = peers[1].syncs.map { $0.fragments.map { [$0.properties["x"], $0.properties["y"]] } }
    #expect(told.first == [[.integer(0), .integer(0)]])
    #expect(told.allSatisfy { $0.allSatisfy { $0[0] == $0[1] } }, "sets are never interleaved")
    for peer in peers {
      let answered = peer.messages.compactMap { message -> Int? in
        if case .scopeSyncReply(let reply) = message { reply.replyTo } else { nil }
      }
      #expect(answered == Array(2...6))
    }
    #expect(shape.x == 9 && shape.y == 9)
  }

  @Test("An atomic set with one wrong fragment does nothing at all")
  func atomic() {
    let peer = RawPeer.joined(world, version: "0.2.0+rebase")
    let other = RawPeer.joined(world)
    let before = world.scope.canonicalJSON
    let made = UUID()
    let good = [
      change(shape, ["x": 5]), add(made), change(world.canvas, ["shapes": list(made)]),
      change(shape, ["x": "no"]),
    ]
    let replies = peer.submit(good, atomic: true)
    #expect(replies.count == 4 && replies.allSatisfy { $0.error != nil })
    #expect(replies[3].error?.message.contains("Not valid type at 'x'") == true)
    #expect(replies[0].error?.message.contains("atomic") == true)
    other.take()
    #expect(other.syncs.isEmpty && peer.syncs.isEmpty)
    #expect(world.scope.canonicalJSON == before)
    #expect(peer.submit(good.dropLast(), atomic: true).allSatisfy { $0.error == nil })
    other.take()
    #expect(other.syncs.count == 1)
  }

  // MARK: Corrections for clients that do not rebase

  @Test("A change behind an unseen one of another session is told to its origin again")
  func missedScalar() {
    let old = RawPeer.joined(world)
    let new = RawPeer.joined(world, version: "0.2.0+rebase")
    let other = RawPeer.joined(world)
    other.submit([change(shape, ["x": 7])])
    old.submit([change(shape, ["x": 5])])
    #expect(old.syncs.map(\.fragments) == [[change(shape, ["x": 7])], [change(shape, ["x": 5])]])
    new.submit([change(shape, ["x": 6])])
    #expect(new.syncs.last?.fragments == [change(shape, ["x": 5])])
    // Once it is known what the session has seen, nothing is told twice.
    old.take()
    old.acknowledge()
    let count = old.syncs.count
    old.submit([change(shape, ["x": 8])])
    #expect(old.syncs.count == count)
  }

  @Test("An element that an old session could not know stays, and the session gets it")
  func unknownElement() {
    let old = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    let theirs = UUID()
    let mine = UUID()
    other.submit([add(theirs), change(world.canvas, ["shapes": list(shape.uuid, theirs)])])
    old.submit([add(mine), change(world.canvas, ["shapes": list(shape.uuid, mine)])])
    #expect(world.canvas.shapes.map(\.uuid) == [shape.uuid, theirs, mine])
    let correction = old.syncs.last!.fragments
    #expect(Set(correction.filter { $0.kind == .add }.map(\.uuid)).isSuperset(of: [theirs, mine]))
    #expect(correction.last?.properties["shapes"] == list(shape.uuid, theirs, mine))
    // Now it knows: leaving it out removes it.
    old.acknowledge()
    old.submit([change(world.canvas, ["shapes": list(shape.uuid, mine)])])
    #expect(world.canvas.shapes.map(\.uuid) == [shape.uuid, mine])
  }

  @Test("A ping that asks to resend does not prove that what follows is newer")
  func resumeProvesNothing() {
    let old = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    other.submit([change(shape, ["x": 7])])
    old.take()
    let seen = old.messages.map(\.index).max()!
    old.send(.ping(Ping(ack: seen, resendMissing: true)))
    old.submit([change(shape, ["x": 5])])
    #expect(old.syncs.last?.fragments == [change(shape, ["x": 5])])
  }

  @Test("What stands behind a rejected value is told to a session that may go back too far")
  func rejectedBehindMissed() {
    let old = RawPeer.joined(world)
    let other = RawPeer.joined(world)
    other.submit([change(shape, ["x": 7])])
    #expect(old.submit([change(shape, ["x": "no"])])[0].error != nil)
    #expect(old.syncs.last?.fragments == [change(shape, ["x": 7])])
    #expect(old.syncs.count == 2)
  }
}
