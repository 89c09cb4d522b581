import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamDocument

@Suite("Rows that one change set adds, holds and lets go of", .paced)
struct RowWriterTests {
  private let document: Document

  init() {
    let codec = TypeCodec(describing: .json)
    let thing = ClassSchema(
      "Thing",
      properties: [
        PropertySchema(
          wireName: "parts", type: .collection("Thing"), index: 0, isSynced: true,
          isCounter: false, mergeRule: nil, counterRange: nil, defaultValue: .array([]),
          codec: codec),
        PropertySchema(
          wireName: "first", type: .reference("Thing"), index: 1, isSynced: true,
          isCounter: false, mergeRule: nil, counterRange: nil, defaultValue: .null, codec: codec),
        PropertySchema(
          wireName: "other", type: .reference("Other"), index: 2, isSynced: true,
          isCounter: false, mergeRule: nil, counterRange: nil, defaultValue: .null, codec: codec),
      ])
    let other = ClassSchema("Other", properties: [])
    document = Document(schema: Schema(root: thing, classes: [thing, other]), root: UUID())
  }

  private func add(_ uuid: UUID, _ properties: JSONObject = [:]) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Thing", properties: properties)
  }

  private func edit(
    _ uuid: UUID, _ operations: [PropertyOperation], _ properties: JSONObject = [:]
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: uuid, className: "Thing", properties: properties,
      operations: operations.isEmpty ? [:] : ["parts": operations])
  }

  @Test("a row that operations insert and remove has been held: it is no error, and not there")
  func insertedAndRemoved() {
    let (root, part) = (document.root.uuid, UUID())
    let outcome = document.apply([add(part), edit(root, [.insert(part, .end), .remove(part)])])
    #expect(outcome.errors.isEmpty)
    #expect(outcome.entered.isEmpty && outcome.left.isEmpty)
    #expect(document[part] == nil)
    #expect(document.checkInvariants() == [])
  }

  @Test("a row that no property can hold is an error of its own")
  func unheld() {
    let (root, part) = (document.root.uuid, UUID())
    let outcome = document.apply([
      add(part), edit(root, [], ["other": .string(part.wireText)]),
    ])
    #expect(outcome.errors.map(\.fragment) == [1, 0])
    #expect(document.checkInvariants() == [])
  }

  @Test("a row that comes in with one fragment and goes with another has come and gone")
  func comesAndGoes() {
    let (root, part, below) = (document.root.uuid, UUID(), UUID())
    let outcome = document.apply([
      add(part, ["first": .string(below.wireText)]), add(below),
      edit(root, [], ["first": .string(part.wireText)]), edit(root, [], ["first": .null]),
    ])
    #expect(outcome.errors.isEmpty)
    #expect(outcome.entered.map(\.uuid) == [part, below])
    #expect(outcome.left.map(\.uuid) == [part, below])
    #expect(document.count == 1)
    #expect(document.checkInvariants() == [])
  }

  @Test("rows that only hold each other leave, and one that is moved meanwhile stays")
  func circles() {
    let root = document.root.uuid
    let uuids = (0..<6).map { _ in UUID() }
    let links = zip(uuids, uuids.dropFirst() + uuids.prefix(1))
    _ = document.apply(
      links.map { add($0, ["first": .string($1.wireText)]) }
        + [edit(root, uuids.map { .insert($0, .end) })])
    #expect(document.count == 7)
    _ = document.apply([
      edit(uuids[2], [], ["first": .null]),
      edit(root, uuids.map { .remove($0) } + [.insert(uuids[1], .end)]),
    ])
    #expect(Set(document.uuids) == [root, uuids[1], uuids[2]])
    #expect(document.checkInvariants() == [])
  }

  @Test("operations that cannot be applied are left out, and the others keep their order")
  func leftOut() {
    let root = document.root.uuid
    let uuids = (0..<40).map { _ in UUID() }
    let operations = uuids.map { PropertyOperation.insert($0, .start) }
    let outcome = document.apply(
      uuids.enumerated().filter { $0.offset % 3 != 0 }.map { add($0.element) }
        + [edit(root, operations)])
    #expect(outcome.errors.count == 14)
    let kept = uuids.enumerated().filter { $0.offset % 3 != 0 }.map(\.element)
    #expect(
      document.root[document.root.schema.properties[0]] == .collection(.init(kept.reversed())))
    #expect(document.checkInvariants() == [])
  }
}
