import Foundation

/// What waits to become a change set, by the rules: who is known to the others, and which properties
/// differ, or may differ, from what they know.
extension ForestReference {
  /// Whether the others know the node: as one that is there, or as one that has just left.
  func isKnown(_ id: Int, in scope: Int) -> Bool { capture[id] == scope && !fresh.contains(id) }

  /// Who the others mean by the UUID of a node that they know.
  func target(_ id: Int, in scope: Int) -> Int {
    let uuid = nodes[id]!.uuid
    return (members[scope] ?? []).first { nodes[$0]!.uuid == uuid } ?? id
  }

  /// Who has left with the UUID of a node that stands in its place: the others mean both.
  func departed(behind target: Int, in scope: Int) -> Int? {
    guard let inside = members[scope], inside.contains(target) else { return nil }
    let uuid = nodes[target]!.uuid
    return nodes.keys.filter {
      nodes[$0]!.uuid == uuid && isKnown($0, in: scope) && !inside.contains($0)
    }.min()
  }

  /// A property is about to be changed, or has just been.
  mutating func keepBase(_ id: Int, _ key: String, _ list: [Int] = []) {
    guard let scope = capture[id], !fresh.contains(id), bases[id]?[key] == nil,
      key != "note", key != "picks", applying != scope
    else { return }
    bases[id, default: [:]][key] = list
  }

  mutating func enter(_ id: Int, _ scope: Int) {
    if capture[id] == scope { return }
    capture[id] = scope
    bases[id] = nil
    // What others brought is known to them; what came along with it is not.
    if applying == scope, created.contains(id) { fresh.remove(id) } else { fresh.insert(id) }
  }

  mutating func leave(_ id: Int, _ scope: Int, remotely: Bool) {
    if remotely || fresh.contains(id) { forget(id) }
  }

  /// What others have put below somebody who has left is theirs, as what has left itself.
  mutating func leaveCreated(_ scope: Int) {
    var open = capture.filter { $0.value == scope && !fresh.contains($0.key) }.map(\.key)
      .filter { self.scope(of: $0) == nil }
    while let id = open.popLast() {
      for (child, key) in nodes[id]!.children where key != "picks" && created.contains(child) {
        guard capture[child] == nil, self.scope(of: child) == nil else { continue }
        capture[child] = scope
        open.append(child)
      }
    }
  }

  mutating func forget(_ id: Int) {
    capture[id] = nil
    bases[id] = nil
    fresh.remove(id)
  }

  /// Nobody collects for a scope any more.
  mutating func forgetScope(_ scope: Int) {
    for (id, other) in capture where other == scope { forget(id) }
  }

  /// What others have known, and only local properties hold by now, is new when it is shared again.
  mutating func findUnshared(_ scope: Int) {
    guard let root = roots[scope] else { return }
    let shared = reach(root, onlySynced: true)
    for id in members[scope] ?? [] where !shared.contains(id) {
      fresh.insert(id)
      bases[id] = nil
    }
  }

  /// A change set was made. `keeps` tells of a node whether its heat is held back.
  mutating func collect(_ scope: Int, holdingBack keeps: (UUID) -> Bool = { _ in false }) {
    findUnshared(scope)
    let inside = members[scope] ?? []
    let shared = roots[scope].map { reach($0, onlySynced: true) } ?? []
    for (id, other) in capture where other == scope {
      guard inside.contains(id) else {
        forget(id)
        continue
      }
      if shared.contains(id) { fresh.remove(id) }
      let isHeldBack = bases[id]?["heat"] != nil && keeps(nodes[id]!.uuid)
      bases[id] = isHeldBack ? ["heat": []] : nil
    }
  }
}
