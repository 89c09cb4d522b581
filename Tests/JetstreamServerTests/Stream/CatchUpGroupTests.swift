import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Values that a later change set of a group replaces are left out, and nothing else is.
@Suite("A group of change sets that have waited")
struct CatchUpGroupTests {
  private let canvas = UUID()
  private let shape = UUID()
  private static let classes = ModelSchema.of(Canvas.self).reachable(with: [])

  private func group(
    sets: Int = 100, bytes: Int = 1 << 20, own: Int = 0
  ) -> CatchUpGroup {
    CatchUpGroup(room: StreamAmount(sets: sets, bytes: bytes), own: { own }) { fragment in
      Self.classes.first { $0.wireName == fragment.className }?.data
    }
  }

  private func item(_ sequence: Int, seen: Int? = nil, _ fragments: SyncFragment...) -> StreamItem {
    var origin = ChangeOrigin()
    origin.seen = seen
    return StreamItem(
      sequence: sequence, author: nil, origin: origin, fragments: fragments, whole: nil,
      newcomers: [])
  }

  private func name(_ name: String) -> SyncFragment {
    SyncFragment(.change, uuid: canvas, className: "Canvas", properties: ["name": .string(name)])
  }

  private func move(_ x: Int64, _ properties: JSONObject = [:]) -> SyncFragment {
    var all = properties
    all["x"] = .integer(x)
    return SyncFragment(.change, uuid: shape, className: "Shape", properties: all)
  }

  private func sent(_ group: CatchUpGroup) -> [ScopeSync] {
    group.messages(scopeIndex: 3).compactMap {
      if case .scopeSync(let sync) = $0 { sync } else { nil }
    }
  }

  @Test("Of the values of a property only the last is left, and each change set keeps its sequence")
  func lastValue() {
    let group = group().with((1...4).map { item($0, name("\($0)")) })
    let sent = sent(group)
    #expect(sent.map(\.sequence) == [1, 2, 3, 4] && sent.allSatisfy { $0.scopeIndex == 3 })
    #expect(sent.map(\.fragments) == [[], [], [], [name("4")]])
    #expect(group.isReduced && group.last == 4)
    #expect(group.items.map(\.fragments) == (1...4).map { [name("\($0)")] })
  }

  @Test("Other properties, and the same one of other models, stay")
  func others() {
    let other = SyncFragment(
      .change, uuid: UUID(), className: "Shape", properties: ["x": 7, "label": "other"])
    let group = group().with([
      item(1, move(1, ["label": "kept"]), other), item(2, name("a")), item(3, move(3)),
    ])
    let label = SyncFragment(
      .change, uuid: shape, className: "Shape", properties: ["label": "kept"])
    #expect(sent(group).map(\.fragments) == [[label, other], [name("a")], [move(3)]])
  }

  @Test("References, collections, entries, counters and unknown properties stay")
  func stayWhole() {
    let one = UUID().wireText
    let kinds: [JSONObject] = [
      ["selected": .string(one)], ["shapes": [.string(one)]], ["named.a": .string(one)],
      ["likes": 1], ["unheardOf": 1],
    ]
    for properties in kinds {
      let fragment = SyncFragment(
        .change, uuid: canvas, className: "Canvas", properties: properties)
      let group = group().with((1...3).map { item($0, fragment) })
      #expect(group.count == 3 && !group.isReduced)
      #expect(sent(group).allSatisfy { $0.fragments == [fragment] })
    }
  }

  @Test("Additions and models of unknown classes stay")
  func additions() {
    let addition = SyncFragment(.add, uuid: shape, className: "Shape", properties: ["x": 1])
    let unknown = SyncFragment(.change, uuid: UUID(), className: "Ghost", properties: ["x": 1])
    let group = group().with([
      item(1, addition, unknown), item(2, move(2)), item(3, move(3), unknown),
    ])
    #expect(sent(group).map(\.fragments) == [[addition, unknown], [], [move(3), unknown]])
  }

