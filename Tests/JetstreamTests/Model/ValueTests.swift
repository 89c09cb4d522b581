import Foundation
import Testing

@testable import Jetstream

private enum Priority: Int, PropertyValue { case low, normal, high }
private enum Suit: String, PropertyValue { case hearts, spades }

private final class Scalars: ModelObject {
  @Property var bool = false
  @Property var int = 0
  @Property var int8: Int8 = 0
  @Property var int16: Int16 = 0
  @Property var int32: Int32 = 0
  @Property var int64: Int64 = 0
  @Property var uint: UInt = 0
  @Property var uint8: UInt8 = 0
  @Property var uint16: UInt16 = 0
  @Property var uint32: UInt32 = 0
  @Property var uint64: UInt64 = 0
  @Property var float: Float = 0
  @Property var double = 0.0
  @Property var text = ""
  @Property var date = Date(timeIntervalSince1970: 0)
  @Property var id = UUID(uuidString: "00000000-0000-4000-8000-000000000000")!
  @Property var color = RGBAColor.black
  @Property var priority = Priority.low
  @Property var suit: Suit?
  @Property var note: String?
  @Property var maybe: Double?
  @Property var floats: [Float] = []
  @Property var words: [String?] = []

  func setIntegers(_ pick: (any FixedWidthInteger.Type) -> any FixedWidthInteger) {
    int = pick(Int.self) as! Int
    int8 = pick(Int8.self) as! Int8
    int16 = pick(Int16.self) as! Int16
    int32 = pick(Int32.self) as! Int32
    int64 = pick(Int64.self) as! Int64
    uint = pick(UInt.self) as! UInt
    uint8 = pick(UInt8.self) as! UInt8
    uint16 = pick(UInt16.self) as! UInt16
    uint32 = pick(UInt32.self) as! UInt32
    uint64 = pick(UInt64.self) as! UInt64
  }
}

