import Foundation

@testable import Jetstream

/// A property that is changed in place, with something else done while that goes on.
enum ForestAccess {
  case number(Int, Int)
  case reference(Int, ReferenceKey, Int?)
  /// Edits before and after what is done within.
  case list(Int, ListKey, [ListEdit], [ListEdit])

  var owner: Int {
    switch self {
    case .number(let id, _), .reference(let id, _, _), .list(let id, _, _, _): id
    }
  }

  func isList(_ id: Int, _ key: ListKey) -> Bool {
    if case .list(id, key, _, _) = self { true } else { false }
  }
}

extension Forest {
  /// Until the change has ended all others see the value as it was; what is done within comes first.
  func performWithin(_ access: ForestAccess, _ inner: ForestOperation) {
    switch access {
    case .number(let id, let delta):
      let value = reference.nodes[id]!.plain.number + delta
      func change(_ number: inout Int) {
        perform(inner)
        number += delta
      }
      change(&plants[id]!.number)
      // A value that is as it was when the change began is not written.
      if delta != 0 { reference.edit(id) { $0.number = value } }
    case .reference(let id, let key, let child):
      let old = reference.nodes[id]!.references[key]
      plants[id]!.change(key) {
        $0 = child.map { plants[$0]! }
        perform(inner)
      }
      if old != child { reference.assign(id, key, child) }
    case .list(let id, let key, let before, let after):
      let old = reference.nodes[id]!.list(key)
      var new = old
      for edit in before + after { edit.perform(on: &new) }
      plants[id]!.change(key) { list in
        for edit in before {
          edit.perform(on: &list, plant: { plants[$0]! }, number: self.id(of:))
        }
        perform(inner)
        for edit in after {
          edit.perform(on: &list, plant: { plants[$0]! }, number: self.id(of:))
        }
      }
      maybe.insert(id)
      reference.assign(id, key, new)
    }
  }

  func randomWithin() -> ForestOperation {
    let outer = randomAccess(within: [])
    var open = [outer]
    if chance(50) { open.append(randomAccess(within: open)) }
    var result = randomLeaf(within: open)
    for access in open.reversed() { result = .within(access, result) }
    return result
  }

  private func randomAccess(within open: [ForestAccess]) -> ForestAccess {
    let id = chance(40) ? open.first?.owner ?? someNode() : someNode()
    // Who is told at once of what is done within must not read what is being changed.
    let isRead = watchers.contains { !$0.isOver && $0.readsItemsAtOnce }
    let key = isRead ? [ListKey.others, .picks][random(2)] : ListKey.allCases[random(3)]
    switch random(4) {
    case 0: return .number(id, random(3))
    case 1: return .reference(id, chance(50) ? .left : .right, chance(70) ? anyNode() : nil)
    default:
      if open.contains(where: { $0.isList(id, key) }) { return .number(id, 1) }
      let before = randomEdit(of: reference.nodes[id]!.list(key))
      var content = reference.nodes[id]!.list(key)
      before.perform(on: &content)
      let after = chance(50) ? [randomEdit(of: content)] : []
      for edit in after { edit.perform(on: &content) }
      // What is refused of two with one UUID depends on the steps.
      var uuids: Set<UUID> = []
      let tree = (content + order).reduce(into: Set<Int>()) { $0.formUnion(reference.reach($1)) }
      if tree.contains(where: { !uuids.insert(reference.nodes[$0]!.uuid).inserted }) {
        return .number(id, 1)
      }
      return .list(id, key, [before], after)
    }
  }

  private func randomLeaf(within open: [ForestAccess]) -> ForestOperation {
    let owner = open[random(open.count)].owner
    let id = chance(40) ? owner : someNode()
    switch random(5) {
    case 0: return .plain(id, .number(random(5)))
    case 1: return .reference(someNode(), chance(50) ? .left : .right, chance(70) ? id : nil)
    case 2:
      // A collection that is being changed cannot be changed a second time.
      let isOpen = open.contains {
        if case .list(let other, let key, _, _) = $0 {
          reference.nodes[other]!.list(key).contains(id)
        } else {
          false
        }
      }
      return isOpen ? .plain(id, .title("x")) : .detach(id)
    default:
      let parent = someNode()
      let key = ListKey.allCases[random(3)]
      if open.contains(where: { $0.isList(parent, key) }) { return .friend(parent, id) }
      return .list(parent, key, [.append(id)], .inPlace)
    }
  }
}
