import Foundation

/// The content of a collection: models by their UUIDs, in order, each at most once.
///
/// All that operations do to a collection stands in this file and its neighbours: how they are applied and taken back
/// (here), made from two contents (`+Difference`), and merged with what others have done (`+Merge`).
package struct CollectionContent: Sendable, Hashable {
  /// The models, in order.
  package private(set) var elements: [UUID]

  /// Makes a collection of different models.
  package init(_ elements: [UUID] = []) { self.elements = elements }

  /// Reads an array of UUIDs in either case; nil for any other JSON.
  package init?(_ json: JSONValue) { self.init(json, isExact: false) }

  /// Reads an array of UUIDs that are written as they would be written again; nil for any other JSON.
  package init?(exactly json: JSONValue) { self.init(json, isExact: true) }

  private init?(_ json: JSONValue, isExact: Bool) {
    guard case .array(let values) = json else { return nil }
    elements = []
    elements.reserveCapacity(values.count)
    for value in values {
      guard case .string(let text) = value, let uuid = UUID(wireText: text),
        !isExact || uuid.wireText == text
      else { return nil }
      elements.append(uuid)
    }
  }

  /// The UUIDs as an array.
  package var json: JSONValue { .array(elements.map { .string($0.wireText) }) }

  /// The number of predecessors that an operation names to say where its model goes. More than one, since another
  /// replica may have removed the nearest one meanwhile.
  package static let anchorCount = 3

  /// Applies an operation. One on a number has no effect. Cost: O(n).
  package mutating func apply(_ operation: PropertyOperation) {
    switch operation {
    case .insert(let uuid, let place):
      elements.removeAll { $0 == uuid }
      elements.insert(uuid, at: position(of: place))
    case .remove(let uuid): elements.removeAll { $0 == uuid }
    case .move(let uuid, let place):
      guard let at = elements.firstIndex(of: uuid) else { return }
      elements.remove(at: at)
      elements.insert(uuid, at: position(of: place))
    case .add: return
    }
  }

  /// The number of operations, and of models, up to which each is looked for among the elements. For more of them, all
  /// elements are hashed once.
  private static let few = 32

  /// Applies operations, one after the other. Cost: O(n) for all of them, and O(1) for each.
  package mutating func apply(_ operations: [PropertyOperation]) {
    guard operations.count > Self.few,
      var linked = LinkedElements(elements, reserving: operations.count)
    else {
      for operation in operations { apply(operation) }
      return
    }
    for operation in operations { linked.apply(operation) }
    elements = linked.elements
  }

  /// Returns the number of elements that are compared when a number of operations is applied: all of them for each, and
  /// no more than hashing all takes.
  package func comparisons(byApplying operations: Int) -> Int {
    elements.count * min(operations, Self.few)
  }

  /// Returns the operation that takes `operation` back right after it was applied to this content; nil if it has no
  /// effect. Cost: O(n).
  package func inverse(of operation: PropertyOperation) -> PropertyOperation? {
    guard let uuid = operation.model else { return nil }
    var after = self
    after.apply(operation)
    if after == self { return nil }
    guard let at = elements.firstIndex(of: uuid) else { return .remove(uuid) }
    let place = place(ofElementAt: at)
    if case .remove = operation { return .insert(uuid, place) }
    return .move(uuid, place)
  }

  /// Returns the operation with the place that it has in this content: behind its nearest predecessors, or in front. A
  /// replica with the same content gets the same result from it. Nil if the operation has no effect. Cost: O(n).
  package func anchored(_ operation: PropertyOperation) -> PropertyOperation? {
    guard let uuid = operation.model else { return nil }
    var after = self
    after.apply(operation)
    if after == self { return nil }
    guard let at = after.elements.firstIndex(of: uuid) else { return operation }
    let place = after.place(ofElementAt: at)
    return elements.contains(uuid) ? .move(uuid, place) : .insert(uuid, place)
  }

  /// The place of an element, by its predecessors.
  package func place(ofElementAt index: Int) -> PropertyOperation.Place {
    if index == 0 { return .start }
    return .after(elements[max(0, index - Self.anchorCount)..<index].reversed())
  }

  /// Returns the indices of those of `models` that are elements, in order. Cost: O(n).
  package func indices(of models: Set<UUID>) -> [Int] {
    // A search compares 16 bytes, which takes less time than hashing them.
    models.count <= Self.few
      ? models.compactMap { elements.firstIndex(of: $0) }.sorted()
      : elements.indices.filter { models.contains(elements[$0]) }
  }

  private func position(of place: PropertyOperation.Place) -> Int {
    switch place {
    case .start: return 0
    case .end: return elements.count
    case .after(let others):
      for other in others {
        if let at = elements.firstIndex(of: other) { return at + 1 }
      }
      return elements.count
    }
  }
}
