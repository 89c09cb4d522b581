import Foundation

/// The elements of a collection, linked to each other: each operation costs O(1), whatever their number.
///
/// It takes the place of an array while many operations are applied.
struct LinkedElements {
  private struct Node {
    var previous: Int
    var next: Int
    /// False for a model that is not among the elements, or not any more.
    var isLinked = true
  }

  /// The models that are or were elements. The node behind that of each one has its links.
  private var models: UUIDList
  /// The first node stands in front of the first element, and behind the last.
  private var nodes: [Node]

  /// Links elements; nil if one of them occurs twice. Cost: O(n).
  init?(_ elements: [UUID], reserving more: Int) {
    nodes = [Node(previous: elements.count, next: elements.isEmpty ? 0 : 1)]
    nodes.reserveCapacity(1 + elements.count + more)
    models = UUIDList(capacity: elements.count + more)
    for (at, uuid) in elements.enumerated() {
      guard models.insert(uuid).inserted else { return nil }
      nodes.append(Node(previous: at, next: at + 1 < elements.count ? at + 2 : 0))
    }
  }

  /// The elements, in order. Cost: O(n).
  var elements: [UUID] {
    var result: [UUID] = []
    result.reserveCapacity(models.count)
    var at = nodes[0].next
    while at != 0 {
      result.append(models.elements[at - 1])
      at = nodes[at].next
    }
    return result
  }

  /// Applies an operation, as ``CollectionContent/apply(_:)-(PropertyOperation)`` does.
  mutating func apply(_ operation: PropertyOperation) {
    switch operation {
    case .insert(let uuid, let place):
      let (isNew, index) = models.insert(uuid)
      if isNew {
        nodes.append(Node(previous: 0, next: 0, isLinked: false))
      } else {
        unlink(index + 1)
      }
      link(index + 1, place)
    case .remove(let uuid): if let at = node(of: uuid) { unlink(at) }
    case .move(let uuid, let place):
      guard let at = node(of: uuid) else { return }
      unlink(at)
      link(at, place)
    case .add: return
    }
  }

  /// Returns the node of an element; nil if there is no such element.
  private func node(of uuid: UUID) -> Int? {
    guard let index = models.index(of: uuid), nodes[index + 1].isLinked else { return nil }
    return index + 1
  }

  private mutating func unlink(_ at: Int) {
    guard nodes[at].isLinked else { return }
    let (previous, next) = (nodes[at].previous, nodes[at].next)
    nodes[previous].next = next
    nodes[next].previous = previous
    nodes[at].isLinked = false
  }

  private mutating func link(_ at: Int, _ place: PropertyOperation.Place) {
    let previous = node(before: place)
    let next = nodes[previous].next
    nodes[at] = Node(previous: previous, next: next)
    nodes[previous].next = at
    nodes[next].previous = at
  }

  private func node(before place: PropertyOperation.Place) -> Int {
    switch place {
    case .start: return 0
    case .end: return nodes[0].previous
    case .after(let others):
      for other in others {
        if let at = node(of: other) { return at }
      }
      return nodes[0].previous
    }
  }
}
