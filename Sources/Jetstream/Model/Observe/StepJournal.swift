/// Records the changes of a collection since an observer of its differences was last notified.
final class StepJournal {
  /// The index of the collection property.
  let index: Int
  private var steps: ContiguousArray<ListOperation> = []
  /// The content at that time; replaces the steps once there are too many of them.
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

  /// Returns the difference from the content at the previous call to `now`, and starts anew from
  /// `now`.
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

  /// Returns the steps from the content at the previous call to `now`, and starts anew from `now`.
  func takeSteps(now: ModelList) -> [ListOperation] {
    defer { forget() }
    return old.map { ListDifference.operations(from: $0, to: now) } ?? Array(steps)
  }

  /// Starts anew from the current content.
  func forget() {
    steps = []
    old = nil
  }
}
