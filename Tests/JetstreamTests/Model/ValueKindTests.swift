import Foundation
import Testing

@testable import Jetstream

private struct Point: CodableValue {
  var x: Double
  var y: Double
}

private struct Everything: CodableValue {
  var small: Int64 = .min
  var large: UInt64 = .max
  var float: Float = 0.1
  var date = Date(timeIntervalSince1970: 10.5)
  var data = Data([0, 255])
  var link = URL(string: "https://example.org/a")
  var names: [String: Point] = [:]
  var note: String?
}

private enum Mood: String, CodableValue { case good, bad }

private struct Unwritable: CodableValue {
  init() {}
  init(from decoder: any Decoder) throws {}
  func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(0, .init(codingPath: [], debugDescription: "no form"))
  }
}

private final class Kinds: ModelObject {
  @Property var link = URL(string: "https://example.org")!
  @Property var maybeLink: URL?
  @Property var links: [URL] = []
  @Property var data = Data()
  @Property var maybeData: Data?
  @Property var chunks: [Data?] = []
  @Property var counts: [String: Int] = [:]
  @Property var maybeCounts: [String: UInt64?]?
  @Property var nested: [String: [[String: Float?]]?] = [:]
  @Property var numbers: [String: Double] = [:]
  @Property var matrix: [[Double]?] = []
  @Property var point = Point(x: 0, y: 0)
  @Property var maybePoint: Point?
  @Property var path: [Point] = []
  @Property var places: [String: Point?] = [:]
  @Property var everything = Everything()
  @Property var mood = Mood.good
  @Property var number = 0
}

private final class Wrong: ModelObject {
  @Property var shapes: [Shape] = []
}

private final class Twice: ModelObject {
  @Property var number: Int??
}

private final class Broken: ModelObject {
  @Property var value = Unwritable()
}

