import Foundation

/// The offset of a section, and that of a row in it.
struct RowPath: Hashable, Comparable {
  var section: Int
  var item: Int

  var indexPath: IndexPath { [section, item] }

  static func < (a: RowPath, b: RowPath) -> Bool {
    a.section != b.section ? a.section < b.section : a.item < b.item
  }
}

/// A row that enters, leaves, or is put in its place again.
struct QueryStep {
  let slot: Int
  let model: ModelObject
  var wasShown: Bool
  var isShown: Bool
  let isChanged: Bool
  var old = 0
  var new = 0
  var oldSection = -1
  var newSection = -1
  var oldPath = RowPath(section: 0, item: 0)
  var newPath = RowPath(section: 0, item: 0)
  /// True if the row keeps its position relative to the other rows.
  var stays = false
}

/// The changes of a query's rows in one tick.
struct QueryChange {
  /// The rows that have left or moved, by their old offsets, and those that have entered or moved, by their new
  /// offsets. A row that has moved also has its other offset.
  var removals: [(offset: Int, model: ModelObject, other: Int?)] = []
  var insertions: [(offset: Int, model: ModelObject, other: Int?)] = []
  var updated: [Int]
  /// The number of this change of the query. An observer is called for changes after its registration.
  var version = 0
  // Only with sections.
  var deletedSections: [Int] = []
  var insertedSections: [Int] = []
  var deleted: [RowPath] = []
  var inserted: [RowPath] = []
  var moved: [(from: RowPath, to: RowPath)] = []
  var updatedPaths: [RowPath] = []

  /// True if the rows are others than before, or stand in another order.
  var movesRows: Bool { !removals.isEmpty || !insertions.isEmpty }
}

/// Finds the difference between the rows before and after the steps of a tick, in O(k log n) for k steps: rows
/// without a step keep their order among each other.
struct QueryChangeBuilder {
  /// The old offsets of the sections from which rows are removed.
  private var oldSections: [Int: Int] = [:]

  /// Notes the old positions. Called before the first row is removed.
  mutating func noteOld(
    _ steps: inout [QueryStep], _ shown: OrderTree, _ sections: SectionRows?
  ) {
    for index in steps.indices where steps[index].wasShown {
      steps[index].old = shown.rank(of: steps[index].slot)
      guard let sections else { continue }
      let section = sections.section(of: steps[index].slot)
      steps[index].oldSection = section
      steps[index].oldPath = sections.path(rank: steps[index].old, in: section)
      oldSections[section] = steps[index].oldPath.section
    }
  }

  /// Returns the change after all rows are in place; nil if there is no difference.
  ///
  /// - Parameter emptied: the sections that were removed.
  func change(
    _ steps: inout [QueryStep], _ changedInPlace: [Int], _ shown: OrderTree,
    _ sections: SectionRows?, emptied: Set<Int>
  ) -> QueryChange? {
    for index in steps.indices where steps[index].isShown {
      steps[index].new = shown.rank(of: steps[index].slot)
      guard let sections else { continue }
      steps[index].newSection = sections.section(of: steps[index].slot)
      steps[index].newPath = sections.path(rank: steps[index].new, in: steps[index].newSection)
    }
    findStaying(&steps)
    var result = QueryChange(updated: changedInPlace.map { shown.rank(of: $0) })
    for step in steps {
      if step.stays {
        if step.isChanged { result.updated.append(step.new) }
        continue
      }
      if step.wasShown {
        result.removals.append((step.old, step.model, step.isShown ? step.new : nil))
      }
      if step.isShown {
        result.insertions.append((step.new, step.model, step.wasShown ? step.old : nil))
      }
    }
    if result.removals.isEmpty, result.insertions.isEmpty, result.updated.isEmpty { return nil }
    result.updated.sort()
    if let sections { addPaths(to: &result, steps, shown, sections, emptied) }
    return result
  }

  /// Marks as many of the rows that are put in their place again as possible as staying: rows that have as many
  /// rows without a step in front of them as before, and that keep their order among each other.
  private func findStaying(_ steps: inout [QueryStep]) {
    let removed = steps.compactMap { $0.wasShown ? $0.old : nil }.sorted()
    let inserted = steps.compactMap { $0.isShown ? $0.new : nil }.sorted()
    var candidates = steps.indices.filter {
      let step = steps[$0]
      guard step.wasShown, step.isShown, step.oldSection == step.newSection else { return false }
      return step.old - removed.rank(of: step.old) == step.new - inserted.rank(of: step.new)
    }
    candidates.sort { steps[$0].old < steps[$1].old }
    for index in LongestIncreasing.indices(of: candidates.map { steps[$0].new }) {
      steps[candidates[index]].stays = true
    }
  }

  private func addPaths(
    to result: inout QueryChange, _ steps: [QueryStep], _ shown: OrderTree,
    _ sections: SectionRows, _ emptied: Set<Int>
  ) {
    result.deletedSections = emptied.compactMap { oldSections[$0] }.sorted()
    var newcomers: Set<Int> = []
    for step in steps where step.isShown && sections.isNew(step.newSection) {
      newcomers.insert(step.newSection)
    }
    result.insertedSections = newcomers.map { sections.tree.rank(of: $0) }.sorted()
    for step in steps where !step.stays {
      // The rows of a section that is removed or inserted are not named themselves.
      let goes = step.wasShown && !emptied.contains(step.oldSection)
      let comes = step.isShown && !newcomers.contains(step.newSection)
      if goes, comes {
        result.moved.append((step.oldPath, step.newPath))
      } else if goes {
        result.deleted.append(step.oldPath)
      } else if comes {
        result.inserted.append(step.newPath)
      }
    }
    result.deleted.sort()
    result.inserted.sort()
    result.moved.sort { $0.to < $1.to }
    result.updatedPaths = result.updated.map {
      sections.path(rank: $0, in: sections.section(of: shown[$0]))
    }
  }
}

extension QueryChange {
  /// Returns the change as a difference of the rows of a query of `Model`. Cost: O(k log k).
  func difference<Model: ModelObject>(as type: Model.Type) -> CollectionDifference<Model> {
    var changes: [CollectionDifference<Model>.Change] = []
    changes.reserveCapacity(removals.count + insertions.count)
    for (offset, model, other) in removals {
      changes.append(
        .remove(offset: offset, element: Query<Model>.row(model), associatedWith: other))
    }
    for (offset, model, other) in insertions {
      changes.append(
        .insert(offset: offset, element: Query<Model>.row(model), associatedWith: other))
    }
    guard let difference = CollectionDifference(changes) else {
      preconditionFailure("A live query has lost the order of its rows.")
    }
    return difference
  }
}
