import Foundation

@testable import Jetstream

/// Something that an app, or a peer, does to the forest.
indirect enum ForestOperation {
  enum Way { case inPlace, assigned, copied }

  /// A value in a fragment.
  enum Value {
    case number(Int)
    case title(String?)
    case heat(Int)
    case note(Int)
    case count(Int)
    /// What was added, as an operation.
    case addCount(Int)
    case reference(ReferenceKey, Int?)
    case list(ListKey, [Int])
    case friend(Int)
    case unknownReference(ReferenceKey)
    case unknownElement(ListKey, [Int])
    case wrongNumber
    case wrongTitle
    case wrongReference(ReferenceKey)
    case wrongList(ListKey)
    case unknownProperty
  }

  struct Fragment {
    enum Target { case known(Int), new(Int, UUID, isBush: Bool), unknown(UUID) }
    let target: Target
    let values: [Value]
  }

  case plain(Int, PlainEdit)
  case reference(Int, ReferenceKey, Int?)
  case swapReferences(Int, ReferenceKey, Int, ReferenceKey)
  case list(Int, ListKey, [ListEdit], Way)
  case swapLists(Int, ListKey, Int, ListKey)
  case within(ForestAccess, ForestOperation)
  case friend(Int, Int?)
  case detach(Int)
  case releaseRoot(Int)
  case setRoot(Int, Int)
  case dropScope(Int)
  case apply(Int, [Fragment])
  case saveState
  case applyState
  case takeFragments(Int)
  case flush
  case flushArmed
  case advance(Int)
  case muted([ForestWatcher], ForestOperation)
  case observe(Int, ForestWatcher.Kind, isFree: Bool)
  case cancel(ForestWatcher)
  case releaseEar(ForestWatcher)
  case removeObservers(ForestWatcher)
  case create(Int, UUID, isBush: Bool)
  case drop(Int)
  case copy(Int, keepingUUIDs: Bool)
  case modify(Int, steps: Int, throws: Bool)
}

extension ForestOperation {
  /// Whether it has one effect, of which observers are told when all is done.
  var isElementary: Bool {
    switch self {
    case .plain, .reference, .list, .friend: true
    default: false
    }
  }
}

extension ForestOperation: CustomStringConvertible {
  var description: String {
    switch self {
    case .plain(let id, let edit): "\(id): \(edit)"
    case .reference(let id, let key, let child):
      "\(id).\(key) = \(child.map { "#\($0)" } ?? "nil")"
    case .swapReferences(let a, let key, let b, let other): "swap(\(a).\(key), \(b).\(other))"
    case .list(let id, let key, let edits, let way): "\(id).\(key) \(way): \(edits)"
    case .swapLists(let a, let key, let b, let other): "swap(\(a).\(key), \(b).\(other))"
    case .within(let access, let inner): "within \(access): \(inner)"
    case .friend(let id, let friend): "\(id).friend = \(friend.map { "#\($0)" } ?? "nil")"
    case .detach(let id): "\(id).detach()"
    case .releaseRoot(let scope): "scope \(scope).root = nil"
    case .dropScope(let scope): "drop scope \(scope)"
    case .setRoot(let scope, let id): "scope \(scope).root = #\(id)"
    case .apply(let scope, let fragments):
      "scope \(scope).apply: "
        + fragments.map { "\($0.target) \($0.values)" }.joined(separator: "; ")
    case .saveState: "save the full state"
    case .applyState: "apply the saved state"
    case .takeFragments(let scope): "scope \(scope).takeFragments()"
    case .flush: "flush"
    case .flushArmed: "flush with observers that write"
    case .advance(let time): "advance \(time) ms"
    case .muted(let watchers, let operation):
      "without \(watchers.map { "\($0.node) \($0.kind)" }): \(operation)"
    case .observe(let id, let kind, let isFree):
      "observe \(id) \(kind)\(isFree ? " for nobody" : "")"
    case .cancel(let watcher): "cancel \(watcher.node) \(watcher.kind)"
    case .releaseEar(let watcher): "release the observer of \(watcher.node) \(watcher.kind)"
    case .removeObservers(let watcher): "removeObservers of \(watcher.node) \(watcher.kind)"
    case .create(let id, _, let isBush): "create \(isBush ? "bush" : "plant") \(id)"
    case .drop(let id): "drop \(id)"
    case .modify(let scope, let steps, let throwing):
      "scope \(scope).modify \(steps) times\(throwing ? ", and throw" : "")"
    case .copy(let id, let keeping): "copy \(id)\(keeping ? " with its UUIDs" : "")"
    }
  }
}
