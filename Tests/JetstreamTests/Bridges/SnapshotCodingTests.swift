import Foundation
import Testing

@testable import Jetstream

private final class Depot: ModelObject {
  @Property(.wireName("n")) var name = ""
  @Property var opened = Date(timeIntervalSince1970: 10.5)
  @Property var keys: [UInt64] = []
  @Property var note: String?
  @Property(.local) var isMarked = false
  @WeakReference var rival: Depot?
  @Property var main: Depot?
  @Property var branches: ModelArray<Depot> = []

  convenience init(_ name: String, _ number: UInt8) {
    self.init(uuid: Depot.uuid(number))
    self.name = name
  }

  static func uuid(_ number: UInt8) -> UUID {
    UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number))
  }
}

private func id(_ number: UInt8) -> JSONValue { .string(Depot.uuid(number).wireText) }

@Suite(.paced) struct SnapshotCodingTests {
  private func json(_ depot: Depot) throws -> JSONValue {
    try JSONValue(
      parsing: JSONEncoder().encode(depot.snapshot()), limits: JSONLimits(maxDepth: 256))
  }

  private func object(
    _ number: UInt8, _ name: String, _ changes: [(String, JSONValue)] = []
  ) -> JSONValue {
    var object: JSONObject = [
      "uuid": id(number), "name": .string(name), "opened": 10.5, "keys": [], "note": .null,
      "isMarked": false, "rival": .null, "main": .null, "branches": [],
    ]
    for (key, value) in changes { object[key] = value }
    return .object(object)
  }

  @Test("A snapshot is written as nested objects, with the names of the properties")
  func nested() throws {
    let top = Depot("top", 1)
    top.keys = [.max, 0]
    top.isMarked = true
    top.note = "e\u{301}"
    top.main = Depot("main", 2)
    top.branches = [Depot("a", 3), Depot("b", 4)]
    top.branches[1].branches = [Depot("c", 5)]
    let expected = object(
      1, "top",
      [
        ("keys", [.unsigned(.max), 0]), ("isMarked", true), ("note", "e\u{301}"),
        ("main", object(2, "main")),
        ("branches", [object(3, "a"), object(4, "b", [("branches", [object(5, "c")])])]),
      ])
    #expect(try json(top) == expected)
    #expect(try json(Depot("alone", 9)) == object(9, "alone"))
  }

  @Test("A model that is met again is written as its UUID, in a cycle and by another path")
  func again() throws {
    let (top, below, last) = (Depot("top", 1), Depot("below", 2), Depot("last", 3))
    top.main = below
    top.branches = [last, below]
    below.branches = [last, below]
    below.main = top
    top.rival = last
    defer {
      below.branches = []
      below.main = nil
    }
    let inside = object(
      2, "below", [("main", id(1)), ("branches", [object(3, "last"), id(2)])])
    #expect(
      try json(top)
        == object(
          1, "top", [("rival", id(3)), ("main", inside), ("branches", [id(3), id(2)])]))
    // Each run of an encoder starts anew.
    #expect(try json(top) == json(top))
    let pair = try JSONValue(parsing: JSONEncoder().encode([top.snapshot(), top.snapshot()]))
    #expect(pair == .array([try json(top), try json(top)]))
  }

  @Test("A tree that is too deep is refused with an error that names the model")
  func depth() throws {
    let top = Depot("top", 1)
    var last = top
    for _ in 0..<127 {
      last.main = Depot()
      last = last.main!
    }
    _ = try json(top)
    let tooDeep = Depot("deep", 7)
    last.main = tooDeep
    let error = #expect(throws: EncodingError.self) { try json(top) }
    guard case .invalidValue(let value, let context)? = error else {
      Issue.record("\(String(describing: error)) is another error")
      return
    }
    #expect(value as? UUID == Depot.uuid(7))
    #expect(context.debugDescription.contains("Depot"))
  }

  @Test("Any JSON survives an encoder and a decoder", arguments: seeds(1...8))
  func jsonValues(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for step in 0..<50 {
      let value = random(4, &generator)
      let bytes = try JSONEncoder().encode([value])
      #expect(
        try JSONValue(parsing: bytes).canonicalText == JSONValue.array([value]).canonicalText,
        "seed \(seed), step \(step)")
      let read = try JSONDecoder().decode([JSONValue].self, from: bytes)
      #expect(read[0].canonicalText == value.canonicalText, "seed \(seed), step \(step)")
      let other = try JSONDecoder().decode(JSONValue.self, from: Data(value.text.utf8))
      #expect(other.canonicalText == value.canonicalText, "seed \(seed), step \(step)")
      #expect(other.text == other.canonicalText, "seed \(seed), step \(step)")
    }
  }

  private func random(_ depth: Int, _ generator: inout SeededGenerator) -> JSONValue {
    switch Int.random(in: 0..<(depth == 0 ? 7 : 10), using: &generator) {
    case 0: return .null
    case 1: return .bool(.random(using: &generator))
    case 2: return .integer(.random(in: .min ... .max, using: &generator))
    case 3: return .unsigned(.random(in: UInt64(Int64.max) + 1 ... .max, using: &generator))
    case 4: return .double(.random(in: -1e9...1e9, using: &generator))
    case 5: return .double([1e300, -1e-300, 0, 2, 0.1].randomElement(using: &generator)!)
    case 6:
      return .string(["", "a\"\\/\n", "\u{1F600}", "true", "1"].randomElement(using: &generator)!)
    case 7, 8:
      return .array(
        (0..<Int.random(in: 0..<4, using: &generator)).map { _ in random(depth - 1, &generator) })
    default:
      var object = JSONObject()
      for _ in 0..<Int.random(in: 0..<4, using: &generator) {
        object["k\(Int.random(in: 0..<20, using: &generator))"] = random(depth - 1, &generator)
      }
      return .object(object)
    }
  }

  @Test("JSON can be part of a Codable value, with its numbers as they are")
  func insideOfCodable() throws {
    struct Envelope: Codable, Equatable {
      var kind: String
      var body: JSONValue
      var maybe: JSONValue?
    }
    let envelope = Envelope(kind: "k", body: ["a": [1, 2.5, .unsigned(.max), .null]], maybe: nil)
    let bytes = try JSONEncoder().encode(envelope)
    #expect(try JSONDecoder().decode(Envelope.self, from: bytes) == envelope)
    let float = try JSONEncoder().encode([JSONValue.float(0.1), .double(.nan)])
    #expect(String(decoding: float, as: UTF8.self) == "[0.1,null]")
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(JSONValue.self, from: Data("[1,".utf8))
    }
  }
}
