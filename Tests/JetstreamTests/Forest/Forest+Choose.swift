import Foundation

@testable import Jetstream

/// Choosing what is done next. Only arrays in a known order are chosen from, so that a seed always
/// leads to the same operations.
extension Forest {
  func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

  func chance(_ percent: Int) -> Bool { random(100) < percent }

  func anyNode() -> Int { order[random(order.count)] }

  /// A node of a scope, if that has some.
  func anyMember(_ scope: Int) -> Int? {
    let members = (reference.members[scope] ?? []).sorted()
    return members.isEmpty ? nil : members[random(members.count)]
  }

  /// Mostly a node of a scope, since changes of others have fewer effects.
  func someNode() -> Int { chance(60) ? anyMember(chance(75) ? 0 : 1) ?? anyNode() : anyNode() }

  func anyUUID() -> UUID {
    let (a, b) = (generator.next(), generator.next())
    return UUID(uuid: unsafeBitCast((a, b), to: uuid_t.self))
  }

  func observation() -> ForestOperation {
    .observe(someNode(), randomKind(), isFree: chance(30))
  }

  func next() -> ForestOperation {
    if modifies, chance(8) {
      return .modify(chance(75) ? 0 : 1, steps: 1 + random(7), throws: chance(65))
    }
    switch random(138) {
    case 0..<14: return .plain(someNode(), randomEdit())
    case 14..<26: return randomReference()
    case 26..<29:
      let (a, b) = (someNode(), someNode())
      let key = ReferenceKey.allCases[random(2)]
      let other = a == b ? (key == .left ? .right : .left) : ReferenceKey.allCases[random(2)]
      return .swapReferences(a, key, b, other)
    case 29..<58: return randomList()
    case 58..<61:
      let (a, b) = (someNode(), someNode())
      let key = ListKey.allCases[random(3)]
      let other =
        a == b
        ? ListKey.allCases.filter { $0 != key }[random(2)] : ListKey.allCases[random(3)]
      // The inner change ends while the outer one is open: who is called then must not read what the
      // outer one changes, which is Swift's own rule.
      let isRead = watchers.contains { !$0.isOver && $0.readsItemsAtOnce }
      if key == .items, isRead { return other == .items ? .flush : .swapLists(b, other, a, key) }
      return .swapLists(a, key, b, other)
    case 61..<63: return .friend(someNode(), chance(75) ? anyNode() : nil)
    case 63..<66: return .detach(someNode())
    case 66..<69: return .setRoot(random(2), anyNode())
    case 69..<71:
      let scopes = reference.roots.keys.sorted()
      guard !scopes.isEmpty, chance(60) else { return .detach(anyNode()) }
      let scope = scopes[random(scopes.count)]
      // Most of the time the scopes are to have their roots.
      if scope < 2, chance(50) { return .flush }
      if scope < 2, chance(25) { return .dropScope(scope) }
      return .releaseRoot(scope)
    case 71..<73: return .setRoot(random(2), anyNode())
    case 73..<82: return randomFragments()
    case 82: return .saveState
    case 83..<85: return .applyState
    case 85..<87: return .takeFragments(random(2))
    case 87..<90: return chance(60) ? .flushArmed : .flush
    case 90..<100: return .advance([0, 5, 10, 10, 20, 50, 70][random(7)])
    case 100..<103:
      let live = watchers.filter { !$0.isOver }
      let muted = live.filter { _ in chance(50) }
      return .muted(muted, chance(40) ? .plain(someNode(), randomEdit()) : randomList())
    case 103..<114: return observation()
    case 114..<119:
      let live = watchers.filter { !$0.isOver }
      guard live.count > 10 else { return .observe(someNode(), randomKind(), isFree: false) }
      let watcher = live[random(live.count)]
      switch random(3) {
      case 0: return .cancel(watcher)
      case 1: return .releaseEar(watcher)
      default: return .removeObservers(watcher)
      }
    case 119..<122:
      guard order.count < 24 else { return .drop(anyNode()) }
      return .create(newNumber(), anyUUID(), isBush: chance(50))
    case 122..<130: return randomWithin()
    case 130..<136: return order.count > 14 ? .drop(anyNode()) : .detach(anyNode())
    default:
      let id = anyNode()
      guard order.count < 24,
        reference.reach(id).count < 5
      else { return .detach(id) }
      return .copy(id, keepingUUIDs: chance(30))
    }
  }

