import Foundation
import Testing

@testable import Jetstream

@Suite("Property operations", .paced)
struct PropertyOperationTests {
  private let a = UUID(uuidString: "0a000000-0000-4000-8000-000000000001")!
  private let b = UUID(uuidString: "0b000000-0000-4000-8000-000000000002")!
  private let c = UUID(uuidString: "0c000000-0000-4000-8000-000000000003")!

  private func fragment(_ operations: PropertyOperations) -> SyncFragment {
    SyncFragment(.change, uuid: a, className: "List", properties: [:], operations: operations)
  }

  @Test("operations travel behind the properties of a change, as the golden file says")
  func golden() throws {
    let fragment = fragment([
      "items": [
        .insert(a, .end), .insert(b, .start), .insert(c, .after([a, b])), .remove(a),
        .move(b, .end), .move(c, .start),
      ],
      "likes": [.add(2), .add(-9_223_372_036_854_775_807)],
    ])
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Golden/Fragments/operations.json")
    let golden = try JSONValue(parsing: Data(contentsOf: url))
    #expect(fragment.json == golden)
    #expect(try SyncFragment(json: golden) == fragment)
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == golden.text)
  }

  @Test("a fragment without operations has no such key")
  func none() {
    #expect(!fragment([:]).json.text.contains("operations"))
  }

  @Test(
    "what is wrong is named",
    arguments: [
      (#"[]"#, "operations should be an object"),
      (#"{"x":{}}"#, "operations.x should be an array with operations"),
      (#"{"x":[]}"#, "operations.x should be an array with operations"),
      (#"{"x":[1]}"#, "operations.x should hold objects"),
      (#"{"x":[{}]}"#, #"operations.x should hold "insert", "remove", "move" or "add""#),
      (#"{"x":[{"insert":"?"}]}"#, "operations.x should name models by their UUIDs"),
      (#"{"x":[{"remove":null}]}"#, "operations.x should name models by their UUIDs"),
      (
        #"{"x":[{"move":"0a000000-0000-4000-8000-000000000001","after":1}]}"#,
        #"operations.x "after" should be an array"#
      ),
      (
        #"{"x":[{"move":"0a000000-0000-4000-8000-000000000001","after":["?"]}]}"#,
        "operations.x should name models by their UUIDs"
      ),
      (#"{"x":[{"add":1.5}]}"#, "operations.x should add a whole number"),
      (#"{"x":[{"add":9223372036854775808}]}"#, "operations.x should add a whole number"),
    ])
  func malformed(text: String, problem: String) throws {
    var object: JSONObject = [
      "type": "change", "uuid": a._jsonValue, "clsName": "List", "properties": [:],
    ]
    object["operations"] = try JSONValue(parsing: text)
    let error = #expect(throws: FragmentError.self) { try SyncFragment(json: .object(object)) }
    #expect(error?.description == problem)
  }

  @Test("more places than anybody needs are refused, and operations in an addition as well")
  func refused() throws {
    let anchors = JSONValue.array(Array(repeating: b._jsonValue, count: 17))
    let operations: JSONValue = ["x": [["insert": a._jsonValue, "after": anchors]]]
    #expect(throws: FragmentError.self) { try PropertyOperations(json: operations) }
    var addition = fragment(["x": [.remove(a)]])
    addition.kind = .add
    #expect(throws: FragmentError.self) { try SyncFragment(json: addition.json) }
  }

  @Test("what operations make of a list: each finds its place by the nearest model that is there")
  func lists() {
    func result(_ list: [UUID], _ operations: PropertyOperation...) -> [UUID] {
      var list = CollectionContent(list)
      list.apply(operations)
      return list.elements
    }
    #expect(result([a], .insert(b, .start), .insert(c, .end)) == [b, a, c])
    #expect(result([a, b], .insert(c, .after([a]))) == [a, c, b])
    #expect(result([b], .insert(c, .after([a, b]))) == [b, c])
    #expect(result([b], .insert(c, .after([a]))) == [b, c])
    #expect(result([a, b], .insert(a, .end)) == [b, a])
    #expect(result([a], .move(b, .start)) == [a])
    #expect(result([a, b, c], .move(a, .after([b]))) == [b, a, c])
    #expect(result([a], .remove(b), .remove(a)) == [])
    #expect(result([a], .add(1)) == [a])
  }

  @Test("sums stay within the type, wherever they begin")
  func sums() {
    #expect(Int8(100).addingWithinRange(27) == 127)
    #expect(Int8(100).addingWithinRange(28) == 127)
    #expect(Int8(-100).addingWithinRange(200) == 100)
    #expect(Int8(0).addingWithinRange(.min) == -128)
    #expect(UInt64.max.addingWithinRange(1) == .max)
    #expect(UInt64.max.addingWithinRange(.min) == UInt64.max - (1 << 63))
    #expect(UInt64(5).addingWithinRange(-6) == 0)
    #expect(Int64.min.addingWithinRange(-1) == .min)
    #expect(JSONValue.difference(from: 3, to: 5) == 2)
    #expect(JSONValue.difference(from: .unsigned(.max), to: .unsigned(.max - 1)) == -1)
    #expect(JSONValue.difference(from: 0, to: .unsigned(.max)) == nil)
    #expect(JSONValue.difference(from: 0, to: .integer(.min)) == nil)
    #expect(JSONValue.difference(from: .null, to: 1) == nil)
  }

  @Test("a model that is renamed is renamed wherever it is named")
  func renamed() {
    let before: PropertyOperations = [
      "x": [.insert(a, .after([b, a])), .move(a, .start), .add(1)]
    ]
    let after: PropertyOperations = ["x": [.insert(c, .after([b, c])), .move(c, .start), .add(1)]]
    #expect(before.renaming(a, to: c) == after)
  }
}
