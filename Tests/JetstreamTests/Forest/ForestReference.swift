import Foundation

/// The rules of the forest once more, on numbers, arrays and dictionaries: slow, and with nothing in
/// common with the framework.
struct ForestReference {
  struct Link: Hashable, Comparable {
    let parent: Int
    let key: String
    static func < (a: Link, b: Link) -> Bool { (a.parent, a.key) < (b.parent, b.key) }
  }

  struct Node: Equatable {
    var isBush: Bool
    var uuid: UUID
    var plain = PlainValues()
    var references: [ReferenceKey: Int] = [:]
    var lists: [ListKey: [Int]] = [:]
    /// Who the weak reference names.
    var friend: UUID?
    /// The object it was set to; a value from elsewhere names a UUID only.
    var friendNode: Int?

    func list(_ key: ListKey) -> [Int] { lists[key] ?? [] }

    /// Who is held, in order.
    var children: [(child: Int, key: String)] {
      var result: [(Int, String)] = []
      for key in ReferenceKey.allCases {
        if let child = references[key] { result.append((child, key.rawValue)) }
      }
      for key in ListKey.allCases { result += list(key).map { ($0, key.rawValue) } }
      return result
    }
  }

  var nodes: [Int: Node] = [:]
  /// Who is at the top of each scope.
  var roots: [Int: Int] = [:]
  /// Who was found to be in each scope after the last change.
  var members: [Int: Set<Int>] = [:]
  /// While fragments are applied, nobody leaves this scope.
  var applying: Int?

  // What was to be told since these were last taken.
  var events: [ForestEvent] = []
  var errors: [Int: Int] = [:]
  /// Which properties have changed, and the number of the change.
  var dirty: [Int: [String: Int]] = [:]
  var clock = 0

  // What waits to become a change set; see ForestReference+Pending.
  /// Which scope collects the changes of each node.
  var capture: [Int: Int] = [:]
  /// Who is new to the others.
  var fresh: Set<Int> = []
  /// Which properties were changed, and what collections were for the others.
  var bases: [Int: [String: [Int]]] = [:]
  /// The nodes that come with the fragments that are being applied.
  var created: Set<Int> = []
  /// How much was refused while fragments were applied.
  var refusals = 0
  /// Whether a change set leaves out the heat of a node.
  var holdsBack: (UUID) -> Bool = { _ in false }

  /// The members that the last events led to.
  var told: [Int: Set<Int>] = [:]

  // MARK: Questions

  func scope(of node: Int) -> Int? {
    for (scope, inside) in members where inside.contains(node) { return scope }
    return nil
  }

  func reach(_ top: Int, onlySynced: Bool = false) -> Set<Int> {
    var reached: Set<Int> = [top]
    var open = [top]
    while let next = open.popLast() {
      for (child, key) in nodes[next]!.children where !onlySynced || key != "picks" {
        if reached.insert(child).inserted { open.append(child) }
      }
    }
    return reached
  }

  /// Who holds each node.
  var parents: [Int: [Link]] {
    var result: [Int: [Link]] = [:]
    for (parent, node) in nodes {
      for (child, key) in node.children {
        result[child, default: []].append(Link(parent: parent, key: key))
      }
    }
    return result.mapValues { $0.sorted() }
  }

  /// Whether all below `top` may come into `scope`.
  func canEnter(_ top: Int, _ scope: Int) -> Bool {
    let inside = members[scope] ?? []
    var uuids = Set(inside.map { nodes[$0]!.uuid })
    for node in reach(top) where !inside.contains(node) {
      if self.scope(of: node) != nil || !uuids.insert(nodes[node]!.uuid).inserted { return false }
    }
    return true
  }

  /// What reading the weak reference gives.
  func friend(of id: Int) -> Int? {
    let node = nodes[id]!
    return visible(node.friend, node.friendNode, from: id)
  }

  func visible(_ uuid: UUID?, _ known: Int?, from id: Int) -> Int? {
    guard let uuid else { return nil }
    guard let scope = scope(of: id) else { return known }
    if let known, members[scope]!.contains(known) { return known }
    return members[scope]!.first { nodes[$0]!.uuid == uuid }
  }

  func total(_ id: Int) -> Int {
    let node = nodes[id]!
    return node.plain.number + (node.references[.left].map { nodes[$0]!.plain.number } ?? 0)
      + node.list(.items).reduce(0) { $0 + nodes[$1]!.plain.number }
  }

  func chosen(_ id: Int) -> Int {
    let node = nodes[id]!
    let child = node.references[node.plain.number.isMultiple(of: 2) ? .left : .right]
    return child.map { nodes[$0]!.plain.number } ?? -1
  }

  func value(_ id: Int, _ key: CompositeKey) -> Int {
    switch key {
    case .total: total(id)
    case .chosen: chosen(id)
    case .deep: nodes[id]!.list(.items).reduce(0) { $0 + total($1) }
    }
  }

  func value(_ id: Int, _ key: String) -> String {
    let node = nodes[id]!
    if let key = ListKey(rawValue: key) { return text(node.list(key)) }
    if let key = ReferenceKey(rawValue: key) { return text(node.references[key]) }
    return node.plain.texts.first { $0.key == key }!.text
  }

  func text(_ id: Int?) -> String { id.map { "#\($0)" } ?? "nil" }
  func text(_ ids: [Int]) -> String { "[" + ids.map { "#\($0)" }.joined(separator: " ") + "]" }
}
