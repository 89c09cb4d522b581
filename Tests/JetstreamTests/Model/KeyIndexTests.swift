import Testing

@testable import Jetstream

@Suite("The keys of a model in a large dictionary", .paced)
struct KeyIndexTests {
  private func team(of count: Int) -> Team {
    let team = Team()
    for number in 0..<count { team.members["\(100_000 + number)"] = Member(number) }
    return team
  }

  @Test("Detaching each of many models from a dictionary looks at each entry a few times")
  func detachEach() {
    func visits(of count: Int) -> Int {
      let team = team(of: count)
      let scope = manualScope(team)
      // The entries that are left are enough for an index.
      for member in team.members.values.dropLast(100) { member.detach() }
      #expect(team.members.count == 100 && scope.count == 101)
      return team.members.table.visits
    }
    let few = visits(of: 1_000)
    #expect(few > 0)
    #expect(visits(of: 10_000) < 15 * few)
  }

  @Test(
    "Asking each of many models in a dictionary for its holders looks at each entry a few times")
  func holders() {
    func visits(of count: Int) -> Int {
      let team = team(of: count)
      let scope = manualScope(team)
      for (name, member) in team.members {
        #expect(member.holders == [PropertyKey(uuid: team.uuid, name: "members/\(name)")])
      }
      #expect(scope.count == count + 1)
      return team.members.table.visits
    }
    #expect(visits(of: 10_000) < 15 * visits(of: 1_000))
  }

  @Test("A model that comes for each that is detached does not have all entries looked at again")
  func exchangeEach() {
    func visits(in count: Int) -> Int {
      let team = team(of: count)
      for (number, member) in team.members.values.prefix(1_000).enumerated() {
        member.detach()
        team.members["new \(number)"] = member
      }
      #expect(team.members.count == count)
      return team.members.table.visits
    }
    // The root of ten times.
    #expect(visits(in: 10_000) < 4 * visits(in: 1_000))
  }

  @Test("The keys are right in each copy of a table", arguments: [UInt64](1...20))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let models = (0..<(seed.isMultiple(of: 2) ? 5 : 400)).map { Member($0) }
    var tables: [(table: ModelTable, reference: [String: Member])] = [(ModelTable(), [:])]
    func check(_ table: ModelTable, _ reference: [String: Member], _ step: Int) {
      let model = models.randomElement(using: &generator)!
      let keys = reference.filter { $0.value === model }.keys.sorted()
      #expect(table.keys(of: model) == keys, "seed \(seed), step \(step)")
    }
    for step in 0..<3_000 {
      let at = Int.random(in: tables.indices, using: &generator)
      let key = "key \(Int.random(in: 0..<500, using: &generator))"
      // They grow at first, and become small in the end.
      let isRemoval = Int.random(in: 0..<3_000, using: &generator) < step
      let model = isRemoval ? nil : models.randomElement(using: &generator)
      tables[at].table[key] = model
      tables[at].reference[key] = model
      if step.isMultiple(of: 2) { check(tables[at].table, tables[at].reference, step) }
      if step.isMultiple(of: 53) {
        let copy = tables[at]
        if tables.count < 4 { tables.append(copy) } else { tables[(at + 1) % 4] = copy }
        let other = tables.randomElement(using: &generator)!
        check(other.table, other.reference, step)
      }
    }
  }
}
