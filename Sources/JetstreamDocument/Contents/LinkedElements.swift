import Foundation

/// The elements of a collection, linked to each other: each operation costs O(1), whatever their number.
///
/// It takes the place of an array while many operations are applied.
struct LinkedElements {
  private struct Node {
    let model: UUID
    var previous: Int
    var next: Int
  }

  /// The nodes, also of elements that are gone. The first one stands in front of the first element, and behind the last.
  private var nodes: [Node]
  private var indices: [UUID: Int]

  /// Links elements; nil if one of them occurs twice. Cost: O(n).
  init?(_ elements: [UUID], reserving more: Int) {
    nodes = [Node(model: UUID(), previous: elements.count, next: elements.isEmpty ? 0 : 1)]
    nodes.reserveCapacity(1 + elements.count + more)
    indices = [:]
    indices.reserveCapacity(elements.count + more)
    for (at, uuid) in elements.enumerated() {
      guard indices.updateValue(at + 1, forKey: uuid) == nil else { return nil }
      nodes.append(Node(model: uuid, previous: at, next: at + 1 < elements.count ? at + 2 : 0))
    }
  }

  /// The elements, in order. Cost: O(n).
  var elements: [UUID] {
    var result: [UUID] = []
    result.reserveCapacity(indices.count)
    var at = nodes[0].next
    while at != 0 {
      result.append(nodes[at].model)
      at = nodes[at].next
    }
    return result
  }

  /// Applies an operation, as ``CollectionContent/apply(_:)-(PropertyOperation)`` does.
  mutating func apply(_ operation: PropertyOperation) {
    switch operation {
    case .insert(let uuid, let place):
      remove(uuid)
      insert(uuid, place)
    case .remove(let uuid): remove(uuid)
    case .move(let uuid, let place): if remove(uuid) { insert(uuid, place) }
    case .add: return
    }
  }

  /// Returns false if there is no such element.
  @discardableResult
  private mutating func remove(_ uuid: UUID) -> Bool {
    guard let at = indices.removeValue(forKey: uuid) else { return false }
    let node = nodes[at]
    nodes[node.previous].next = node.next
    nodes[node.next].previous = node.previous
    return true
  }

  private mutating func insert(_ uuid: UUID, _ place: PropertyOperation.Place) {
    let previous = index(before: place)
    let next = nodes[previous].next
    let at = nodes.count
    nodes.append(Node(model: uuid, previous: previous, next: next))
    nodes[previous].next = at
    nodes[next].previous = at
    indices[uuid] = at
  }

  private func index(before place: PropertyOperation.Place) -> Int {
    switch place {
    case .start: return 0
    case .end: return nodes[0].previous
    case .after(let others):
      for other in others {
        if let at = indices[other] { return at }
      }
      return nodes[0].previous
    }
  }
}
