import Foundation
import Testing

@testable import Jetstream

private final class Sprig: ModelObject {
  @Property var text = ""
  @Property var note: String?
  @Property var ratio: Float = 0.1
  @Property var sizes: [Int] = []
  @Property var table: [String: [Int]] = [:]
  @Property(.counter) var count = 0
  @Property(.local) var isOpen = false
  @Property var twin: Sprig?
  @Property var twigs: ModelArray<Sprig> = []
  @Property var others: ModelArray<Sprig> = []
  @WeakReference var origin: Sprig?
}

/// Edits a tree of sprigs at random.
private struct Gardener {
  var generator: SeededGenerator
  let hasOrigins: Bool
  var cut: [Sprig] = []

  mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }

  mutating func edit(_ scope: Scope) throws {
    let sprigs = try scope.fullState().map { try #require(scope.model($0.uuid) as? Sprig) }
    let sprig = sprigs[number(0...sprigs.count - 1)]
    let other = sprigs[number(0...sprigs.count - 1)]
    switch number(0...13) {
    case 0: sprig.text = "text \(number(0...9))"
    case 1: sprig.note = number(0...1) == 0 ? nil : "note"
    case 2: sprig.sizes.append(number(0...9))
    case 3: sprig.table["\(number(0...2))"] = number(0...3) == 0 ? nil : [number(0...9)]
    case 4: sprig.count += number(-5...5)
    case 5: sprig.ratio = Float(number(0...99)) / 7
    case 6, 7:
      let new = Sprig()
      new.text = "new"
      new.twigs.append(Sprig())
      if number(0...2) == 0 { new.twin = other }
      sprig.twigs.insert(new, at: number(0...sprig.twigs.count))
    case 8:
      guard sprig.twigs.count > 0 else { return }
      let twig = sprig.twigs[number(0...sprig.twigs.count - 1)]
      sprig.twigs.remove(twig)
      if hasOrigins { other.origin = twig }
      cut.append(twig)
    case 9:
      guard sprig.twigs.count > 1 else { return }
      sprig.twigs.move(
        from: number(0...sprig.twigs.count - 1), to: number(0...sprig.twigs.count - 1))
    case 10:
      guard sprig.twigs.count > 0 else { return }
      let twig = sprig.twigs[number(0...sprig.twigs.count - 1)]
      if !other.others.contains(twig) { other.others.append(twig) }
      if number(0...1) == 0 { sprig.twigs.remove(twig) }
    case 11: sprig.twin = number(0...2) == 0 ? nil : other
    case 12:
      guard let old = cut.popLast(), scope.model(old.uuid) == nil else { return }
      sprig.others.insert(old, at: number(0...sprig.others.count))
    default: if hasOrigins { sprig.origin = other }
    }
  }
}

@Suite("The content of a scope without its classes", .paced)
struct FragmentRowsTests {
  /// The models of a state as JSON, by their UUIDs: what a log has read has no type but that of JSON.
  private func texts(_ state: [SyncFragment]) -> [UUID: String] {
    Dictionary(uniqueKeysWithValues: state.map { ($0.uuid, $0.json.canonicalText) })
  }

  private func makeLog(
    _ path: String, _ gardener: inout Gardener, sets: Int
  ) async throws {
    let scope = manualScope(Sprig())
    let log = try FragmentLog(path)
    try await log.restore(into: scope)
    let token = log.record(scope, snapshotEvery: 0) { Issue.record("\($0)") }
    for number in 1...sets {
      for _ in 0...gardener.number(0...3) { try gardener.edit(scope) }
      scope.flush()
      if number % 17 == 0 { try await log.snapshot(of: scope) }
    }
    token.cancel()
    try await log.close()
  }

