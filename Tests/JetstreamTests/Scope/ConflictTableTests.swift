import Foundation
@testable import Jetstream
import Testing

@Suite("The ledger finds conflicts by what a change set writes")
struct ConflictTableTests {
  private static func conflict(
    _ property: String?, of model: UUID, in set: UUID = UUID(), consequences: [Conflict] = []
  ) -> Conflict {
    var result = Conflict(
      id: UUID(), model: model, className: "Shape", property: property, base: nil,
      mine: property == nil ? .addition([:]) : .value(1), theirs: nil, reason: .overwritten,
      theirAuthor: nil, changeSet: set, author: nil, message: nil)
    result.consequences = consequences
    return result
  }

  private static func set(_ fragments: SyncFragment...) -> ChangeSet {
    ChangeSet(fragments: fragments, undo: [])
  }

  @Test("A change set that writes nothing of the conflicts is not compared with each of them")
  func untouched() {
    let set = Self.set(
      SyncFragment(.change, uuid: UUID(), className: "Shape", properties: ["x": 1]))
    let found = growth(from: 250) { count in
      let ledger = ConflictLedger()
      ledger.add((0..<count).map { _ in Self.conflict("x", of: UUID()) })
      return {
        for _ in 0..<count { ledger.settle(by: set) }
        #expect(ledger.items.count == count)
      }
    }
    #expect(found < mostLinearGrowth, "it grew by \(found)")
  }

  @Test("Conflicts leave in the order in which they came, and their consequences take their places")
  func order() {
    let (model, other) = (UUID(), UUID())
    let (set, ledger) = (UUID(), ConflictLedger())
    let parts = ["a", "b", "c"].map { Self.conflict($0, of: other, in: set) }
    let conflicts = [
      Self.conflict("x", of: model), Self.conflict(nil, of: other, in: set, consequences: parts),
      Self.conflict("y", of: model),
    ]
    ledger.add(conflicts)
    var (added, removed): ([Conflict], [Conflict]) = ([], [])
    ledger.onAdd.listen { added.append($0) }
    ledger.onRemove.listen { removed.append($0) }
    ledger.settle(
      by: Self.set(
        SyncFragment(.add, uuid: other, className: "Shape", properties: ["b": 1]),
        SyncFragment(.change, uuid: model, className: "Shape", properties: ["x": 1])))
    #expect(removed == [conflicts[0], conflicts[1]] && added == [parts[0], parts[2]])
    #expect(ledger.items == [parts[0], parts[2], conflicts[2]])
    ledger.discard(parts[2].id)
    ledger.remove([ConflictName(parts[0]), ConflictName(conflicts[2])])
    #expect(ledger.items.isEmpty)
    #expect(removed.suffix(3) == [parts[2], parts[0], conflicts[2]])
  }

  @Test(
    "The ledger is what looking at each of its conflicts gives", arguments: 0..<20 as Range<Int>)
  func sameAsSearch(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let (models, names) = ((0..<4).map { _ in UUID() }, ["a", "b", nil] as [String?])
    let ledger = ConflictLedger()
    ledger.capacity = 24
    var expected: [Conflict] = []
    for _ in 0..<200 {
      let (model, name) = (
        models.randomElement(using: &random)!, names.randomElement(using: &random)!
      )
      let one = expected.flatMap(\.parts).randomElement(using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0...2:
        let set = UUID()
        let parts = names.filter { $0 != name && Bool.random(using: &random) }
          .map { Self.conflict($0, of: model, in: set) }
        let new = [Self.conflict(name, of: model, in: set, consequences: parts)]
        ledger.add(new)
        expected = (expected + new).suffix(24)
      case 3:
        let kind: SyncFragment.Kind = name == nil ? .add : .change
        let fragment = SyncFragment(
          kind, uuid: model, className: "Shape", properties: name.map { [$0: 1] } ?? [:])
        ledger.settle(by: Self.set(fragment))
        expected = without(expected) { $0.model == model && $0.property == name }
      case 4:
        guard let one else { continue }
        ledger.discard(one.id)
        let ids = Set(one.parts.map(\.id))
        expected = without(expected) { ids.contains($0.id) }
      default:
        guard let one else { continue }
        ledger.remove([ConflictName(one)])
        expected = without(expected) { ConflictName($0) == ConflictName(one) }
      }
      #expect(ledger.items == expected)
    }
  }

  /// Returns the conflicts without some, and with those of their consequences that remain.
  private func without(_ conflicts: [Conflict], _ isOver: (Conflict) -> Bool) -> [Conflict] {
    conflicts.flatMap { conflict in
      var rest = conflict
      rest.consequences.removeAll(where: isOver)
      return isOver(conflict) ? rest.consequences : [rest]
    }
  }
}
