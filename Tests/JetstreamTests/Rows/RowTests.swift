import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamDocument

@Suite("Rows", .paced)
struct RowTests {
  /// Accepts any JSON.
  private struct AnyJSON: ValueCodec {
    func normalized(_ json: JSONValue) -> JSONValue? { json }
    func accepts(_ json: JSONValue) -> Bool { true }
    func problem(with json: JSONValue) -> String? { nil }
    func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool { a == b }
  }

  private func schema(_ types: [_PropertyType]) -> ClassSchema {
    ClassSchema(
      "Thing",
      properties: types.enumerated().map { index, type in
        PropertySchema(
          wireName: "p\(index)", type: type, index: index, isSynced: true, isCounter: false,
          mergeRule: nil, counterRange: nil, defaultValue: .string("default \(index)"),
          codec: AnyJSON())
      })
  }

  private func content(_ property: PropertySchema, _ generator: inout SeededGenerator)
    -> RowContent
  {
    switch property.kind {
    case .plain:
      generator.next().isMultiple(of: 8)
        ? .value(.float(generator.finiteFloat())) : .value(generator.json(depth: 2))
    case .reference: .reference(generator.next().isMultiple(of: 3) ? nil : UUID())
    case .collection:
      .collection(CollectionContent((0..<Int(generator.next() % 4)).map { _ in UUID() }))
    case .dictionary: dictionary(&generator)
    }
  }

  private func dictionary(_ generator: inout SeededGenerator) -> RowContent {
    var content = DictionaryContent()
    for _ in 0..<generator.next() % 4 {
      content[["", "a", "b/c", "é"].randomElement(using: &generator)!] = UUID()
    }
    return .dictionary(content)
  }

  @Test("a row of any size keeps what an array keeps", arguments: [UInt64](1...4))
  func contents(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for size in 0..<20 {
      let types: [_PropertyType] = (0..<size).map { _ in
        [
          .json, .json, .reference("Thing"), .collection("Thing"), .dictionary(.reference("Thing")),
        ][
          Int(generator.next() % 5)]
      }
      let schema = schema(types)
      let row = Row.make(schema, UUID())
      var expected = schema.properties.map { RowContent(of: $0) }
      for step in 0..<60 {
        for property in schema.properties {
          #expect(
            row[property] == expected[property.index], "seed \(seed), size \(size), step \(step)")
        }
        guard let property = schema.properties.randomElement(using: &generator) else { break }
        let content = content(property, &generator)
        row[property] = content
        expected[property.index] = content
        guard case .dictionary(var models) = content, let entry = property.entry("b") else {
          continue
        }
        // One entry alone.
        models["b"] = generator.next().isMultiple(of: 2) ? UUID() : nil
        row[entry] = .reference(models["b"])
        #expect(row[entry] == .reference(models["b"]))
        expected[property.index] = .dictionary(models)
      }
      #expect(row.schema === schema)
    }
  }

  /// Storage that nothing shares is changed where it is, and any other is copied.
  @Test("a row releases a content that is replaced, and all of them with itself")
  func releases() {
    var numbers: [JSONValue] = [1, 2, 3]
    var uuids = [UUID(), UUID()]
    var text = String(repeating: "x", count: 100)
    text.reserveCapacity(200)
    var key = String(repeating: "k", count: 100)
    key.reserveCapacity(200)
    var object: JSONObject = ["a": 1, "b": 2]
    func address(of text: String) -> UnsafeRawPointer? {
      text.utf8.withContiguousStorageIfAvailable { UnsafeRawPointer($0.baseAddress) } ?? nil
    }
    func addresses() -> [UnsafeRawPointer?] {
      [
        numbers.withUnsafeBytes(\.baseAddress), uuids.withUnsafeBytes(\.baseAddress),
        address(of: text), address(of: key),
        object.members.withUnsafeBytes(\.baseAddress),
      ]
    }
    func change() {
      numbers[0] = 4
      uuids[0] = UUID()
      text.append("y")
      key.append("l")
      object["a"] = 5
    }
    let schema = schema([
      .json, .collection("Thing"), .json, .json, .dictionary(.reference("Thing")),
    ])
    func fill(_ row: Row) {
      let contents: [RowContent] = [
        .value(.array(numbers)), .collection(CollectionContent(uuids)), .value(.string(text)),
        .value(.object(object)), .dictionary(DictionaryContent([key: uuids[0]])),
      ]
      for (property, content) in zip(schema.properties, contents) { row[property] = content }
    }
    for isReplaced in [true, false] {
      var row: Row? = Row.make(schema, UUID())
      let first = addresses()
      row.map { fill($0) }
      change()
      let second = addresses()
      #expect(zip(first, second).allSatisfy { $0 != $1 })
      row.map { fill($0) }
      if isReplaced {
        for property in schema.properties { row?[property] = RowContent(of: property) }
      } else {
        row = nil
      }
      change()
      #expect(addresses() == second)
      withExtendedLifetime(row) {}
    }
  }

  @Test("holders are counted once each, however many there are")
  func holders() {
    let schema = schema([.reference("Thing"), .collection("Thing")])
    let rows = (0..<3).map { _ in Row.make(schema, UUID()) }
    let all = rows.flatMap { row in schema.properties.map { RowHolders.Holder(row, $0) } }
    var holders = RowHolders()
    for (at, holder) in all.enumerated() {
      holders.insert(holder)
      holders.insert(holder)
      #expect(Set(holders.all) == Set(all[...at]))
    }
    for (at, holder) in all.enumerated() {
      holders.remove(holder)
      holders.remove(holder)
      #expect(Set(holders.all) == Set(all[(at + 1)...]))
      #expect(holders.all.count == all.count - at - 1)
    }
  }
}
