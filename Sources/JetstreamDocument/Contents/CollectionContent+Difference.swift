import Foundation

/// Making operations from two contents of a collection.
extension CollectionContent {
  /// Returns the operations that lead from this content to `new`: removals, then insertions and moves from front to
  /// back. Elements whose order is the same in both stay where they are. Cost: O(n log n).
  ///
  /// Composes as well: the difference to the content after some operations is as short as they can be.
  ///
  /// - Parameter anchors: the number of predecessors that say where an element goes.
  package func operations(
    to new: CollectionContent, anchors: Int = anchorCount
  ) -> [PropertyOperation] {
    if self == new { return [] }
    let steady = Self.steadyElements(from: elements, to: new.elements)
    let (before, after) = (Set(elements), Set(new.elements))
    var result = elements.filter { !after.contains($0) }.map { PropertyOperation.remove($0) }
    let lastSteady = new.elements.lastIndex(where: steady.contains) ?? -1
    for (index, uuid) in new.elements.enumerated() where !steady.contains(uuid) {
      let place: PropertyOperation.Place =
        if index > lastSteady { .end } else if index == 0 { .start } else {
          .after(new.elements[max(0, index - anchors)..<index].reversed())
        }
      result.append(before.contains(uuid) ? .move(uuid, place) : .insert(uuid, place))
    }
    return result
  }

  /// Returns the elements that both lists have, without those that are to be moved: as few as possible.
  static func steadyElements<Identity: Hashable>(
    from old: [Identity], to new: [Identity]
  ) -> Set<Identity> {
    let places = Dictionary(
      new.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    let common = old.filter { places[$0] != nil }
    let order = common.map { places[$0]! }
    return Set(LongestIncreasing.indices(of: order).map { common[$0] })
  }
}
