/// Keeping the two sides of each node similar in size.
extension OrderTree {
  mutating func update(_ node: Int32) {
    let (left, right) = (nodes[Int(node)].left, nodes[Int(node)].right)
    nodes[Int(node)].count = Int32(size(left) + size(right) + 1)
    nodes[Int(node)].sum = Int32(sum(left) + sum(right)) + nodes[Int(node)].weight
  }

  mutating func replace(_ old: Int32, of parent: Int32, by new: Int32) {
    if parent < 0 {
      root = new
    } else if nodes[Int(parent)].left == old {
      nodes[Int(parent)].left = new
    } else {
      nodes[Int(parent)].right = new
    }
    if new >= 0 { nodes[Int(new)].parent = parent }
  }

  /// Updates the counts from `start` up to the root, and rotates nodes of which one side has become more than three
  /// times as large as the other. With these factors, one insertion or removal never needs more than one rotation,
  /// single or double, at each node.
  mutating func repair(from start: Int32) {
    var node = start
    while node >= 0 {
      update(node)
      let (left, right) = (nodes[Int(node)].left, nodes[Int(node)].right)
      let (leftSize, rightSize) = (size(left) + 1, size(right) + 1)
      if rightSize > 3 * leftSize {
        let (inner, outer) = (nodes[Int(right)].left, nodes[Int(right)].right)
        if size(inner) + 1 >= 2 * (size(outer) + 1) { rotateRight(right) }
        node = rotateLeft(node)
      } else if leftSize > 3 * rightSize {
        let (inner, outer) = (nodes[Int(left)].right, nodes[Int(left)].left)
        if size(inner) + 1 >= 2 * (size(outer) + 1) { rotateLeft(left) }
        node = rotateRight(node)
      }
      node = nodes[Int(node)].parent
    }
  }

  /// Puts the right child of `node` in its place.
  @discardableResult
  private mutating func rotateLeft(_ node: Int32) -> Int32 {
    let top = nodes[Int(node)].right
    let inner = nodes[Int(top)].left
    replace(node, of: nodes[Int(node)].parent, by: top)
    nodes[Int(node)].right = inner
    if inner >= 0 { nodes[Int(inner)].parent = node }
    nodes[Int(top)].left = node
    nodes[Int(node)].parent = top
    update(node)
    update(top)
    return top
  }

  /// Puts the left child of `node` in its place.
  @discardableResult
  private mutating func rotateRight(_ node: Int32) -> Int32 {
    let top = nodes[Int(node)].left
    let inner = nodes[Int(top)].right
    replace(node, of: nodes[Int(node)].parent, by: top)
    nodes[Int(node)].left = inner
    if inner >= 0 { nodes[Int(inner)].parent = node }
    nodes[Int(top)].right = node
    nodes[Int(node)].parent = top
    update(node)
    update(top)
    return top
  }

  /// The number of levels, for tests.
  var depth: Int {
    func depth(_ node: Int32) -> Int {
      node < 0 ? 0 : 1 + max(depth(nodes[Int(node)].left), depth(nodes[Int(node)].right))
    }
    return depth(root)
  }
}
