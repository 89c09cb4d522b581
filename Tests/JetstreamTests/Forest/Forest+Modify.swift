import Foundation

@testable import Jetstream

/// Changes that belong together, and that are taken back if something is thrown.
extension Forest {
  private struct Broken: Error {}

  /// What is done within is chosen while it is done, since it depends on what was done before.
  func performModify(_ number: Int, steps: Int, throwing: Bool) {
    let scope = scope(number)
    guard reference.roots[number] != nil else { return }
    checkStep()
    var start = reference
    var visitors: Set<Int> = []
    var heard = 0
    let isOutermost = scope.modification == nil
    // Nothing is held back, neither of what comes before nor of what is changed here.
    isFlushing = true
    defer { isFlushing = !isOutermost }
    do {
      try scope.modify {
        // What was collected before has become a set.
        if isOutermost { reference.collect(number) }
        start = reference
        heard = setsHeard
        checkPending(number, isOutermost: isOutermost)
        for _ in 0..<steps {
          history.append("  in modify: \(modifyStep(number, isOutermost: isOutermost))")
          visitors.formUnion(reference.members[number] ?? [])
          for case .attached(let id, number) in reference.events { visitors.insert(id) }
          checkStep()
        }
        visitors.formUnion(scope.modification!.departed.map(id))
        if throwing { throw Broken() }
      }
      if !isOutermost { return }
      reference.collect(number)
      if number == 0 {
        keeper.forgetGone()
        compareReplica(isFlushed: true)
      }
    } catch {
      takenBack += 1
      takeBack(number, to: start, visitors)
      expect(setsHeard == heard, "a set came out of a call that was taken back")
      checkPending(number, isOutermost: isOutermost)
      if isOutermost, number == 0 { compareReplica(isFlushed: true) }
    }
  }

  private func checkPending(_ number: Int, isOutermost: Bool) {
    if !isOutermost { return }
    expect(!scope(number).hasCollectedChanges, "scope \(number) has something to tell")
  }

  /// Does one thing within a call, unless it has to do with another scope: what has gone there does not
  /// come back.
  private func modifyStep(_ number: Int, isOutermost: Bool) -> ForestOperation {
    if isOutermost, chance(15) {
      let nested = ForestOperation.modify(number, steps: 1 + random(4), throws: chance(60))
      history.append("  in modify: \(nested)")
      perform(nested)
      return nested
    }
    while true {
      let operation = next()
      guard let owners = operation.ownersWithinModify else { continue }
      let fits = owners.allSatisfy { (reference.scope(of: $0) ?? number) == number }
      if !fits { continue }
      perform(operation)
      return operation
    }
  }

  /// The models of the scope are expected to be what they were. Those that were elsewhere and have been in
  /// the scope since keep what they had when they came: nothing foretells that.
  private func takeBack(_ number: Int, to start: ForestReference, _ visitors: Set<Int>) {
    adoptNew()
    // What had left in a call around this one comes back as it was when this one began.
    let departed = start.capture.filter { $0.value == number }.keys
    let members = (start.members[number] ?? []).union(departed)
    var nodes = reference.nodes
    for id in members { nodes[id] = start.nodes[id] }
    for id in visitors.subtracting(members) where plants[id] != nil {
      nodes[id] = read(id)
      nodes[id]!.friendNode = plants[id]!.friend.map(self.id)
    }
    reference.takeBack(number, to: start, nodes)
    isForetold = false
    for id in start.members[number] ?? [] {
      let isNew = plants[id]?.record?.isNew == true
      expect(
        isNew == start.fresh.contains(id),
        "#\(id) is \(isNew ? "" : "not ")new to the others after a call that was taken back")
    }
  }
}

extension ForestReference {
  /// What has happened to the models of a scope has not.
  mutating func takeBack(_ scope: Int, to start: ForestReference, _ nodes: [Int: Node]) {
    for id in Set(capture.keys).union(start.capture.keys)
    where capture[id] == scope || start.capture[id] == scope {
      forget(id)
      guard start.capture[id] == scope else { continue }
      capture[id] = scope
      bases[id] = start.bases[id]
      if start.fresh.contains(id) { fresh.insert(id) }
    }
    self.nodes = nodes
    settle()
  }
}

extension ForestOperation {
  /// The models that are changed, where this can be done within a call of `modify`.
  var ownersWithinModify: [Int]? {
    switch self {
    case .plain(let id, _), .reference(let id, _, _), .list(let id, _, _, _), .friend(let id, _),
      .detach(let id):
      [id]
    case .swapReferences(let a, _, let b, _), .swapLists(let a, _, let b, _): [a, b]
    case .within(let access, let inner): inner.ownersWithinModify.map { $0 + [access.owner] }
    default: nil
    }
  }
}
