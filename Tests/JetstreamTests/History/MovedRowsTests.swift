import Foundation
import Testing

@testable import Jetstream

@Suite("Rows whose models move between collections", .paced)
struct MovedRowsTests {
  private let root = UUID(pair: 0, 1)

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func change(_ uuid: UUID, _ values: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: uuid, className: "A", properties: values)
  }

  private func change(_ uuid: UUID, _ operations: PropertyOperations) -> SyncFragment {
    SyncFragment(.change, uuid: uuid, className: "A", properties: [:], operations: operations)
  }

  /// Rows of two shelves with so many models in the first, which name their shelf as well.
  private func shelves(_ shelves: [UUID], _ models: [UUID]) -> FragmentRows {
    var rows = FragmentRows()
    rows.replace(
      with: [change(root, ["shelves": .array(shelves.map(text))])]
        + shelves.map { shelf in
          let held = shelf == shelves[0] ? models : []
          return SyncFragment(
            .add, uuid: shelf, className: "A", properties: ["items": .array(held.map(text))])
        }
        + models.map {
          SyncFragment(
            .add, uuid: $0, className: "A", properties: ["shelf": text(shelves[0]), "n": 1])
        })
    return rows
  }

  @Test("Each of many moves costs the same, however many models there are")
  func moves() {
    let found = growth(from: 250) { count in
      let (from, to) = (UUID(pair: 1, 1), UUID(pair: 1, 2))
      let models = (0..<count).map { UUID(pair: 2, UInt64($0)) }
      return {
        var rows = shelves([from, to], models)
        for model in models {
          rows.apply([
            change(from, ["items": [.remove(model)]]),
            change(to, ["items": [.insert(model, .end)]]),
            change(model, ["shelf": text(to)]),
          ])
        }
        #expect(rows[to]?.properties["items"] == .array(models.map(text)))
        #expect(rows.reachable().count == count + 3)
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does each of many models that are taken out, and of those that come in meanwhile")
  func removals() {
    let found = growth(from: 250) { count in
      let shelf = UUID(pair: 1, 1)
      let models = (0..<count).map { UUID(pair: 2, UInt64($0)) }
      return {
        var rows = shelves([shelf], models)
        for (at, model) in models.enumerated() {
          let new = UUID(pair: 3, UInt64(at))
          rows.apply([
            change(shelf, ["items": [.remove(model), .insert(new, .end)]]),
            SyncFragment(.add, uuid: new, className: "A", properties: ["shelf": text(shelf)]),
          ])
        }
        #expect(rows.reachable().count == count + 2)
        #expect(rows.rows.count < count + 5)
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test(
    "Whatever moves, the rows that stay are those to which the root leads",
    arguments: [UInt64](1...40))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let models = [root] + (0..<12).map { UUID(pair: 2, $0) }
    var rows = FragmentRows()
    rows.replace(with: [change(root, ["items": []])])
    for step in 0..<400 {
      var fragments: [SyncFragment] = []
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let (model, other) = (
          models.randomElement(using: &generator)!, models.randomElement(using: &generator)!
        )
        let key = ["items", "others", "table/a"].randomElement(using: &generator)!
        switch Int.random(in: 0..<9, using: &generator) {
        case 0, 1:
          guard other != root else { continue }
          fragments.append(
            SyncFragment(.add, uuid: other, className: "A", properties: ["one": text(model)]))
          fragments.append(change(model, ["items": [.insert(other, .start)]]))
        case 2: fragments.append(change(model, ["one": text(other)]))
        case 3: fragments.append(change(model, [key: .null]))
        case 4: fragments.append(change(model, [key: [text(other), text(model), text(other)]]))
        case 5: fragments.append(change(model, [key: [text(other), ["deep": text(model)], 1]]))
        case 6: fragments.append(change(model, [key: [.remove(other), .remove(model)]]))
        case 7:
          fragments.append(change(model, [key: [.remove(other), .add(1), .insert(model, .end)]]))
        default:
          fragments.append(change(model, [key: [.insert(other, .end), .move(model, .start)]]))
        }
      }
      // Rows that were made of the same ones anew know nothing of how they have come about.
      var anew = rows
      let before = Set(rows.reachable())
      anew.replace(with: rows.fullState())
      let keeps = Int.random(in: 0..<10, using: &generator) == 0
      if !keeps {
        anew.apply(fragments)
      }
      rows.apply(fragments, keepsUnreachable: keeps)
      if !keeps, before.isEmpty == false {
        #expect(rows.canonicalJSON == anew.canonicalJSON, "seed \(seed), step \(step)")
      }
    }
  }
}
