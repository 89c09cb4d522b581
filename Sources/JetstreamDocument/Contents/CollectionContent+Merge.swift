/// Merging what two sides have made of a collection.
extension CollectionContent {
  /// Returns this content, as one side has it, with the change that leads from `before` to `after` on the other side.
  /// Cost: see ``merge(base:before:after:)``.
  package func merging(
    from before: CollectionContent, to after: CollectionContent
  ) -> CollectionContent {
    CollectionContent(
      Self.merge(base: elements, before: before.elements, after: after.elements))
  }

  /// Merges one side's change of a collection into the other side's current content, for elements of any kind.
  ///
  /// The change from `before` to `after` is taken as removals, insertions and moves, and applied to `base`. A removed
  /// element goes if it is still there. An inserted or moved one follows its nearest predecessor that exists in `base`
  /// or is inserted itself. If everything behind it was inserted or moved too, it goes to the end. If no predecessor
  /// exists, it goes to the front if it was put at the front, otherwise to the end. So it does what
  /// ``operations(to:anchors:)`` do that name all predecessors.
  ///
  /// Cost: O(n log n); O(n) where one side has changed nothing.
  package static func merge<Identity: Hashable>(
    base: [Identity], before: [Identity], after: [Identity]
  ) -> [Identity] {
    if base == before { return after }
    if before == after { return base }
    let beforeSet = Set(before)
    let afterSet = Set(after)
    let steady = steadyElements(from: before, to: after)
    let moved = beforeSet.intersection(afterSet).subtracting(steady)
    let baseSet = Set(base)

    // An element that was moved here but is gone from the base stays gone.
    let placed = Set(
      after.filter { !beforeSet.contains($0) || (moved.contains($0) && baseSet.contains($0)) })
    let remaining = base.filter { element in
      !placed.contains(element) && (afterSet.contains(element) || !beforeSet.contains(element))
    }
    let remainingSet = Set(remaining)

    // Elements to place, by the anchor they follow; nil is the front.
    var following: [Identity?: [Identity]] = [:]
    var atEnd: [Identity] = []
    let lastSteady = after.lastIndex(where: steady.contains) ?? -1
    var anchor: Identity?
    var lostAnchor = false
    for (position, element) in after.enumerated() {
      if placed.contains(element) {
        if position > lastSteady || (anchor == nil && lostAnchor && following[nil] == nil) {
          atEnd.append(element)
        } else {
          following[anchor, default: []].append(element)
        }
      } else if remainingSet.contains(element) {
        anchor = element
      } else {
        lostAnchor = true
      }
    }

    var result: [Identity] = following[nil] ?? []
    result.reserveCapacity(remaining.count + placed.count)
    for element in remaining {
      result.append(element)
      if let next = following[element] { result.append(contentsOf: next) }
    }
    result.append(contentsOf: atEnd)
    return result
  }
}
