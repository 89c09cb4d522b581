import Foundation

/// An observer that is called when models enter and leave a scope, while the tree is being changed, and when changes of
/// other replicas have been applied to it.
package protocol MembershipObserver: AnyObject {
  func modelEntered(_ model: ModelObject)
  func modelLeft(_ model: ModelObject)
  /// The root, whose UUID was `old`, has another UUID from now on.
  func modelRenamed(_ model: ModelObject, from old: UUID)
  /// A shared model of the scope is held only by local properties from now on: for other replicas it is gone.
  func modelWithdrawn(_ model: ModelObject)
  /// A model of the scope that only local properties held is held by a synced property again.
  func modelShared(_ model: ModelObject)
  /// Called after each call that applies fragments of another replica, when the tree is complete again.
  func fragmentsApplied(_ fragments: [SyncFragment])
  /// Calls `body` with the models that may come back to the scope without an addition of another replica, as far as the
  /// observer knows, and with all that these name.
  func forEachReturning(_ body: (UUID) -> Void)
}

extension MembershipObserver {
  package func modelRenamed(_ model: ModelObject, from old: UUID) {}
  package func modelWithdrawn(_ model: ModelObject) {}
  package func modelShared(_ model: ModelObject) {}
  package func fragmentsApplied(_ fragments: [SyncFragment]) {}
  package func forEachReturning(_ body: (UUID) -> Void) {}
}

/// The membership observers of one scope, held weakly, in the order in which they were added.
struct MembershipObservers {
  private struct Entry { weak var observer: (any MembershipObserver)? }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }

  mutating func add(_ observer: any MembershipObserver) {
    entries.removeAll { $0.observer == nil }
    entries.append(Entry(observer: observer))
  }

  mutating func remove(_ observer: any MembershipObserver) {
    entries.removeAll { $0.observer == nil || $0.observer === observer }
  }

  @inline(__always)
  func forEach(_ body: (any MembershipObserver) -> Void) {
    for entry in entries { if let observer = entry.observer { body(observer) } }
  }
}
