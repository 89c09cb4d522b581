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

/// A row that comes, goes, or is put in its place again.
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
  /// Whether it stands where it stood, as far as the other rows are concerned.
  var stays = false
}

/// What a tick has done to the rows of a query.
struct QueryChange {
  /// The rows that have gone or moved, by their old offsets, and that have come or moved, by their new
  /// ones; with the other offset where they have moved.
  var removals: [(offset: Int, model: ModelObject, other: Int?)] = []
  var insertions: [(offset: Int, model: ModelObject, other: Int?)] = []
  var updated: [Int]
  /// Which change of the query it is. An observer is told about changes after its registration.
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

/// Finds the difference between the rows before and after the steps of a tick, in O(k log n) for k
/// steps: rows that no step concerns stand among each other as before.
struct QueryChangeBuilder {
  /// Where the sections stood of which rows are taken.
  private var oldSections: [Int: Int] = [:]

  /// Before the first row is taken out.
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

  /// After all rows are in place. Nil if nothing is different. `emptied` are the sections that have
  /// gone.
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

  /// Of the rows that are put in their place again, keeps as many as can stay, beside the rows that no
  /// step concerns: those with as many of these in front of them as before, and in order among
  /// themselves.
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
      // Rows of a section that goes or comes do so with it.
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
  /// The difference of the rows of a query of `Model`. Cost: O(k log k).
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
