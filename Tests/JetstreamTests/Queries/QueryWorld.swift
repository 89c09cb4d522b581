import Testing

@testable import Jetstream

/// A tree of models that queries of all kinds run over, and that is changed at random.
#if ON_ACTOR
@TestDomain
#endif
final class QueryWorld {
  let board = Workboard()
  let scope: Scope
  let chores: [Chore]
  let projects: [Project]
  var generator: SeededGenerator
  var place = ""
  /// Of which rows something was written since the last tick that the closures may read.
  var touched: Set<Chore> = []

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    scope = boardScope(board)
    let projects = (0..<4).map { Project("p\($0)") }
    self.projects = projects
    board.projects = ModelArray(projects)
    chores = (0..<40).map { index in
      let chore = index % 5 == 0 ? Errand() : Chore()
      chore.title = "t\(index % 7)"
      chore.priority = index % 4
      chore.project = index % 3 == 0 ? nil : projects[index % 4]
      return chore
    }
    board.chores = ModelArray(chores.prefix(20))
  }

  func change() {
    let chore = chores.randomElement(using: &generator)!
    let other = chores.randomElement(using: &generator)!
    switch Int.random(in: 0..<17, using: &generator) {
    case 0, 1: write(chore) { $0.priority = .random(in: 0..<4, using: &generator) }
    case 2: write(chore) { $0.title = "t\(Int.random(in: 0..<7, using: &generator))" }
    case 3: write(chore) { $0.isDone.toggle() }
    case 4: write(chore) { $0.due = [nil, 1, 2, .nan].randomElement(using: &generator)! }
    case 5: write(chore) { $0.project = projects.randomElement(using: &generator) }
    case 6: write(chore) { $0.project = nil }
    case 7:
      let project = projects.randomElement(using: &generator)!
      for chore in chores where chore.project === project { touched.insert(chore) }
      project.name = "p\(Int.random(in: 0..<5, using: &generator))"
      for chore in chores where chore.project === project { touched.insert(chore) }
    case 8: board.chores.append(chore)
    case 9: board.chores.insert(chore, at: .random(in: 0...board.chores.count, using: &generator))
    case 10: board.chores.remove(chore)
    case 11 where board.chores.count > 1:
      board.chores.move(
        from: .random(in: 0..<board.chores.count, using: &generator),
        to: .random(in: 0..<board.chores.count, using: &generator))
    case 12:
      board.chores = ModelArray(chores.shuffled(using: &generator).prefix(25))
    case 13: chore.parts.append(other)
    case 14: chore.parts.remove(other)
    case 15: board.inbox = Bool.random(using: &generator) ? chore : nil
    default: chore.note += "x"
    }
  }

  private func write(_ chore: Chore, _ body: (Chore) -> Void) {
    touched.insert(chore)
    body(chore)
  }
}
