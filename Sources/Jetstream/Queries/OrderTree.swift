/// An ordered sequence of small integers, the slots of some table, that finds the position of each slot.
///
/// A weight-balanced tree whose nodes are in one array, at the index of their slot. Its depth is at most about 2.4
/// log2 n, so each operation is O(log n). Each node has a weight, of which sums are kept as well: the number of
/// rows of a section, or 1 for a row that is shown and 0 for one that is not.
///
/// It is a value; changing a copy that shares the array copies it. A slot is removed without comparing anything, so
/// keys that have changed meanwhile do no harm.
struct OrderTree {
  struct Node {
    var left: Int32 = -1
    var right: Int32 = -1
    var parent: Int32 = -1
    /// The size of the subtree, this node included; 0 for a slot that is not in the tree.
    var count: Int32 = 0
    var weight: Int32 = 0
    /// The weights of the subtree, this node's included.
    var sum: Int32 = 0
  }

  var nodes: ContiguousArray<Node> = []
  var root: Int32 = -1

  /// The number of slots in the sequence.
  var count: Int { size(root) }

  /// The sum of all weights.
  var totalWeight: Int { root < 0 ? 0 : Int(nodes[Int(root)].sum) }

  func contains(_ slot: Int) -> Bool { slot < nodes.count && nodes[slot].count > 0 }

  func weight(of slot: Int) -> Int { Int(nodes[slot].weight) }

  // MARK: Looking up

  /// The slot at `position`.
  subscript(position: Int) -> Int {
    precondition(
      position >= 0 && position < count, "Index \(position) is out of range of \(count) rows.")
    var node = root
    var rest = position
    while true {
      let left = nodes[Int(node)].left
      let before = size(left)
      if rest < before {
        node = left
      } else if rest == before {
        return Int(node)
      } else {
        rest -= before + 1
        node = nodes[Int(node)].right
      }
    }
  }

  /// Returns the position of `slot`.
  func rank(of slot: Int) -> Int {
    var node = Int32(slot)
    var result = size(nodes[slot].left)
    while true {
      let parent = nodes[Int(node)].parent
      if parent < 0 { return result }
      if nodes[Int(parent)].right == node { result += size(nodes[Int(parent)].left) + 1 }
      node = parent
    }
  }

  /// Returns the sum of the weights in front of `slot`.
  func weight(before slot: Int) -> Int {
    var node = Int32(slot)
    var result = sum(nodes[slot].left)
    while true {
      let parent = nodes[Int(node)].parent
      if parent < 0 { return result }
      if nodes[Int(parent)].right == node {
        result += sum(nodes[Int(parent)].left) + Int(nodes[Int(parent)].weight)
      }
      node = parent
    }
  }

  /// Returns the slot whose weight covers `position` in the sum of all weights.
  func slot(atWeight position: Int) -> Int {
    var node = root
    var rest = position
    while true {
      let before = sum(nodes[Int(node)].left)
      let own = Int(nodes[Int(node)].weight)
      if rest < before {
        node = nodes[Int(node)].left
      } else if rest < before + own {
        return Int(node)
      } else {
        rest -= before + own
        node = nodes[Int(node)].right
      }
    }
  }

  /// The first slot; nil if there is none. Walking over all slots with ``next(after:)`` costs O(n).
  var first: Int? { root < 0 ? nil : leftmost(below: root) }

  func next(after slot: Int) -> Int? {
    let right = nodes[slot].right
    if right >= 0 { return leftmost(below: right) }
    var node = Int32(slot)
    var parent = nodes[slot].parent
    while parent >= 0, nodes[Int(parent)].right == node {
      node = parent
      parent = nodes[Int(node)].parent
    }
    return parent < 0 ? nil : Int(parent)
  }

  /// All slots in order. Cost: O(n).
  var slots: ContiguousArray<Int> {
    var result: ContiguousArray<Int> = []
    result.reserveCapacity(count)
    var slot = first
    while let here = slot {
      result.append(here)
      slot = next(after: here)
    }
    return result
  }

  /// Returns the slot for which `direction` returns 0: it compares the wanted key with that of a slot.
  func find(_ direction: (Int) -> Int) -> Int? {
    var node = root
    while node >= 0 {
      let way = direction(Int(node))
      if way == 0 { return Int(node) }
      node = way < 0 ? nodes[Int(node)].left : nodes[Int(node)].right
    }
    return nil
  }

  private func leftmost(below node: Int32) -> Int {
    var node = node
    while nodes[Int(node)].left >= 0 { node = nodes[Int(node)].left }
    return Int(node)
  }

