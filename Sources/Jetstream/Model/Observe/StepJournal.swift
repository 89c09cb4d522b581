/// What has happened to a collection since an observer of its differences was last told.
final class StepJournal {
  /// The property.
  let index: Int
  private var steps: ContiguousArray<ListOperation> = []
  /// The content as it was then, once the steps are more than is worth keeping.
  private var old: ModelList?

  init(index: Int) { self.index = index }

  func note(_ operations: [ListOperation], now: @autoclosure () -> ModelList) {
    guard old == nil else { return }
    steps.append(contentsOf: operations)
    guard steps.count > 4096 else { return }
    let now = now()
    guard steps.count / 2 > now.count else { return }
    old = steps.undone(on: now)
    steps = []
  }

  /// The difference from the content at the last call to `now`, from which the next one is counted.
  func take<Element>(now: ModelList, as type: Element.Type) -> CollectionDifference<Element> {
    let composition =
      if let old {
        StepComposition(ListDifference.operations(from: old, to: now), newCount: now.count)
      } else {
        StepComposition(steps, newCount: now.count)
      }
    forget()
    return composition.difference { now[$0] }
  }

  /// The steps from the content at the last call to `now`, from which the next ones are counted.
  func takeSteps(now: ModelList) -> [ListOperation] {
    defer { forget() }
    return old.map { ListDifference.operations(from: $0, to: now) } ?? Array(steps)
  }

  /// Counts from the present content on.
  func forget() {
    steps = []
    old = nil
  }
}
