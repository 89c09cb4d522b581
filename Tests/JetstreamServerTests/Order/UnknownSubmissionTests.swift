import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("What a server keeps that it does not know", .paced)
struct UnknownSubmissionTests {
  let world: InMemoryWorld
  let peer: RawPeer
  let shape = Shape()

  init() {
    world = InMemoryWorld(unknown: .keep)
    world.canvas.shapes = [shape]
    world.scope.flush()
    peer = RawPeer.joined(world)
  }

  private func change(_ model: ModelObject, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: model.uuid, className: model.schema.wireName, properties: properties)
  }

  private func errors(_ fragments: SyncFragment...) -> [String?] {
    peer.submit(fragments).map { $0.error?.message }
  }

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.uuidString.lowercased()) }

  @Test("Unless it is asked to keep, it rejects as ever")
  func rejectsByDefault() {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world)
    let (circle, root) = (UUID(), world.canvas.uuid)
    let replies = peer.submit([
      SyncFragment(.add, uuid: circle, className: "Circle", properties: [:]),
      SyncFragment(
        .change, uuid: root, className: "Canvas", properties: ["shapes": [text(circle)]]),
      SyncFragment(.change, uuid: root, className: "Canvas", properties: ["title": "x"]),
    ])
    let messages = replies.map { $0.error?.message ?? "" }
    #expect(messages[0].hasPrefix("No such class type 'Circle'"))
    #expect(messages[1].hasPrefix("No such ModelObject"))
    #expect(messages[2].hasPrefix("No property at 'title'"))
    #expect(world.scope.unknownModels.isEmpty && world.canvas.shapes.isEmpty)
    #expect(world.scope.unknownProperties(of: world.canvas).isEmpty)
  }

  @Test("Unknown properties are kept, null included, and told to those who come later")
  func keepsAndRelays() {
    let later = RawPeer.joined(world)
    let properties: JSONObject = ["rotation": 90, "note": .null, "deep": ["a": [1, ["b": 2]]]]
    #expect(errors(change(shape, properties)) == [nil])
    later.take()
    #expect(later.syncs.last?.fragments.map(\.properties) == [properties])
    #expect(world.scope.unknownProperties(of: shape) == properties)
    #expect(world.scope.unknownProperties(of: shape).keys == ["deep", "note", "rotation"])
    #expect(errors(change(shape, ["rotation": .null])) == [nil])
    #expect(world.scope.unknownProperties(of: shape)["rotation"] == .null)
    let newcomer = RawPeer.joined(world)
    let states = newcomer.messages.compactMap {
      if case .scopeState(let state) = $0 { state.fragments } else { nil }
    }
    #expect(states.first?.first { $0.uuid == shape.uuid }?.properties["note"] == .null)
  }

  @Test("Known properties of a model of an unknown class are checked like any others")
  func checksStandIns() {
    let circle = UUID()
    func add(_ properties: JSONObject) -> SyncFragment {
      SyncFragment(.add, uuid: circle, className: "Circle", properties: properties)
    }
    let place = change(world.canvas, ["shapes": [text(shape.uuid), text(circle)]])
    #expect(
      errors(add(["x": "wide", "radius": 1]), place)[0]?.hasPrefix("Not valid type at 'x'") == true)
    #expect(world.canvas.shapes.count == 1)
    #expect(errors(add(["x": 5, "radius": "any"]), place) == [nil, nil])
    #expect(world.canvas.shapes.last?.x == 5)
    let wrong = SyncFragment(.change, uuid: circle, className: "Circle", properties: ["y": true])
    #expect(errors(wrong)[0]?.hasPrefix("Not valid type at 'y'") == true)
    let other = SyncFragment(.add, uuid: circle, className: "Square", properties: [:])
    #expect(errors(other)[0]?.contains("it is a Circle, not a Square") == true)
    #expect(errors(change(world.canvas, ["selected": text(world.canvas.uuid)]))[0] != nil)
  }

  @Test("An unknown model that nothing refers to is rejected, also as a ring")
  func unreferenced() {
    let (a, b) = (UUID(), UUID())
    func group(_ uuid: UUID, _ other: UUID) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Group", properties: ["groups": [text(other)]])
    }
    let replies = errors(group(a, b), group(b, a))
    #expect(replies.allSatisfy { $0?.hasPrefix("No parents") == true })
    #expect(errors(group(a, b), group(b, a), change(shape, ["group": text(a)])) == [nil, nil, nil])
    #expect(world.scope.unknownModels.count == 2)
    let change = SyncFragment(.change, uuid: b, className: "Group", properties: ["label": "b"])
    #expect(errors(change) == [nil])
    #expect(world.scope.unknownModels.contains { $0.properties["label"] == "b" })
    #expect(errors(self.change(shape, ["group": .null])) == [nil])
    #expect(world.scope.unknownModels.isEmpty)
    #expect(errors(change)[0]?.hasPrefix("ModelObject not found") == true)
  }

  @Test("What is too much or too deep is rejected, and the scope stays as it was")
  func hostileSizes() {
    let before = world.scope.canonicalJSON
    let many = JSONObject((0..<300).map { ("key \($0)", JSONValue.double(1)) })
    #expect(errors(change(shape, many))[0]?.hasPrefix("More than 256 unknown properties") == true)
    let add = SyncFragment(.add, uuid: UUID(), className: "Group", properties: many)
    #expect(errors(add)[0]?.hasPrefix("More than 256 unknown properties") == true)
    #expect(world.scope.canonicalJSON == before)
    for step in 0..<256 { #expect(errors(change(shape, ["key \(step)": 1])) == [nil]) }
    #expect(errors(change(shape, ["one more": 1]))[0]?.hasPrefix("More than 256") == true)
    #expect(errors(change(shape, ["key 7": 2])) == [nil])
    let full = world.scope.canonicalJSON
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    let uuid = shape.uuid.uuidString
    peer.send(
      #"{"type":"ScopeSync","index":900,"scopeIndex":0,"fragments":[{"type":"change","uuid":"#
        + #""\#(uuid)","clsName":"Shape","properties":{"key 7":\#(deep)}}]}"#)
    #expect(peer.close?.code == 1007)
    #expect(world.scope.canonicalJSON == full)
  }

  @Test("A dictionary that is not known takes new entries, however many it has had")
  func entries() {
    let group = UUID()
    func write(_ key: String, _ value: JSONValue) -> [String?] {
      errors(
        SyncFragment(
          .change, uuid: group, className: "Group", properties: ["members/\(key)": value]))
    }
    let add = SyncFragment(
      .add, uuid: group, className: "Group", properties: ["label": .null, "members/x": .null])
    #expect(errors(add, change(shape, ["group": text(group)])) == [nil, nil])
    for step in 0..<257 {
      #expect(write("\(step)", text(shape.uuid)) == [nil])
      #expect(write("\(step)", .null) == [nil])
    }
    #expect(world.scope.unknownModels.map(\.properties) == [["label": .null]])
  }

  @Test("A model that has as many unknown entries as it may have takes one for another")
  func fullDictionary() {
    for step in 0..<256 { #expect(errors(change(shape, ["members/\(step)": 1])) == [nil]) }
    #expect(errors(change(shape, ["members/0": .null, "members/a": 1])) == [nil])
    #expect(errors(change(shape, ["members/b": 1]))[0]?.hasPrefix("More than 256") == true)
    // A fragment that removes something may be rejected in the end.
    let swap = errors(change(shape, ["members/1": .null]), change(shape, ["members/b": 1]))
    #expect(swap[0] == nil && swap[1]?.hasPrefix("More than 256") == true)
    let rejected = errors(
      change(shape, ["members/2": .null, "members/3": .null, "label": 7]),
      change(shape, ["c/c": 1]), change(shape, ["c/d": 1]))
    #expect(rejected[0] != nil && rejected[1] == nil)
    #expect(rejected[2]?.hasPrefix("More than 256") == true)
    #expect(world.scope.unknownProperties(of: shape).count == 256)
  }

  @Test("What counts of unknown models is found once for all change sets that do not change it")
  func foundOnce() {
    let (circle, other) = (UUID(), Shape())
    world.canvas.shapes.append(other)
    world.scope.flush()
    let add = SyncFragment(.add, uuid: circle, className: "Circle", properties: [:])
    #expect(errors(add, change(shape, ["group": text(circle)])) == [nil, nil])
    let known = world.scope.unknownModelUUIDs()
    #expect(known == [circle])
    let changes = [change(world.canvas, ["name": "x"]), change(other, ["rotation": 90])]
    for change in changes { #expect(errors(change) == [nil]) }
    // It is the same set, and no equal one that was made of all unknown values again.
    let now = world.scope.unknownModelUUIDs()
    #expect(unsafeBitCast(now, to: UInt.self) == unsafeBitCast(known, to: UInt.self))
    #expect(errors(change(shape, ["group": .null])) == [nil])
    #expect(world.scope.unknownModelUUIDs().isEmpty)
    #expect(errors(change(shape, ["group": [text(circle), text(other.uuid)]])) == [nil])
    #expect(world.scope.unknownModelUUIDs() == [circle])
    world.canvas.shapes = [shape]
    world.scope.flush()
    #expect(world.scope.unknownModelUUIDs() == [circle, other.uuid])
    world.canvas.shapes = []
    world.scope.flush()
    #expect(world.scope.unknownModelUUIDs().isEmpty)
  }

  @Test("A chain of unknown models as long as it may be is taken without recursion")
  func longChain() {
    let uuids = (0..<20_000).map { _ in UUID() }
    var fragments = uuids.indices.map { at in
      SyncFragment(
        .add, uuid: uuids[at], className: "Circle",
        properties: ["parts": at + 1 < uuids.count ? [text(uuids[at + 1])] : []])
    }
    fragments.append(change(shape, ["group": text(uuids[0])]))
    #expect(peer.submit(fragments).allSatisfy { $0.error == nil })
    #expect(world.scope.unknownModels.count == uuids.count)
    #expect(errors(change(shape, ["parts": [text(uuids[0])]])) == [nil])
    #expect(world.scope.unknownModels.isEmpty && world.scope.count == uuids.count + 2)
  }
}