  func size(_ node: Int32) -> Int { node < 0 ? 0 : Int(nodes[Int(node)].count) }
  func sum(_ node: Int32) -> Int { node < 0 ? 0 : Int(nodes[Int(node)].sum) }

  // MARK: Changing

  /// Inserts `slot` at `position`.
  mutating func insert(_ slot: Int, weight: Int = 1, at position: Int) {
    var rest = position
    var parent: Int32 = -1
    var goesLeft = false
    var node = root
    while node >= 0 {
      parent = node
      let before = size(nodes[Int(node)].left)
      goesLeft = rest <= before
      if !goesLeft { rest -= before + 1 }
      node = goesLeft ? nodes[Int(node)].left : nodes[Int(node)].right
    }
    link(slot, weight, below: parent, goesLeft)
  }

  /// Inserts `slot` in front of the first slot for which `isBefore` is true: it returns true if the new slot comes
  /// before another one. Cost: O(log n) comparisons.
  mutating func insert(_ slot: Int, weight: Int = 1, isBefore: (Int) -> Bool) {
    var parent: Int32 = -1
    var goesLeft = false
    var node = root
    while node >= 0 {
      parent = node
      goesLeft = isBefore(Int(node))
      node = goesLeft ? nodes[Int(node)].left : nodes[Int(node)].right
    }
    link(slot, weight, below: parent, goesLeft)
  }

  private mutating func link(_ slot: Int, _ weight: Int, below parent: Int32, _ goesLeft: Bool) {
    makeRoom(for: slot)
    precondition(nodes[slot].count == 0, "A row stands in an order twice.")
    let weight = Int32(weight)
    nodes[slot] = Node(parent: parent, count: 1, weight: weight, sum: weight)
    if parent < 0 {
      root = Int32(slot)
    } else if goesLeft {
      nodes[Int(parent)].left = Int32(slot)
    } else {
      nodes[Int(parent)].right = Int32(slot)
    }
    repair(from: parent)
  }

  /// Removes `slot`.
  mutating func remove(_ slot: Int) {
    let node = nodes[slot]
    nodes[slot] = Node()
    let start: Int32
    if node.left >= 0, node.right >= 0 {
      // The next slot takes its place.
      let heir = Int32(leftmost(below: node.right))
      let heirParent = nodes[Int(heir)].parent
      if heirParent == Int32(slot) {
        start = heir
      } else {
        let below = nodes[Int(heir)].right
        nodes[Int(heirParent)].left = below
        if below >= 0 { nodes[Int(below)].parent = heirParent }
        nodes[Int(heir)].right = node.right
        nodes[Int(node.right)].parent = heir
        start = heirParent
      }
      nodes[Int(heir)].left = node.left
      nodes[Int(node.left)].parent = heir
      replace(Int32(slot), of: node.parent, by: heir)
    } else {
      replace(Int32(slot), of: node.parent, by: max(node.left, node.right))
      start = node.parent
    }
    repair(from: start)
  }

  /// Changes the weight of a slot.
  mutating func setWeight(_ weight: Int, of slot: Int) {
    let delta = Int32(weight) - nodes[slot].weight
    if delta == 0 { return }
    nodes[slot].weight = Int32(weight)
    var node = Int32(slot)
    while node >= 0 {
      nodes[Int(node)].sum += delta
      node = nodes[Int(node)].parent
    }
  }

  /// Replaces the sequence by `slots`, each with the weight that `weight` returns. Cost: O(n).
  mutating func rebuild(
    _ slots: some RandomAccessCollection<Int>, weight: (Int) -> Int = { _ in 1 }
  ) {
    nodes = ContiguousArray(repeating: Node(), count: max(nodes.count, (slots.max() ?? -1) + 1))
    root = build(ContiguousArray(slots), 0, slots.count, weight)
    if root >= 0 { nodes[Int(root)].parent = -1 }
  }

  private mutating func build(
    _ slots: ContiguousArray<Int>, _ low: Int, _ high: Int, _ weight: (Int) -> Int
  ) -> Int32 {
    if low == high { return -1 }
    let middle = (low + high) / 2
    let slot = slots[middle]
    let left = build(slots, low, middle, weight)
    let right = build(slots, middle + 1, high, weight)
    nodes[slot] = Node(left: left, right: right, weight: Int32(weight(slot)))
    if left >= 0 { nodes[Int(left)].parent = Int32(slot) }
    if right >= 0 { nodes[Int(right)].parent = Int32(slot) }
    update(Int32(slot))
    return Int32(slot)
  }

  private mutating func makeRoom(for slot: Int) {
    while nodes.count <= slot { nodes.append(Node()) }
  }
}
