@testable import Jetstream

/// What can be seen of the models, and whether it is what it has to be.
extension Thicket {
  func number(_ twig: Twig?) -> String {
    twig.map { "#\(numbers[ObjectIdentifier($0)] ?? -1)" } ?? "-"
  }

  /// Everything that can be seen of a model, and what the scope thinks of it.
  fileprivate func look(_ twig: Twig) -> String {
    let lists = Twig.lists.map { "\(twig[keyPath: $0].map { number($0) })" }
    let references = Twig.references.map { number(twig[keyPath: $0]) }
    // Models outside may keep what they were given.
    let inside = twig.parents.filter { $0.parent.scope === scope }
    let parents = inside.map { "\(number($0.parent as? Twig)).\($0.key)" }.sorted()
    let friend = twig.$friend
    var link = "none"
    if case .loaded(let twig) = friend { link = number(twig) }
    if case .missing(let uuid) = friend { link = "\(uuid)" }
    return "\(number(twig)) \(twig.text) \(twig.note) \(twig.mark) "
      + "\(twig.day.timeIntervalSinceReferenceDate.bitPattern) \(twig.count) \(twig.heat) "
      + "\(references) \(lists) \(link) in \(parents) \(twig.scope === scope) "
      + "\(twig.record?.isNew ?? false) \(twig.record?.scopedParents ?? 0)"
  }

  /// The models of the scope.
  func picture() -> [(twig: Twig, text: String)] {
    twigs.filter { $0.scope === scope }.map { ($0, look($0)) }
  }

  func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
    if !condition { problems.append(problem()) }
  }

  /// What was in the scope is as it was, and nothing else is in it.
  func compare(_ before: [(twig: Twig, text: String)], _ moment: String) {
    for (twig, text) in before {
      let now = look(twig)
      expect(now == text, "\(moment):\n  \(now)\ninstead of\n  \(text)")
    }
    let inside = twigs.filter { $0.scope === scope }
    expect(inside.count == before.count, "\(moment): there are \(inside.count) of \(before.count)")
    expect(scope.count == before.count, "\(moment): the scope counts \(scope.count)")
    for twig in inside { expect(scope.model(twig.uuid) === twig, "\(moment): \(number(twig))") }
    for twig in twigs {
      for list in Twig.lists { twig[keyPath: list].list.storage?.checkInvariants() }
    }
  }

  func compareReplica(_ moment: String) {
    let (ours, theirs) = (scope.canonicalJSON, replica.canonicalJSON)
    expect(ours == theirs, "\(moment): the replica has\n  \(theirs)\ninstead of\n  \(ours)")
    keeper.forgetGone()
    expect(!replica.hasCollectedChanges, "\(moment): the replica has changes of its own")
  }
}