  @Test("At each record of an app's log they are what the classes make of it", arguments: 0..<6)
  func random(seed: Int) async throws {
    let directory = try TemporaryDirectory()
    var gardener = Gardener(generator: SeededGenerator(seed: UInt64(seed)), hasOrigins: false)
    try await makeLog(directory.path, &gardener, sets: 60)
    let reader = try LogReader(directory.path)
    let last = try #require(try reader.verify().records?.upperBound)
    #expect(last > 40, "seed \(seed)")
    var states: [[SyncFragment]] = []
    for sequence in 0...last {
      let then = Scope(name: "Then", root: Sprig(), ticker: .manual())
      try reader.restore(into: then, at: sequence)
      let rows = try reader.rows(at: sequence)
      #expect(rows.canonicalJSON == then.canonicalJSON, "seed \(seed), at \(sequence)")
      states.append(then.fullState())
    }
    #expect(try reader.rows().canonicalJSON == reader.rows(at: last).canonicalJSON)
    for _ in 0..<20 {
      let (from, to) = (gardener.number(0...last), gardener.number(0...last))
      let found = try reader.difference(from: from, to: to)
      let set = ChangeSet(from: states[from], to: states[to])
      let place: Comment = "seed \(seed), from \(from) to \(to)"
      #expect(found.isEmpty == set.fragments.isEmpty, place)
      #expect(texts(found.added) == texts(set.fragments.filter { $0.kind == .add }), place)
      #expect(texts(found.removed) == texts(set.undo.filter { $0.kind == .add }), place)
      func changes(_ value: (RowDifference.Property) -> JSONValue?) -> [SyncFragment] {
        found.changed.map { change in
          let values = change.properties.compactMap { property in
            value(property).map { (property.key, $0) }
          }
          return SyncFragment(
            .change, uuid: change.uuid, className: change.className, properties: JSONObject(values))
        }
      }
      #expect(
        texts(changes(\.after)) == texts(set.fragments.filter { $0.kind == .change }), place)
      #expect(texts(changes(\.before)) == texts(set.undo.filter { $0.kind == .change }), place)
    }
  }

  @Test("With weak references they have, besides, what only these name", arguments: 0..<4)
  func weak(seed: Int) async throws {
    let directory = try TemporaryDirectory()
    var gardener = Gardener(generator: SeededGenerator(seed: UInt64(seed)), hasOrigins: true)
    try await makeLog(directory.path, &gardener, sets: 60)
    var others = 0
    let reader = try LogReader(directory.path)
    let last = try #require(try reader.verify().records?.upperBound)
    for sequence in 0...last {
      let then = Scope(name: "Then", root: Sprig(), ticker: .manual())
      try reader.restore(into: then, at: sequence)
      let place: Comment = "seed \(seed), at \(sequence)"
      let rows = try reader.rows(at: sequence)
      let found = texts(rows.fullState())
      let models = texts(then.fullState())
      for (uuid, model) in models { #expect(found[uuid] == model, place) }
      // Each of the others is named by a weak reference, or by one that is.
      var named: Set<UUID> = []
      for uuid in found.keys { rows[uuid]?.properties["origin"]?.forEachUUID { named.insert($0) } }
      var open = Array(named)
      while let uuid = open.popLast() {
        for (_, value) in rows[uuid]?.properties ?? [:] {
          value.forEachUUID { if named.insert($0).inserted { open.append($0) } }
        }
      }
      #expect(found.keys.allSatisfy { models[$0] != nil || named.contains($0) }, place)
      others += found.count - models.count
    }
    #expect(others > 0, "Seed \(seed) has no such models.")
  }

  private let root = UUID(pair: 0, 1)
  private let child = UUID(pair: 0, 2)

  private func change(_ values: JSONObject, _ operations: PropertyOperations = [:]) -> SyncFragment
  {
    SyncFragment(
      .change, uuid: root, className: "A", properties: values, operations: operations)
  }

  private func add(_ values: JSONObject, _ className: String = "B") -> SyncFragment {
    SyncFragment(.add, uuid: child, className: className, properties: values)
  }

  private var rows: FragmentRows {
    var rows = FragmentRows()
    rows.replace(with: [change(["items": [], "n": 1]), add(["x": 1])])
    return rows
  }

  @Test("What was removed and is added again has the values of the addition, and no others")
  func addedAgain() {
    var rows = rows
    rows.apply([change([:], ["items": [.insert(child, .end)]])])
    #expect(rows[child]?.properties == ["x": 1])
    rows.apply([change([:], ["items": [.remove(child)]])])
    #expect(rows.reachable() == [root])
    rows.apply([add(["y": 2]), change([:], ["items": [.insert(child, .end)]])])
    #expect(rows[child]?.properties == ["y": 2] && rows.reachable() == [root, child])
  }

  @Test("What was removed cannot be inserted without an addition, unless it may come back")
  func insertedWithoutAddition() {
    var rows = rows
    rows.apply([change([:], ["items": [.insert(child, .end)]])])
    rows.apply([change([:], ["items": [.remove(child)]])], keepsUnreachable: true)
    var other = rows
    rows.apply([change([:], ["items": [.insert(child, .end)]])], keepsUnreachable: true)
    #expect(rows.reachable() == [root, child])
    other.apply([change([:], ["items": [.insert(child, .end)]])])
    #expect(other.reachable() == [root] && other[root]?.properties["items"] == [])
  }

  @Test("Each of many operations on a collection costs the same, however many models it has")
  func manyOperations() {
    let found = growth(from: 250) { count in
      let uuids = (0..<count).map { UUID(pair: 1, UInt64($0)) }
      let texts = uuids.map { JSONValue.string($0.wireText) }
      return {
        var rows = FragmentRows()
        rows.replace(with: [change(["items": []])])
        for uuid in uuids {
          let addition = SyncFragment(.add, uuid: uuid, className: "B", properties: [:])
          rows.apply([addition, change([:], ["items": [.insert(uuid, .end)]])])
        }
        #expect(rows[root]?.properties == ["items": .array(texts)])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("Operations count in their order among other values of the property")
  func operationsAmongValues() {
    var rows = rows
    let other = UUID(pair: 0, 4)
    let text = JSONValue.string(child.wireText)
    rows.apply([
      change(
        [:], ["items": [.insert(child, .end)], "n": [.add(2)], "new": [.insert(other, .end)]])
    ])
    #expect(rows.fullState()[0].properties == ["items": [text], "n": 3, "new": []])
    rows.apply([change(["items": []], ["n": [.add(2)]])], keepsUnreachable: true)
    rows.apply(
      [change([:], ["items": [.insert(child, .start), .insert(other, .end)]])],
      keepsUnreachable: true)
    rows.apply([change([:], ["items": [.move(child, .end)], "n": [.add(-1)]])])
    #expect(rows[root]?.properties == ["items": [text], "n": 4, "new": []])
    rows.apply([change(["items": 7])])
    rows.apply([change([:], ["items": [.insert(child, .end)]])])
    #expect(rows[root]?.properties["items"] == 7)
  }

  @Test("Fragments that do not fit are left out")
  func misfits() {
    var rows = rows
    rows.apply([
      SyncFragment(.change, uuid: UUID(), className: "A", properties: ["x": 1]),
      change([:], ["n": [.insert(UUID(), .end)], "m": [.add(3)]]),
    ])
    #expect(rows[root]?.properties == ["items": [], "n": 1, "m": 3])
    rows.apply([change(["one": .string(child.wireText)]), add([:])])
    rows.apply([add(["x": 5], "C")])
    #expect(rows[child]?.className == "B" && rows[child]?.properties == ["x": 1])
  }

  @Test("A root with another UUID is the same root, also where values name it")
  func renaming() {
    var rows = rows
    let text = JSONValue.string(root.wireText)
    rows.apply([
      change(["all": ["a": [text]], "one": .string(child.wireText)]), add(["parent": text]),
    ])
    var renamed = rows
    let name = UUID(pair: 0, 3)
    renamed.renameRoot(to: name)
    let new = JSONValue.string(name.wireText)
    #expect(renamed.root == name && renamed[root] == nil)
    #expect(renamed[name]?.properties["all"] == ["a": [new]])
    #expect(renamed[child]?.properties["parent"] == new)
    #expect(RowDifference(from: rows, to: renamed).isEmpty)
  }

  @Test("A difference names what came, what went, and values before and after")
  func difference() {
    var old = rows
    old.apply([change(["one": .string(child.wireText), "gone": 1])])
    var new = FragmentRows(root: root)
    new.replace(with: [change(["items": [], "n": 2, "one": .null])])
    let found = RowDifference(from: old, to: new)
    #expect(found.added.isEmpty && found.removed == [add(["x": 1])])
    let text = JSONValue.string(child.wireText)
    #expect(
      found.json.canonicalText
        == JSONValue.object([
          "added": [], "removed": [add(["x": 1]).json],
          "changed": [
            [
              "uuid": .string(root.wireText), "clsName": "A",
              "properties": [
                "gone": ["before": 1], "n": ["before": 1, "after": 2],
                "one": ["before": text, "after": .null],
              ],
            ]
          ],
        ]).canonicalText)
  }
}