  @Test("What was done to a model before it was added again stays")
  func addedAgain() {
    let addition = SyncFragment(.add, uuid: shape, className: "Shape", properties: ["x": 2])
    let group = group().with([
      item(1, move(1)), item(2, addition), item(3, move(3)), item(4, move(4)),
    ])
    #expect(sent(group).map(\.fragments) == [[move(1)], [addition], [], [move(4)]])
  }

  @Test("Operations of a fragment stay when its values are left out")
  func operations() {
    let both = SyncFragment(
      .change, uuid: canvas, className: "Canvas", properties: ["name": "a"],
      operations: ["likes": [.add(1)]])
    var left = both
    left.properties = [:]
    let group = group().with([item(1, both), item(2, name("b"))])
    #expect(sent(group).map(\.fragments) == [[left], [name("b")]])
  }

  @Test("A group has as many change sets as there is room for, the first whatever its size")
  func sets() {
    let large = name(String(repeating: "a", count: 1000))
    #expect(group(sets: 2, bytes: 10).with([item(1, large), item(2, move(1))]).count == 1)
    let full = group(sets: 2).with((1...3).map { item($0, move(Int64($0))) })
    #expect(sent(full).map(\.fragments) == [[], [move(2)]])
  }

  @Test("What is left out takes no room; what does not fit replaces nothing")
  func bytes() {
    let text = String(repeating: "a", count: 1000)
    let group = group(bytes: 8_000).with((1...20).map { item($0, name(text)) })
    #expect(group.count == 20 && group.bytes < 8_000)
    let large = String(repeating: "b", count: 8_000)
    let full = group.with([item(21, name(large))])
    #expect(sent(full).last?.fragments == [name(text)] && full.count == 20)
  }

  @Test("Values of large fragments are left out in linear time")
  func largeFragments() throws {
    let found = try growth(from: 500) { count in
      let properties = (0..<count).map { number -> JSONValue in
        ["name": .string("\(number)"), "type": "json"]
      }
      let schema = try ScopeSchema([
        "version": 1, "root": "A", "classes": [["name": "A", "properties": .array(properties)]],
      ]).schema.root
      let empty = CatchUpGroup(room: StreamAmount(sets: 9, bytes: 1 << 20), own: { 0 }) { _ in
        schema
      }
      let items = (1...2).map { number in
        item(
          number,
          SyncFragment(
            .change, uuid: canvas, className: "A",
            properties: JSONObject((0..<count).map { ("\($0)", .integer(Int64(number))) })))
      }
      return {
        let group = empty.with(items)
        #expect(sent(group).map(\.fragments.count) == [0, 1])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  /// Returns the positions of the values that are left of change sets whose authors had seen these sequences. They
  /// follow the sequence 10.
  private func left(own: Int, seen: Int?...) -> [Int] {
    let group = group(own: own).with(
      seen.enumerated().map { item(11 + $0, seen: $1, name("\($0)")) })
    return sent(group).enumerated().filter { !$1.fragments.isEmpty }.map(\.offset)
  }

  @Test("The first value stays if the receiver's own may be overwritten unseen")
  func unseen() {
    #expect(left(own: 10, seen: nil, nil, nil) == [2])
    #expect(left(own: 10, seen: 10, 11, 12) == [2])
    // The first has not seen it: a conflict.
    #expect(left(own: 10, seen: 9, 11, 12, 13) == [0, 3])
    // The first has seen it, so that what follows is no conflict, whatever its author had seen.
    #expect(left(own: 10, seen: 10, 11, 9, 12) == [1, 3])
    #expect(left(own: 10, seen: 10, 9, 9, 9) == [0, 3])
  }
}

extension CatchUpGroup {
  /// Returns the group with change sets, up to the first that does not fit.
  fileprivate func with(_ items: [StreamItem]) -> CatchUpGroup {
    var group = self
    for item in items { if !group.append(item) { break } }
    return group
  }
}
