/// The change sets of a scope that a server has not decided, in the order in which they were made.
///
/// They are visible in the scope, and sent until they are decided. A scope that no client syncs has none.
/// Belongs to the isolation domain of its scope.
package final class PendingChangeSets {
  /// Fires when a set has come.
  package let onAdd = Signal<ChangeSetHandle>()
  /// Fires when a set's state has become final, after ``ChangeSetHandle/onStateChange``.
  package let onStateChange = Signal<ChangeSetHandle>()
  /// Fires when a set has left, which it does as soon as its state is final.
  package let onRemove = Signal<ChangeSetHandle>()

  /// What becomes of each of them. Cost: O(n).
  package var handles: [ChangeSetHandle] { Array(queue[first...]) }

  /// How many there are.
  package var count: Int { queue.count - first }

  private var queue: [ChangeSetHandle] = []
  /// Where the queue begins: what is decided first has mostly come first.
  private var first = 0

  /// Adds a set at the end, or in front of `next`, which was made later and is pending already.
  func add(_ handle: ChangeSetHandle, before next: ChangeSetHandle? = nil) {
    if handle.isPending || handle.state.isFinal { return }
    handle.isPending = true
    let place = next.flatMap { next in queue[first...].firstIndex { $0 === next } }
    queue.insert(handle, at: place ?? queue.endIndex)
    onAdd.fire(handle)
  }

  /// The state of a set becomes final through `decision`. Where several clients sync the scope, the first
  /// decision is the one.
  func finish(_ handle: ChangeSetHandle, _ decision: (ChangeSetHandle) -> Void) {
    if handle.state.isFinal { return }
    remove(handle)
    decision(handle)
    onStateChange.fire(handle)
    onRemove.fire(handle)
  }

  private func remove(_ handle: ChangeSetHandle) {
    guard handle.isPending else { return }
    handle.isPending = false
    guard queue[first] === handle else { return removeLater(handle) }
    first += 1
    if first * 2 > queue.count {
      queue.removeFirst(first)
      first = 0
    }
  }

  private func removeLater(_ handle: ChangeSetHandle) {
    guard let at = queue[first...].firstIndex(where: { $0 === handle }) else { return }
    queue.remove(at: at)
  }
}
