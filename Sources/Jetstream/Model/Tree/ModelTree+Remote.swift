import CJetstream

/// Writing what other replicas have changed.
///
/// A setter does not know whether it writes a local or a remote change. While the scope of a tree writes for other
/// replicas, the flag ``isWritingRemotely`` of the tree is on, and the models whose changes that scope collects keep no
/// bases. The written model may have another scope's tree, or none: one that was removed here and that other replicas go
/// on changing is written, too, in case it returns. So the thread keeps the tree for which it writes.
///
/// Changes that observers make when such a write calls them are local changes, in any scope. A delivery to them
/// suspends the write, whatever model they observe: the flag is off, and the thread writes for no tree. They may apply
/// changes of other replicas to another scope, whose write begins and ends within the suspended one.
extension ModelTree {
  /// Calls `body`, which writes what other replicas have changed.
  @inline(__always)
  func writeRemotely<Result>(_ body: () -> Result) -> Result {
    let (outer, wasWriting) = (jetstream_written_tree(), isWritingRemotely)
    jetstream_set_written_tree(Unmanaged.passUnretained(self).toOpaque())
    isWritingRemotely = true
    defer {
      isWritingRemotely = wasWriting
      jetstream_set_written_tree(outer)
    }
    return body()
  }

  /// Calls `body`, which calls observers. What they change is a local change, even while the thread writes what other
  /// replicas have changed.
  ///
  /// Safe because observers cannot suspend: the pointer is set and reset on one thread, and the caller of
  /// ``writeRemotely(_:)`` keeps the tree alive.
  @inline(__always)
  static func suspendRemoteWriting(_ body: () -> Void) {
    guard let pointer = jetstream_written_tree() else { return body() }
    let tree = Unmanaged<ModelTree>.fromOpaque(pointer).takeUnretainedValue()
    jetstream_set_written_tree(nil)
    tree.isWritingRemotely = false
    body()
    tree.isWritingRemotely = true
    jetstream_set_written_tree(pointer)
  }
}
