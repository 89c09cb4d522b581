import Testing

@testable import Jetstream

@Suite("The table of a dictionary", .paced)
struct ModelTableTests {
  private func entries(_ table: ModelTable) -> [(String, ModelObject)] {
    var result: [(String, ModelObject)] = []
    table.forEach { result.append(($0, $1)) }
    return result
  }

  /// The changes from one dictionary to another, found key by key.
  private func changes(
    _ old: [String: ModelObject], _ new: [String: ModelObject]
  ) -> [String] {
    Set(old.keys).union(new.keys).sorted().compactMap { key in
      old[key] === new[key] ? nil : describe(key, old[key], new[key])
    }
  }

  private func describe(_ key: String, _ old: ModelObject?, _ new: ModelObject?) -> String {
    func name(_ model: ModelObject?) -> String { model.map { "\(ObjectIdentifier($0))" } ?? "-" }
    return "\(key): \(name(old)) \(name(new))"
  }

  @Test("It does what a dictionary does, in the order of the keys", arguments: 1...20)
  func random(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let models = (0..<20).map { _ in Shape() }
    var (table, reference): (ModelTable, [String: ModelObject]) = (ModelTable(), [:])
    var (oldTable, oldReference) = (table, reference)
    // Few keys are met again, many make several parts.
    let range = seed.isMultiple(of: 2) ? 0...40 : 0...2_000
    for step in 0..<3_000 {
      let key = "key \(Int.random(in: range, using: &generator))"
      let model =
        Int.random(in: 0..<3, using: &generator) == 0
        ? nil : models.randomElement(using: &generator)
      table[key] = model
      reference[key] = model
      if step.isMultiple(of: 97) {
        let found = table.changes(since: oldTable).map { describe($0.key, $0.old, $0.new) }
        #expect(found == changes(oldReference, reference), "seed \(seed), step \(step)")
        let back = oldTable.changes(since: table).map { describe($0.key, $0.new, $0.old) }
        #expect(back == found, "seed \(seed), step \(step)")
        #expect(
          table.isSame(as: oldTable) == found.isEmpty && table.isSame(as: table),
          "seed \(seed), step \(step)")
        (oldTable, oldReference) = (table, reference)
      }
    }
    #expect(table.count == reference.count, "seed \(seed)")
    #expect(entries(table).map(\.0) == reference.keys.sorted(), "seed \(seed)")
    for (key, model) in reference { #expect(table[key] === model, "seed \(seed)") }
    #expect(table["nothing"] == nil)
    let counted = models[0]
    #expect(
      table.keys(of: counted) == reference.filter { $0.value === counted }.keys.sorted(),
      "seed \(seed)")
    for key in reference.keys.shuffled(using: &generator) { table[key] = nil }
    #expect(table.count == 0 && entries(table).isEmpty, "seed \(seed)")
  }

  @Test("A copy keeps its content")
  func copy() {
    var table = ModelTable()
    let (first, second) = (Shape(), Shape())
    for number in 0..<1_000 { table["\(number)"] = first }
    let copy = table
    table["500"] = second
    table["501"] = nil
    #expect(copy["500"] === first && copy["501"] === first && copy.count == 1_000)
    #expect(table.changes(since: copy).map(\.key) == ["500", "501"])
  }

  @Test("Keys that are added in order fill the parts")
  func inOrder() {
    var table = ModelTable()
    for number in 0..<10_000 { table["\(100_000 + number)"] = Shape() }
    #expect(table.partCount < 90)
  }
}