  private func randomEdit() -> PlainEdit {
    switch random(16) {
    case 14, 15: .count(random(7) - 3)
    case 0: .number(random(5))
    case 1: .addNumber(random(3))
    case 2: .title([nil, "a", "b"][random(3)])
    case 3: .counts((0..<random(3)).map { $0 })
    case 4: .appendCount(random(3))
    case 5: .appendAndRemoveCount
    case 6: .size("k\(random(2))", chance(70) ? Double(random(3)) : nil)
    case 7: .spot(ForestSpot(x: random(2), y: random(2)))
    case 8: .moveSpot(random(2))
    case 9: .note(random(3))
    case 10, 11: .heat(random(6))
    case 12: .height(random(3))
    default: .same
    }
  }

  private func randomReference() -> ForestOperation {
    let id = someNode()
    let isBush = reference.nodes[id]!.isBush
    let key = ReferenceKey.allCases[random(isBush ? 3 : 2)]
    var child = chance(70) ? anyNode() : nil
    if key == .crown, let wanted = child, !reference.nodes[wanted]!.isBush { child = nil }
    return .reference(id, key, child)
  }

  private func randomList() -> ForestOperation {
    let id = someNode()
    let key = ListKey.allCases[random(5) / 2]
    let way: ForestOperation.Way = [.inPlace, .inPlace, .assigned, .copied][random(4)]
    var content = reference.nodes[id]!.list(key)
    var edits: [ListEdit] = []
    for _ in 0..<(chance(70) ? 1 : 1 + random(4)) {
      let edit = randomEdit(of: content)
      edit.perform(on: &content)
      edits.append(edit)
    }
    return .list(id, key, edits, way)
  }

  func randomEdit(of list: [Int]) -> ListEdit {
    let count = list.count
    func some(_ limit: Int) -> [Int] { (0..<random(limit)).map { _ in anyNode() } }
    switch random(count == 0 ? 6 : 15) {
    case 0, 1: return .append(anyNode())
    case 2: return .appendAll(some(4))
    case 3: return .insert(anyNode(), at: random(count + 1))
    case 4: return .become(some(5))
    case 5: return .sort
    case 6: return .removeAt(random(count))
    case 7: return .remove(chance(70) ? list[random(count)] : anyNode())
    case 8: return .removeAll
    case 9: return .removeOdd
    case 10, 11: return .move(random(count), to: random(count))
    case 12:
      let start = random(count + 1)
      return .replace(start..<(start + random(count - start + 1)), some(4))
    case 13: return .become(list.shuffled(using: &generator))
    default: return .become(list)
    }
  }

  private func randomKind() -> ForestWatcher.Kind {
    let key = ListKey.allCases[random(3)]
    let reference = ReferenceKey.allCases[random(2)]
    let composite = CompositeKey.allCases[random(3)]
    return switch random(26) {
    case 0: .anyProperty
    case 1: .number
    case 2: .list(key)
    case 3: .reference(reference)
    case 4: .steps
    case 5: .typedSteps(key)
    case 6, 7: .parents
    case 8, 9: .membership
    case 10: .change([])
    case 11: .change([["number"], ["items", "title"], ["left", "friend"]][random(3)])
    case 12: .numberValue
    case 13: .listValue(key)
    case 14: .referenceValue(reference)
    case 15: .difference(key)
    case 16: .tree
    case 17: .treeAt(key)
    case 18: .composite(composite)
    case 19: .compositeValue(composite)
    case 20, 21: .compositeAtOnce(composite)
    case 22: .treeSignal
    case 23: .rows([.all(random(2)), .numbered(random(2)), .byTotal(random(2))][random(3)])
    case 24: .rows(.numbered(0))
    default: .rows(chance(50) ? .odd(key) : .byNumber(key))
    }
  }
}
