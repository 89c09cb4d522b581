/// Something that is brought up to date in a tick, before observers are called, and then tells its
/// own observers.
protocol TickEvaluation: AnyObject {
  /// Brings it up to date. No observer has been called in the tick yet.
  func evaluate()
  /// Tells its observers.
  func deliver()
}

/// Writes down how a collection changes, step by step, at the moment at which it does.
///
/// Collection signals would tell the same, but in between callbacks that change the collection again.
final class CollectionJournal {
  let property: Int
  private(set) var operations: [ListOperation] = []
  /// Whether there were so many steps that they were forgotten.
  private(set) var isOverfull = false
  /// More steps than this are forgotten once they are more than the models in the collection.
  private static let capacity = 4096

  init(property: Int) { self.property = property }

  /// Writes steps down, which have left the collection with `count` models.
  func note(_ new: [ListOperation], count: Int) {
    if isOverfull { return }
    operations.append(contentsOf: new)
    if operations.count > max(Self.capacity, count) {
      operations = []
      isOverfull = true
    }
  }

  /// The steps since the last time; nil if they were too many.
  func take() -> [ListOperation]? {
    defer {
      operations = []
      isOverfull = false
    }
    return isOverfull ? nil : operations
  }
}
