/// The change sets of a scope that the server has not decided, in the order in which they were made.
///
/// They are visible in the scope, and sent until they are decided. A scope that no client syncs has none. Belongs
/// to the isolation domain of its scope.
package final class PendingChangeSets {
  /// Fires when a change set becomes pending.
  package let onAdd = Signal<ChangeSetHandle>()
  /// Fires when the state of a change set has become final, after ``ChangeSetHandle/onStateChange``.
  package let onStateChange = Signal<ChangeSetHandle>()
  /// Fires after ``onStateChange``, when the change set is no longer pending.
  package let onRemove = Signal<ChangeSetHandle>()

  /// The handles of the pending change sets. Cost: O(n).
  package var handles: [ChangeSetHandle] { Array(queue[first...]) }

  /// The number of pending change sets.
  package var count: Int { queue.count - first }

  private var queue: [ChangeSetHandle] = []
  /// The index of the oldest pending handle in the queue. Change sets are mostly decided in order, so removing one
  /// mostly only advances this index.
  private var first = 0

  /// Adds a change set at the end, or in front of `next`, which was made later and is pending already.
  func add(_ handle: ChangeSetHandle, before next: ChangeSetHandle? = nil) {
    if handle.isPending || handle.state.isFinal { return }
    handle.isPending = true
    let place = next.flatMap { next in queue[first...].firstIndex { $0 === next } }
    queue.insert(handle, at: place ?? queue.endIndex)
    onAdd.fire(handle)
  }

  /// Makes the state of a change set final by calling `decision`. If several clients sync the scope, only the first
  /// decision counts.
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
