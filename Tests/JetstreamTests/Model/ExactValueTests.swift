import Foundation
import Testing

@testable import Jetstream

private struct Spot: CodableValue, Hashable {
  var x: Double
}

private final class Exact: ModelObject {
  @Property var tags: Set<String> = []
  @Property var numbers: Set<Int> = []
  @Property var doubles: Set<Double> = []
  @Property var maybeTags: Set<String>?
  @Property var spots: Set<Spot> = []
  @Property var groups: [String: Set<Int?>] = [:]
  @Property(.merge(.union)) var labels: Set<String> = []
  @Property var price = Decimal(0)
  @Property var maybePrice: Decimal?
  @Property var prices: Set<Decimal> = []
  @Property var extra: JSONValue = .null
  @Property var extras: [String: JSONValue] = [:]
  @Property var several: Set<JSONValue> = []
  @Property var number = 0
}

private final class MaybeJSON: ModelObject {
  @Property var extra: [String: [JSONValue?]] = [:]
}

private final class ModelSet: ModelObject {
  @Property var shapes: Set<Shape> = []
}

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

private func decimal(_ text: String) -> Decimal { Decimal(string: text)! }

/// Sends the model's state as bytes into a fresh model, and compares that one's bytes.
private func copy(_ model: Exact) throws -> Exact {
  let source = manualScope(model)
  var bytes: [UInt8] = []
  JSONValue.array(source.fullState().map(\.json)).write(to: &bytes)
  guard case .array(let values) = try JSONValue(parsing: bytes) else { return Exact() }
  let result = Exact(uuid: model.uuid)
  let scope = manualScope(result)
  let report = scope.apply(try values.map { try SyncFragment(json: $0) })
  #expect(report.isComplete, "\(report.errors)")
  #expect(scope.canonicalJSON == source.canonicalJSON)
  var again: [UInt8] = []
  JSONValue.array(scope.fullState().map(\.json)).write(to: &again)
  #expect(again == bytes)
  return result
}

@Suite(.paced) struct ExactValueTests {
  @Test("Sets, decimal numbers and JSON survive the way through bytes")
  func roundTrip() throws {
    let source = Exact()
    var target = try copy(source)
    #expect(target.tags.isEmpty && target.maybeTags == nil && target.price == 0)
    #expect(target.maybePrice == nil && target.extra == .null)
    source.tags = ["b", "", "a\"", "ä", "\u{1F600}"]
    source.numbers = [10, 9, -1, .max, .min]
    source.doubles = [.infinity, 0.1, -0.0]
    source.maybeTags = []
    source.spots = [Spot(x: 2), Spot(x: .pi)]
    source.groups = ["a": [nil, 1], "b": []]
    source.price = decimal("-1234567890123456789012345678.0123456789")
    source.maybePrice = decimal("1e-128")
    source.prices = [decimal("0.10"), decimal("12e100"), 0]
    source.extra = ["b": [1.5, .null, true], "a": .unsigned(.max), "": [:]]
    source.extras = ["none": .null, "text": "t"]
    source.several = [.null, 1, "1", [1]]
    target = try copy(source)
    #expect(target.tags == source.tags && target.numbers == source.numbers)
    #expect(target.doubles == source.doubles && target.maybeTags == [])
    #expect(target.spots == source.spots && target.groups == source.groups)
    #expect(target.price == source.price && target.maybePrice == source.maybePrice)
    #expect(target.prices == source.prices)
    #expect(target.extra == source.extra && target.extras == source.extras)
    #expect(target.several == source.several)
  }

  @Test(
    "Equal sets have equal bytes, whatever order their elements came in", arguments: seeds(1...4))
  func setOrder(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<50 {
      let elements = (0..<20).map { _ in Int.random(in: -500...500, using: &generator) }
      var (one, other): (Set<Int>, Set<Int>) = ([], Set(minimumCapacity: 500))
      for element in elements { one.insert(element) }
      for element in elements.shuffled(using: &generator) { other.insert(element) }
      #expect(one._jsonValue.text == other._jsonValue.text, "seed \(seed)")
      #expect(Set<Int>._isSame(one, other), "seed \(seed)")
      #expect(Set<Int>._decode(one._jsonValue) == one, "seed \(seed)")
      other.insert(501)
      #expect(!Set<Int>._isSame(one, other), "seed \(seed)")
    }
    #expect(Set([10, 9, -1])._jsonValue.text == "[-1,10,9]")
    #expect(Set(["b", "a10", "a9", "B"])._jsonValue.text == #"["B","a10","a9","b"]"#)
    // The order is that of the text, in which a quotation mark has its backslash.
    #expect(Set(["\"", "a", "Z"])._jsonValue.text == #"["Z","\"","a"]"#)
  }