/// Sends the model's state through JSON text into a fresh model.
#if ON_ACTOR
@TestDomain
#endif
private func copy(_ model: Scalars) throws -> Scalars {
  let state = manualScope(model).fullState()
  let text = JSONValue.array(state.map(\.json)).text
  guard case .array(let values) = try JSONValue(parsing: text) else { return Scalars() }
  let fragments = try values.map { try SyncFragment(json: $0) }
  let result = Scalars(uuid: model.uuid)
  let scope = manualScope(result)
  #expect(scope.apply(fragments).isComplete)
  #expect(
    result.schema.properties.allSatisfy { property in
      result.json(of: property).canonicalText == model.json(of: property).canonicalText
    })
  return result
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ValueTests {
  @Test("Every integer keeps its smallest and largest value and zero")
  func integers() throws {
    let source = Scalars()
    func check() throws {
      let target = try copy(source)
      #expect(target.int == source.int && target.int8 == source.int8)
      #expect(target.int16 == source.int16 && target.int32 == source.int32)
      #expect(target.int64 == source.int64 && target.uint == source.uint)
      #expect(target.uint8 == source.uint8 && target.uint16 == source.uint16)
      #expect(target.uint32 == source.uint32 && target.uint64 == source.uint64)
    }
    source.setIntegers { $0.min }
    try check()
    source.setIntegers { $0.max }
    try check()
    source.setIntegers { $0.init(truncatingIfNeeded: 0) }
    try check()
    source.int = 1 << 53 + 1
    source.uint64 = 1 << 63 + 1
    try check()
  }

  @Test(
    "Floats keep every bit",
    arguments: [
      0, -0.0, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .pi,
      0.1, .infinity, -.infinity, .nan,
    ] as [Double])
  func floats(_ value: Double) throws {
    let source = Scalars()
    source.double = value
    source.float = Float(value)
    source.floats = [Float(value), 0.1]
    source.maybe = value
    let target = try copy(source)
    if value.isNaN {
      #expect(target.double.isNaN && target.float.isNaN && target.maybe?.isNaN == true)
    } else if value.isZero {
      // Minus zero is zero on the wire.
      #expect(target.double == 0 && target.float == 0 && target.maybe == 0)
    } else {
      #expect(target.double.bitPattern == value.bitPattern)
      #expect(target.float.bitPattern == Float(value).bitPattern)
      #expect(target.maybe?.bitPattern == value.bitPattern)
      #expect(target.floats[0].bitPattern == Float(value).bitPattern)
    }
  }

  @Test("A Float is written with its own shortest text")
  func floatText() {
    #expect(Float(0.1)._jsonValue.canonicalText == "0.1")
    #expect(Float.nan._jsonValue == "NaN")
    #expect(Double.infinity._jsonValue == "Infinity")
    #expect((-Float.infinity)._jsonValue == "-Infinity")
    #expect(Float._decode(.double(1e300)) == nil)
    #expect(Float._decode(.double(0.1)) == 0.1)
  }

  @Test("A date is its seconds since 1970")
  func dates() throws {
    let source = Scalars()
    source.date = Date(timeIntervalSince1970: 10)
    #expect(source.date._jsonValue == .double(10))
    #expect(Date._decode(.double(100)) == Date(timeIntervalSince1970: 100))
    #expect(Date._decode("1970-01-01T00:01:40Z") == Date(timeIntervalSince1970: 100))
    #expect(Date._decode("1970-01-01T00:00:00.500Z") == Date(timeIntervalSince1970: 0.5))
    #expect(Date._decode("yesterday") == nil)
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<1_000 {
      let date = Date(timeIntervalSinceReferenceDate: .random(in: -4e9...4e9, using: &generator))
      let once = try #require(Date._decode(date._jsonValue))
      #expect(once._jsonValue == date._jsonValue, "seed 3")
      #expect(Date._decode(once._jsonValue) == once, "seed 3")
    }
  }

  @Test("A colour is one unsigned 32-bit integer")
  func color() {
    let color = RGBAColor(rgba: 0xFF10_8040)
    #expect(color.red == 0xFF && color.green == 0x10 && color.blue == 0x80 && color.alpha == 0x40)
    #expect(color._jsonValue == .integer(0xFF10_8040))
    #expect(RGBAColor._decode(.integer(0xFF10_8040)) == color)
    #expect(RGBAColor(red: 0xFF, green: 0x10, blue: 0x80, alpha: 0x40) == color)
    #expect(RGBAColor._decode(.integer(-1)) == nil)
    #expect(RGBAColor(rgba: 0x0102_0304).description == "#01020304")
  }

  @Test("Nil goes out as null, and null clears")
  func optionals() {
    let model = Scalars()
    model.note = "x"
    let scope = manualScope(model)
    let sets = scope.changeSets { model.note = nil }
    #expect(sets.first?.fragments.first?.properties == ["note": .null])
    model.note = "y"
    scope.flush()
    scope.apply([
      SyncFragment(.change, uuid: model.uuid, className: "Scalars", properties: ["note": .null])
    ])
    #expect(model.note == nil)
  }

  @Test("A value that cannot be read leaves the old one, or clears where nil is accepted")
  func undecodable() {
    let model = Scalars()
    model.int = 5
    model.note = "note"
    model.maybe = 1
    model.int8 = 1
    let scope = manualScope(model)
    let report = scope.apply([
      SyncFragment(
        .change, uuid: model.uuid, className: "Scalars",
        properties: ["int": "abc", "note": 7, "int8": 1_000, "maybe": "soon", "double": 2.5])
    ])
    #expect(model.int == 5)
    #expect(model.int8 == 1)
    #expect(model.note == nil)
    #expect(model.maybe == nil)
    #expect(model.double == 2.5)
    #expect(report.errors.map(\.fragment) == [0, 0, 0, 0])
    #expect(
      report.errors.first?.error
        == .invalidValue(
          className: "Scalars", model: model.uuid, property: "int", expected: "Number"))
  }

  @Test("An enumeration goes by its raw value, and one it does not have is refused")
  func enumerations() {
    let model = Scalars()
    let scope = manualScope(model)
    let sets = scope.changeSets { model.priority = .normal }
    #expect(sets.first?.fragments.first?.properties == ["priority": 1])
    let change = { (json: JSONValue) in
      SyncFragment(.change, uuid: model.uuid, className: "Scalars", properties: ["priority": json])
    }
    #expect(scope.apply([change(2)]).isComplete)
    #expect(model.priority == .high)
    #expect(!scope.apply([change(3)]).isComplete)
    #expect(model.priority == .high)
    #expect(Suit._decode("hearts") == .hearts)
    #expect(Suit._decode("clubs") == nil)
  }

  @Test("Arrays keep order and nulls; one bad element refuses the array")
  func arrays() throws {
    let source = Scalars()
    source.words = ["b", nil, "a"]
    source.suit = .spades
    source.text = "\u{0}\"\u{1F600}"
    let target = try copy(source)
    #expect(target.words == ["b", nil, "a"])
    #expect(target.suit == .spades)
    #expect(target.text == source.text)
    #expect([Float]._decode([1, "x"]) == nil)
  }
}
