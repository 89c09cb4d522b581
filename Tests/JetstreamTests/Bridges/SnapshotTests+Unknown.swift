import Foundation
import Testing

@testable import Jetstream

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
}
