import Foundation
import Testing

@testable import Jetstream

@Suite("Sync fragments", .paced)
struct SyncFragmentTests {
  let uuid = UUID(uuidString: "4D01CD3B-AE1A-429C-AE75-4C211B0ADEFA")!

  @Test("JSON has the server's key order and a lower-case UUID")
  func json() {
    let fragment = SyncFragment(
      .add, uuid: uuid, className: "Shape", properties: ["x": .float(0.1), "name": .null])
    let text =
      #"{"type":"add","uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","clsName":"Shape","#
      + #""properties":{"x":0.1,"name":null}}"#
    #expect(fragment.json.text == text)
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == text)
  }

  @Test(
    "Writing straight to bytes is the same as writing the JSON value",
    arguments: [
      SyncFragment.Kind.add, .change,
    ])
  func direct(kind: SyncFragment.Kind) {
    let fragment = SyncFragment(
      kind, uuid: uuid, className: "a \"class\"", properties: ["a": [1, 2], "b": ["c": true]])
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == fragment.json.text)
  }

  @Test("Either case of UUID is read, unknown keys are ignored")
  func tolerant() throws {
    for text in [uuid.uuidString, uuid.uuidString.lowercased()] {
      let json: JSONValue = [
        "clsName": "Shape", "properties": ["x": 1], "future": ["a": 1], "type": "change",
        "uuid": .string(text),
      ]
      let fragment = try SyncFragment(json: json)
      #expect(
        fragment == SyncFragment(.change, uuid: uuid, className: "Shape", properties: ["x": 1]))
      #expect(try SyncFragment(json: fragment.json) == fragment)
    }
  }

  @Test("A missing field is named", arguments: ["type", "uuid", "clsName", "properties"])
  func missing(field: String) {
    var object = valid
    object[field] = nil
    #expect(throws: FragmentError.missing(field: field)) {
      try SyncFragment(json: .object(object))
    }
  }

  @Test(
    "A wrong field is named",
    arguments: [
      ("type", JSONValue.null, "should be a string"),
      ("type", "remove", "should be \"add\" or \"change\""),
      ("type", "Add", "should be \"add\" or \"change\""),
      ("uuid", 7, "should be a string"),
      ("uuid", "not a uuid", "should be a UUID"),
      ("clsName", .null, "should be a string"),
      ("properties", .null, "should be an object"),
      ("properties", .array([]), "should be an object"),
    ])
  func invalid(field: String, value: JSONValue, problem: String) {
    var object = valid
    object[field] = value
    #expect(throws: FragmentError.invalid(field: field, problem: problem)) {
      try SyncFragment(json: .object(object))
    }
  }

  @Test(
    "Something else than an object is no fragment",
    arguments: [
      JSONValue.null, .array([]), "add", 1,
    ])
  func noObject(value: JSONValue) {
    #expect(throws: FragmentError.notAnObject) { try SyncFragment(json: value) }
  }

  @Test("UUID text goes both ways as Foundation has it")
  func uuidText() {
    for _ in 0..<1_000 {
      let uuid = UUID()
      #expect(uuid.wireText == uuid.uuidString.lowercased())
      #expect(UUID(wireText: uuid.wireText) == uuid)
      #expect(UUID(wireText: uuid.uuidString) == uuid)
    }
  }

  @Test(
    "Text that is nearly a UUID is refused",
    arguments: [
      "", "4d01cd3b-ae1a-429c-ae75-4c211b0adef", "4d01cd3b-ae1a-429c-ae75-4c211b0adefa0",
      "4d01cd3bae1a429cae754c211b0adefa", "{4d01cd3b-ae1a-429c-ae75-4c211b0adef}",
      "4d01cd3b-ae1a-429c-ae754-c211b0adefa", "4d01cd3g-ae1a-429c-ae75-4c211b0adefa",
      "4d01cd3b ae1a-429c-ae75-4c211b0adefa", "+d01cd3b-ae1a-429c-ae75-4c211b0adefa",
      "4d01cd3b-ae1a-429c-ae75-4c211b0adeé",
    ])
  func noUUID(text: String) {
    #expect(UUID(wireText: text) == nil)
  }

  private var valid: JSONObject {
    ["type": "add", "uuid": .string(uuid.wireText), "clsName": "Shape", "properties": [:]]
  }
}
