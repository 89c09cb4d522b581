/// A change set that the server has not decided. Shared by all clients that sync its scope.
final class PendingChangeSet {
  var changeSet: ChangeSet
  /// The number of clients that may decide the change set.
  var claims = 0
  /// True while the change set is in ``PendingChangeSets``.
  fileprivate(set) var isPending = false
  fileprivate var isDecided = false
  /// The handle, if `modify` or the app has one.
  private(set) var madeHandle: ChangeSetHandle?

  init(_ changeSet: ChangeSet, handle: ChangeSetHandle? = nil) {
    self.changeSet = changeSet
    madeHandle = handle
  }

  /// True once the change set is decided, or will never be.
  var isFinal: Bool { isDecided || madeHandle?.state.isFinal == true }

  /// The handle through which the app follows the change set, made when it is first asked for.
  var handle: ChangeSetHandle {
    let handle = madeHandle ?? ChangeSetHandle(changeSet)
    madeHandle = handle
    return handle
  }
}

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
  package var handles: [ChangeSetHandle] { queue[first...].map(\.handle) }

  /// The number of pending change sets.
  package var count: Int { queue.count - first }

  private var queue: [PendingChangeSet] = []
  /// The index of the oldest pending change set in the queue. They are mostly decided in order, so removing one
  /// mostly only advances this index.
  private var first = 0

  /// Adds a change set at the end, or in front of `next`, which was made later and is pending already.
  func add(_ set: PendingChangeSet, before next: PendingChangeSet? = nil) {
    if set.isPending || set.isFinal { return }
    set.isPending = true
    let place = next.flatMap { next in queue[first...].firstIndex { $0 === next } }
    queue.insert(set, at: place ?? queue.endIndex)
    if onAdd.hasListeners { onAdd.fire(set.handle) }
  }

  /// Makes the state of a change set final by calling `decision` with its handle, if anything can observe that. If
  /// several clients sync the scope, only the first decision counts.
  func finish(_ set: PendingChangeSet, _ decision: (ChangeSetHandle) -> Void) {
    if set.isFinal { return }
    set.isDecided = true
    remove(set)
    guard set.madeHandle != nil || onStateChange.hasListeners || onRemove.hasListeners else {
      return
    }
    decision(set.handle)
    onStateChange.fire(set.handle)
    onRemove.fire(set.handle)
  }

  private func remove(_ set: PendingChangeSet) {
    guard set.isPending else { return }
    set.isPending = false
    guard queue[first] === set else { return removeLater(set) }
    first += 1
    if first * 2 > queue.count {
      queue.removeFirst(first)
      first = 0
    }
  }

  private func removeLater(_ set: PendingChangeSet) {
    guard let at = queue[first...].firstIndex(where: { $0 === set }) else { return }
    queue.remove(at: at)
  }
}
