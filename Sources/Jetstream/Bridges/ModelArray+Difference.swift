extension ModelArray {
  /// What leads from `old` to this content: removals, insertions, and both, associated, for a model
  /// that has left the order of the others. Cost: O(n log n), O(1) for unchanged copies.
  func netDifference(from old: ModelArray) -> CollectionDifference<Element> {
    var changes: [CollectionDifference<Element>.Change] = []
    guard !list.isIdentical(to: old.list) else { return difference(of: changes) }
    let before = Array(old)
    let after = Array(self)
    var places: [ObjectIdentifier: Int] = [:]
    places.reserveCapacity(after.count)
    for (place, model) in after.enumerated() { places[ObjectIdentifier(model)] = place }
    let targets = before.map { places[ObjectIdentifier($0)] }
    let survivors = targets.compactMap { $0 }
    let inOrder = Set(LongestIncreasing.indices(of: survivors).map { survivors[$0] })
    var origins: [Int: Int] = [:]
    for (place, target) in targets.enumerated() {
      if let target {
        origins[target] = place
        if inOrder.contains(target) { continue }
      }
      changes.append(.remove(offset: place, element: before[place], associatedWith: target))
    }
    for (place, model) in after.enumerated() where !inOrder.contains(place) {
      changes.append(.insert(offset: place, element: model, associatedWith: origins[place]))
    }
    return difference(of: changes)
  }

  private func difference(
    of changes: [CollectionDifference<Element>.Change]
  ) -> CollectionDifference<Element> {
    guard let difference = CollectionDifference(changes) else {
      preconditionFailure("The changes of a ModelArray of \(Element.self) do not fit together.")
    }
    return difference
  }
}
