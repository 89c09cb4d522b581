import Foundation
import Testing

@testable import Jetstream

private final class Acorn: ModelObject {
  @Property var number = 1
}

/// Content of newer peers that the classes of this program do not know.
extension SnapshotTests {
  @Test(
    "What newer peers have sent is part of a snapshot, of its fragments and of models made from it")
  func unknownContent() throws {
    let sheet = Sheet()
    let scope = manualScope(sheet)
    let below = UUID()
    func write(_ note: JSONValue) -> SyncFragment {
      SyncFragment(
        .change, uuid: sheet.uuid, className: "Sheet",
        properties: ["cover": .string(below.wireText), "note": note])
    }
    let added = SyncFragment(
      .add, uuid: below, className: "Scroll", properties: ["number": 5, "length": [9, "x"]])
    #expect(scope.apply([added, write("n")]).errors.map(\.error) == [])

    let frozen = sheet.snapshot()
    #expect(frozen.cover?.className == "Scroll")
    #expect(frozen.fragments == sheet.subtreeFragments())
    #expect(frozen.fragments.map(\.className) == ["Sheet", "Scroll"])
    let copy = frozen.makeModel()
    #expect(copy.snapshot() == frozen)
    #expect(copy.snapshot().hashValue == frozen.hashValue)
    #expect(manualScope(copy).fullState() == scope.fullState())
    let duplicate = manualScope(frozen.makeModel(keepingUUIDs: false)).fullState()
    #expect(duplicate.map(\.className) == ["Sheet", "Scroll"])
    #expect(duplicate[0].properties["note"] == "n")
    #expect(duplicate[1].properties["length"] == [9, "x"])

    #expect(scope.apply([write("other")]).errors.map(\.error) == [])
    #expect(sheet.snapshot() != frozen)
    #expect(sheet.snapshot().cover == frozen.cover)
    #expect(frozen.cover != Sheet(uuid: below).snapshot())
  }

  @Test("Duplicates made of a snapshot name none of the original's models in unknown properties")
  func unknownNames() throws {
    let sheet = Sheet()
    let (first, second) = (JSONValue.string(UUID().wireText), JSONValue.string(UUID().wireText))
    let plain: JSONObject = [
      "lengths": [9, "x"], "none": [], "note": "n", "owner": ["id": first], "rotation": 1.5,
    ]
    var properties = plain
    properties["lid"] = first
    properties["layers"] = [first, second]
    properties["tags/a"] = second
    let written = SyncFragment(
      .change, uuid: sheet.uuid, className: "Sheet", properties: properties)
    #expect(manualScope(sheet).apply([written]).errors.map(\.error) == [])

    let frozen = sheet.snapshot()
    let (copy, duplicate) = (frozen.makeModel(), frozen.makeModel(keepingUUIDs: false))
    #expect(manualScope(copy).unknownProperties(of: copy) == properties)
    #expect(manualScope(duplicate).unknownProperties(of: duplicate) == plain)

    let named = Sheet()
    let name = SyncFragment(
      .change, uuid: named.uuid, className: "Sheet", properties: ["lid": first])
    #expect(manualScope(named).apply([name]).errors.map(\.error) == [])
    #expect(named.snapshot().makeModel(keepingUUIDs: false).record?.unknown == nil)
  }

  @Test("Duplicates keep unknown texts that only look like names of models")
  func unknownTexts() throws {
    let (sheet, page) = (Sheet(), Sheet())
    sheet.cover = page
    let scope = manualScope(sheet)
    let ghost = UUID()
    func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }
    let code = text(UUID())
    let addition = SyncFragment(
      .add, uuid: ghost, className: "Ghost", properties: ["trace": code])
    let written = SyncFragment(
      .change, uuid: sheet.uuid, className: "Sheet",
      properties: [
        "code": code, "codes": [code, "x"], "ghost": text(ghost), "page": [code, text(page.uuid)],
        "self": text(sheet.uuid),
      ])
    #expect(scope.apply([addition, written]).errors.map(\.error) == [])
    let frozen = sheet.snapshot()
    let duplicate = frozen.makeModel(keepingUUIDs: false)
    let expected: JSONObject = ["code": code, "codes": [code, "x"]]
    #expect(manualScope(duplicate).unknownProperties(of: duplicate) == expected)
    // It was taken while the scope had the models.
    scope.root = nil
    let later = frozen.makeModel(keepingUUIDs: false)
    #expect(manualScope(later).unknownProperties(of: later) == expected)
  }

  @Test("Equal snapshots have equal hashes, also if peers have sent one number as two types")
  func unknownHash() throws {
    let uuid = UUID()
    var snapshots: [ModelSnapshot<Acorn>] = []
    for note in [JSONValue.integer(1), .double(1)] {
      let acorn = Acorn(uuid: uuid)
      let written = SyncFragment(
        .change, uuid: uuid, className: "Acorn", properties: ["note": note, "age": 2])
      #expect(manualScope(acorn).apply([written]).errors.map(\.error) == [])
      snapshots.append(acorn.snapshot())
    }
    #expect(snapshots[0] == snapshots[1])
    #expect(snapshots[0].hashValue == snapshots[1].hashValue)
  }
}