  @Test("Duplicates on the wire are accepted and collapse, in any order")
  func duplicates() {
    let model = Exact()
    let scope = manualScope(model)
    let report = scope.apply([
      SyncFragment(
        .change, uuid: model.uuid, className: "Exact",
        properties: [
          "tags": ["b", "a", "b"], "numbers": [3, 1.0, 1], "doubles": ["NaN", 1, "NaN"],
        ])
    ])
    #expect(report.isComplete)
    #expect(model.tags == ["a", "b"] && model.numbers == [1, 3] && model.doubles.count == 2)
    #expect(model.doubles._jsonValue.text == #"["NaN",1]"#)
    #expect(scope.fullState()[0].properties["tags"] == ["a", "b"])
  }

  @Test("Writing a value that is the same on the wire is nothing")
  func same() {
    let model = Exact()
    let scope = manualScope(model)
    func write() {
      model.tags = ["a", "b"]
      model.doubles = [.nan, 1]
      model.price = decimal("1.50")
      model.maybePrice = .nan
      model.extra = ["a": 1, "b": .double(2)]
    }
    #expect(scope.changeSets(of: write).count == 1)
    #expect(scope.changeSets(of: write).isEmpty)
    let nothing = scope.changeSets {
      model.doubles = [.nan, .nan, 1]
      model.price = decimal("1.5")
      model.extra = ["b": 2, "a": .double(1)]
      model.tags.insert("c")
      model.tags.remove("c")
    }
    #expect(nothing.isEmpty)
    #expect(scope.changeSets { model.extra = ["a": 1] }.count == 1)
    #expect(
      scope.changeSets { model.extra = .null }.first?.fragments[0].properties == ["extra": .null])
    #expect(!JSONValue._isSame("\u{E9}", "e\u{301}"))
    #expect(!Set<String>._isSame(["\u{E9}"], ["e\u{301}"]))
  }

  @Test(
    "What does not fit is refused, and the value stays",
    arguments: [
      ("tags", "a"), ("tags", ["a", 1]), ("tags", .null), ("tags", ["a": 1]), ("numbers", [1.5]),
      ("spots", [["y": 1]]), ("groups", ["a": ["x"]]), ("price", "1,5"), ("price", ""),
      ("price", "."), ("price", "1."), ("price", ".5"), ("price", " 1"), ("price", "1 "),
      ("price", "1e"), ("price", "+1"), ("price", "0x10"), ("price", "Infinity"), ("price", .null),
      ("price", "12abc"), ("price", [1]), ("price", "1e400"), ("price", "1e-129"),
      ("price", "1e99999999999999999999"), ("price", .string(String(repeating: "9", count: 40))),
      ("price", "0.1234567890123456789012345678901234567891"), ("prices", ["1", "x"]),
    ] as [(String, JSONValue)])
  func refused(_ key: String, _ json: JSONValue) {
    let model = Exact()
    model.tags = ["kept"]
    model.price = decimal("9.99")
    model.extra = [1]
    let scope = manualScope(model)
    let before = scope.canonicalJSON
    let report = scope.apply([
      SyncFragment(
        .change, uuid: model.uuid, className: "Exact", properties: [key: json, "number": 9])
    ])
    #expect(report.errors.map(\.fragment) == [0])
    #expect(model.number == 9)
    model.number = 0
    #expect(scope.canonicalJSON == before)
  }

  @Test("Decimal numbers have one text, which keeps every digit", arguments: seeds(11...14))
  func decimals(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for step in 0..<300 {
      var number = Decimal(UInt64.random(in: 0...UInt64.max, using: &generator))
      if step % 3 == 0 { number *= Decimal(UInt64.random(in: 0...UInt64.max, using: &generator)) }
      number = Decimal(
        sign: Bool.random(using: &generator) ? .plus : .minus,
        exponent: .random(in: -100...80, using: &generator), significand: number)
      guard case .string(let text) = number._jsonValue else {
        Issue.record("no text, seed \(seed), step \(step)")
        return
      }
      #expect(Decimal._decode(number._jsonValue) == number, "\(text), seed \(seed), step \(step)")
      #expect(!text.contains("e") && !text.hasSuffix(".0"), "\(text), seed \(seed)")
      // Other ways to write it give the same number and, from there, the same text.
      let other = "\(text.contains(".") ? text + "00" : text + ".0")e0"
      #expect(
        Decimal._decode(.string(other))?._jsonValue == .string(text), "\(other), seed \(seed)")
    }
  }

  @Test("Decimal numbers are read from texts and numbers alike, and written without an exponent")
  func decimalTexts() {
    let texts: [(JSONValue, JSONValue)] = [
      ("0", "0"), ("-0", "0"), ("0.000", "0"), ("007", "7"), ("1.50", "1.5"), ("-1e3", "-1000"),
      ("12.5E-2", "0.125"), (5, "5"), (0.1, "0.1"), (-12.5, "-12.5"), (.float(0.1), "0.1"),
      (.unsigned(.max), "18446744073709551615"), (1e22, "10000000000000000000000"), ("NaN", "NaN"),
      ("1e127", .string("1" + String(repeating: "0", count: 127))),
      ("1e-128", .string("0." + String(repeating: "0", count: 127) + "1")),
      ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    ]
    for (json, text) in texts {
      #expect(Decimal._decode(json)?._jsonValue == text, "\(json)")
    }
    #expect(Decimal._isSame(.nan, .nan) && !Decimal._isSame(.nan, 0) && !Decimal._isSame(0, .nan))
    #expect(Decimal._problem(with: "x") == #""x" is no decimal number"#)
    #expect(
      Decimal._problem(with: "1e400") == #""1e400" has more digits than a decimal number can hold"#)
  }

  @Test("A JSON property has its keys in order and its numbers as they are read")
  func json() {
    let value: JSONValue = [
      "b": .double(1), "a": [.float(0.1), .double(1e300)], "c": ["z": .double(-0.0), "y": .null],
      "n": .double(.nan), "u": .unsigned(5),
    ]
    #expect(
      value._jsonValue.text
        == #"{"a":[0.1,1e+300],"b":1,"c":{"y":null,"z":0},"n":null,"u":5}"#)
    let read = try? JSONValue(parsing: value._jsonValue.text)
    #expect(read == value._jsonValue)
    #expect(value._jsonValue._jsonValue == value._jsonValue)
    #expect(JSONValue._isSame(value, value._jsonValue))
    let nothing = Exact()
    let scope = manualScope(nothing)
    nothing.extra = [1]
    scope.advance()
    scope.apply([
      SyncFragment(.change, uuid: nothing.uuid, className: "Exact", properties: ["extra": .null])
    ])
    #expect(nothing.extra == .null)
  }

  @Test("An optional of any JSON is refused with a sentence, wherever it stands")
  func optionalJSON() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MaybeJSON().uuid
    }
    #expect(
      text(result).contains("MaybeJSON.extra is optional, but null is a value of JSON itself;"))
  }

  @Test("A set of models is told to be a ModelArray")
  func modelSet() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ModelSet().uuid
    }
    #expect(
      text(result).contains(
        "ModelSet.shapes holds models inside of a value; declare it as ModelArray<Shape> or "
          + "ModelDictionary<String, Shape>."))
  }

  @Test("The union of sets has what either side has put in, in order")
  func union() throws {
    let property = try #require(ModelSchema.of(Exact.self)["labels"])
    #expect(
      property.merged(["c", "a"], onto: ["b", "d", "z"], base: ["z", "c", "d"])
        == ["a", "b"])
    #expect(property.merged(["x"], onto: ["y"], base: ["y", "y"]) == ["x"])
    #expect(property.merged(["b", "a"], onto: ["c"], base: []) == ["a", "b", "c"])
  }

  @Test("Types are described in words that old peers know, and told apart in fingerprints")
  func types() {
    let schema = ModelSchema.of(Exact.self)
    let descriptions = ["tags", "groups", "price", "maybePrice", "extra", "extras"].map {
      schema[$0]?.type.description
    }
    #expect(
      descriptions == [
        "array of String", "object of array of Number", "String", "String", "any JSON",
        "object of any JSON",
      ])
    #expect(schema["tags"]?.type == .set(.string))
    let signatures = [_PropertyType.set(.string), .array(.string), .decimal, .string, .json]
      .map(\.signature)
    #expect(Set(signatures).count == 5)
  }

  @Test("A snapshot has the values as they are")
  func snapshot() {
    let model = Exact()
    model.tags = ["a"]
    model.price = decimal("1.25")
    model.extra = ["b": .double(1)]
    model.doubles = [.nan]
    let frozen = model.snapshot()
    model.tags = []
    #expect(frozen.tags == ["a"] && frozen.price == decimal("1.25"))
    #expect(frozen.extra == ["b": .double(1)])
    #expect(frozen.doubles.first?.isNaN == true)
    #expect(frozen.makeModel().snapshot() == frozen)
  }
}