/// Sends the model's state as bytes into a fresh model, and that one's state once more.
#if ON_ACTOR
@TestDomain
#endif
private func copy(_ model: Kinds) throws -> Kinds {
  func bytes(_ scope: Scope) -> [UInt8] {
    var bytes: [UInt8] = []
    JSONValue.array(scope.fullState().map(\.json)).write(to: &bytes)
    return bytes
  }
  let source = manualScope(model)
  guard case .array(let values) = try JSONValue(parsing: bytes(source)) else { return Kinds() }
  let result = Kinds(uuid: model.uuid)
  let scope = manualScope(result)
  let report = scope.apply(try values.map { try SyncFragment(json: $0) })
  #expect(report.isComplete, "\(report.errors)")
  #expect(bytes(scope) == bytes(source))
  return result
}

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ValueKindTests {
  @Test("URLs, bytes, dictionaries and Codable values survive the way through bytes")
  func roundTrip() throws {
    let source = Kinds()
    var target = try copy(source)
    #expect(target.maybeLink == nil && target.data.isEmpty && target.counts.isEmpty)
    source.link = URL(string: "data:text/plain;a=%20b?c#d")!
    source.maybeLink = URL(string: "/relative/path", relativeTo: URL(string: "http://h/x/")!)
    source.links = [URL(string: "a")!, URL(string: "b/")!]
    source.data = Data((0...255).map(UInt8.init))
    source.maybeData = Data()
    source.chunks = [Data([1]), nil, Data([1, 2]), Data(repeating: 7, count: 10_000)]
    source.counts = ["": .min, "max": .max, "b\u{0}\"\u{1F600}": 0]
    source.maybeCounts = ["max": .max, "none": nil, "edge": 1 << 63]
    source.nested = ["none": nil, "empty": [], "some": [["x": 0.1, "y": nil], [:]]]
    source.matrix = [nil, [], [1, .pi]]
    source.point = Point(x: .pi, y: -.greatestFiniteMagnitude)
    source.maybePoint = Point(x: .leastNonzeroMagnitude, y: 1e22)
    source.path = [source.point, Point(x: 1, y: 2)]
    source.places = ["here": Point(x: 1, y: 2), "nowhere": nil]
    source.everything.names = ["z": source.point, "a10": Point(x: 0, y: 0), "a9": source.point]
    source.everything.note = ""
    source.mood = .bad
    target = try copy(source)
    #expect(target.link == source.link)
    #expect(target.maybeLink?.absoluteString == "http://h/relative/path")
    #expect(target.links == source.links)
    #expect(target.data == source.data && target.maybeData == Data())
    #expect(target.chunks == source.chunks)
    #expect(target.counts == source.counts && target.maybeCounts == source.maybeCounts)
    #expect(target.nested == source.nested && target.matrix == source.matrix)
    #expect(target.point == source.point && target.maybePoint == source.maybePoint)
    #expect(target.path == source.path && target.places == source.places)
    #expect(target.everything == source.everything && target.mood == .bad)
  }

  @Test("All 64 bits of integers survive, alone and inside of values")
  func integers() throws {
    var generator = SeededGenerator(seed: 11)
    let source = Kinds()
    for _ in 0..<200 {
      let signed = Int64.random(in: .min ... .max, using: &generator)
      let unsigned = UInt64.random(in: .min ... .max, using: &generator)
      source.counts = ["a": Int(signed)]
      source.maybeCounts = ["b": unsigned]
      source.everything.small = signed
      source.everything.large = unsigned
      let target = try copy(source)
      #expect(target.counts["a"] == Int(signed), "seed 11")
      #expect(target.maybeCounts == ["b": unsigned], "seed 11")
      #expect(target.everything.small == signed, "seed 11")
      #expect(target.everything.large == unsigned, "seed 11")
    }
  }

  @Test(
    "not-a-number and the infinities travel as texts in every kind, and writing them again is nothing",
    arguments: [Double.nan, .infinity, -.infinity])
  func nonFinite(_ value: Double) throws {
    let source = Kinds()
    let scope = manualScope(source)
    func write() {
      source.numbers = ["n": value]
      source.matrix = [[value, 1]]
      source.nested = ["n": [["f": Float(value)]]]
      source.point = Point(x: value, y: 1)
      source.everything.float = Float(value)
      source.path = [Point(x: value, y: value)]
    }
    #expect(scope.changeSets(of: write).count == 1)
    #expect(scope.changeSets(of: write).isEmpty)
    #expect(scope.changeSets { source.point.y = 2 }.count == 1)
    let word: JSONValue = value.isNaN ? "NaN" : value > 0 ? "Infinity" : "-Infinity"
    #expect(source.numbers._jsonValue == ["n": word])
    #expect(source.matrix._jsonValue == [[word, 1.0]])
    #expect(source.point._jsonValue == ["x": word, "y": 2])
    let target = try copy(Kinds(source))
    #expect([String: Double]._isSame(target.numbers, source.numbers))
    #expect(Point._isSame(target.point, source.point))
    #expect([Point]._isSame(target.path, source.path))
    #expect(Everything._isSame(target.everything, source.everything))
  }

  @Test("keys are written in one order, whatever order they came in")
  func keyOrder() {
    let forward = Dictionary(uniqueKeysWithValues: (0..<40).map { ("k\($0)", $0) })
    var backward: [String: Int] = [:]
    for number in (0..<40).reversed() { backward["k\(number)"] = number }
    #expect(forward._jsonValue.text == backward._jsonValue.text)
    #expect(
      ["b": 1, "a9": 2, "a10": 3, "B": 4]._jsonValue.text == #"{"B":4,"a10":3,"a9":2,"b":1}"#)
    let value = Everything(names: ["b": Point(x: 2, y: 1), "a": Point(x: 0, y: 0)])
    let text = value._jsonValue.text
    #expect(
      text == #"{"data":"AP8=","date":10.5,"float":0.1,"large":18446744073709551615,"#
        + #""link":"https://example.org/a","#
        + #""names":{"a":{"x":0,"y":0},"b":{"x":2,"y":1}},"small":-9223372036854775808}"#)
  }

  @Test("texts that are encoded differently are different, as keys and inside of values")
  func encodings() {
    let composed = "\u{E9}"
    let decomposed = "e\u{301}"
    #expect(![String: Int]._isSame([composed: 1], [decomposed: 1]))
    #expect([String: Int]._isSame([composed: 1], [composed: 1]))
    #expect(!Everything._isSame(Everything(note: composed), Everything(note: decomposed)))
    #expect(Everything._isSame(Everything(note: composed), Everything(note: composed)))
  }

  @Test(
    "What does not fit is refused, and the value stays",
    arguments: [
      ("link", 5), ("link", "a b"), ("link", ""), ("link", "http://["), ("link", .null),
      ("links", ["a", 1]), ("data", "QQ"), ("data", "QR=="), ("data", "QQ==\n"), ("data", "===="),
      ("data", [1]), ("chunks", ["QQ==", "?"]), ("counts", ["a": 1, "b": "x"]), ("counts", [1]),
      ("counts", ["a": 1.5]), ("nested", ["a": [["x": true]]]), ("point", ["x": 1]),
      ("point", ["x": 1, "y": "far"]), ("point", 7), ("point", .null), ("path", [["x": 1]]),
      ("places", ["a": 1]), ("mood", "ugly"), ("everything", [:]),
    ] as [(String, JSONValue)])
  func refused(_ key: String, _ json: JSONValue) {
    let model = Kinds()
    model.data = Data([1])
    model.counts = ["kept": 1]
    let scope = manualScope(model)
    let before = scope.canonicalJSON
    let report = scope.apply([
      SyncFragment(
        .change, uuid: model.uuid, className: "Kinds", properties: [key: json, "number": 9])
    ])
    #expect(report.errors.map(\.fragment) == [0])
    #expect(model.number == 9)
    model.number = 0
    #expect(scope.canonicalJSON == before)
  }

  @Test("An optional of the new kinds becomes nil instead")
  func refusedOptionals() {
    let model = Kinds()
    model.maybeLink = model.link
    model.maybeData = Data([1])
    model.maybePoint = model.point
    model.maybeCounts = [:]
    let scope = manualScope(model)
    let report = scope.apply([
      SyncFragment(
        .change, uuid: model.uuid, className: "Kinds",
        properties: ["maybeLink": 1, "maybeData": "?", "maybePoint": "far", "maybeCounts": [0]])
    ])
    #expect(report.errors.count == 4)
    #expect(model.maybeLink == nil && model.maybeData == nil)
    #expect(model.maybePoint == nil && model.maybeCounts == nil)
  }

  @Test("in-place changes of dictionaries and Codable values are collected once")
  func inPlace() {
    let model = Kinds()
    let scope = manualScope(model)
    let sets = scope.changeSets {
      model.counts["a"] = 1
      model.counts["b", default: 0] += 2
      model.point.x = 5
      model.data.append(0xFF)
    }
    #expect(
      sets.map { $0.fragments.map(\.properties) } == [
        [["counts": ["a": 1, "b": 2], "point": ["x": 5, "y": 0], "data": "/w=="]]
      ])
    #expect(
      sets.first?.bases[model.uuid] == ["counts": [:], "point": ["x": 0, "y": 0], "data": ""])
    let nothing = scope.changeSets {
      model.counts["a"] = nil
      model.counts["a"] = 1
    }
    #expect(nothing.isEmpty)
  }

  @Test("types are described in words that old peers know")
  func types() {
    let schema = ModelSchema.of(Kinds.self)
    let descriptions = ["link", "maybeData", "chunks", "counts", "point", "path", "mood"].map {
      schema[$0]?.type.description
    }
    #expect(
      descriptions == [
        "String", "String", "array of String", "object of Number", "Point", "array of Point",
        "String",
      ])
    #expect(schema["places"]?.type == .dictionary(.optional(.value("Point"))))
    #expect(schema["link"]?.type == .url && schema["data"]?.type == .data)
  }

  @Test("an array of models is told to be a ModelArray")
  func arrayOfModels() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Wrong().uuid
    }
    #expect(
      text(result).contains(
        "Wrong.shapes holds models inside of a value; declare it as ModelArray<Shape> or "
          + "ModelDictionary<String, Shape>."))
  }

  @Test("a property that is optional twice traps with a sentence")
  func optionalTwice() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Twice().uuid
    }
    #expect(text(result).contains("Twice.number is optional twice"))
  }

  @Test("a Codable value that cannot be written traps and names its type")
  func unwritable() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Broken().uuid
    }
    #expect(text(result).contains("A Unwritable in a @Property cannot be written as JSON"))
  }
}

extension Kinds {
  /// A model in no scope with the values that the test of non-finite numbers writes.
  fileprivate convenience init(_ other: Kinds) {
    self.init()
    numbers = other.numbers
    matrix = other.matrix
    nested = other.nested
    point = other.point
    everything = other.everything
    path = other.path
  }
}
