/// The change sets of a scope that a server has not decided, in the order in which they were made.
///
/// They are visible in the scope, and sent until they are decided. A scope that no client syncs has none.
/// Belongs to the isolation domain of its scope.
public final class PendingChangeSets {
  /// Fires when a set has come.
  public let onAdd = Signal<ChangeSetHandle>()
  /// Fires when a set's state has become final, after ``ChangeSetHandle/onStateChange``.
  public let onStateChange = Signal<ChangeSetHandle>()
  /// Fires when a set has left, which it does as soon as its state is final.
  public let onRemove = Signal<ChangeSetHandle>()

  /// What becomes of each of them.
  public private(set) var handles: [ChangeSetHandle] = []

  /// How many there are.
  public var count: Int { handles.count }

  func add(_ handle: ChangeSetHandle) {
    if handles.contains(where: { $0 === handle }) { return }
    handles.append(handle)
    onAdd.fire(handle)
  }

  /// The state of a set becomes final through `decision`. Where several clients sync the scope, the first
  /// decision is the one.
  func finish(_ handle: ChangeSetHandle, _ decision: (ChangeSetHandle) -> Void) {
    if handle.state.isFinal { return }
    handles.removeAll { $0 === handle }
    decision(handle)
    onStateChange.fire(handle)
    onRemove.fire(handle)
  }
}
