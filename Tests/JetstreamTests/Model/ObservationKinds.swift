@testable import Jetstream

extension Node {
  var doubled: Int { number * 2 }
  var childNumber: Int? { left?.number }
}

/// Every way of observing a model, with something to do that it is told about once.
enum ObservationKind: String, CaseIterable {
  case immediate, immediateAll, immediateKeys, immediateComposite
  case coalesced, coalescedAll, coalescedKeys, composite, values, compositeValues, difference
  case tree, treeOfProperty, treePath, rawTree
  case collectionAdd, collectionRemove, collectionMove, collectionKey
  case attach, detach, addedToParent, removedFromParent

  var isCoalesced: Bool {
    switch self {
    case .coalesced, .coalescedAll, .coalescedKeys, .composite, .values, .compositeValues,
      .difference, .tree, .treeOfProperty, .treePath, .rawTree:
      true
    default: false
    }
  }

  /// Whether what it is told about takes the model out of the tree and puts it back.
  var isLeaving: Bool { self == .detach || self == .removedFromParent }
}

/// A root with one model, which has a child.
#if ON_ACTOR
@TestDomain
#endif
final class ObservationWorld {
  let root = Node("root")
  let model = Node("model")
  let child = Node("child")
  let scope: Scope

  init(isolation: (any Actor)? = #isolation) {
    root.items = [model]
    model.left = child
    scope = manualScope(root, isolation: isolation)
    scope.flush()
  }

  @discardableResult
  func observe(
    _ kind: ObservationKind, _ listener: Listener, _ handler: @escaping (Listener) -> Void
  ) -> ObservationToken {
    switch kind {
    case .immediate: model.observeChangeImmediately(listener, \.number) { me, _, _ in handler(me) }
    case .immediateAll: model.signals.onPropertyChange.listen(listener) { me, _ in handler(me) }
    case .immediateKeys:
      model.signals.onPropertyChange.listen(listener, filter: { $0.key == "number" }) { me, _ in
        handler(me)
      }
    case .immediateComposite:
      model.observeChangeImmediately(listener, \.doubled) { me, _, _ in handler(me) }
    case .coalesced: model.observeChange(listener, \.number, isolation: here(), handler)
    case .coalescedAll: model.observeChange(listener, isolation: here()) { handler($0) }
    case .coalescedKeys:
      model.observeChange(listener, \.number, \.label, isolation: here()) { handler($0) }
    case .composite: model.observeChange(listener, \.childNumber, isolation: here(), handler)
    case .values:
      model.observeChange(listener, \.number, isolation: here()) { me, _, _ in handler(me) }
    case .compositeValues:
      model.observeChange(listener, \.doubled, isolation: here()) { me, _, _ in handler(me) }
    case .difference:
      model.observeDifference(listener, \.items, isolation: here()) { me, _ in handler(me) }
    case .tree: model.observeTreeChange(listener, isolation: here()) { handler($0) }
    case .treeOfProperty:
      model.observeTreeChange(listener, \.left, isolation: here()) { handler($0) }
    case .treePath:
      model.observeTreeChange(listener, path: "left.number", isolation: here(), handler)
    case .rawTree: model.signals.onTreeChange.listen(listener) { me, _ in handler(me) }
    case .collectionAdd: model.observeCollectionAdd(listener, \.items) { me, _, _ in handler(me) }
    case .collectionRemove:
      model.observeCollectionRemove(listener, \.items) { me, _, _ in handler(me) }
    case .collectionMove:
      model.observeCollectionMove(listener, \.items) { me, _, _, _ in handler(me) }
    case .collectionKey:
      model.signals.onCollectionChange.listen(listener, filter: { $0.key == "items" }) { me, _ in
        handler(me)
      }
    case .attach: model.observeAttach(listener) { me, _ in handler(me) }
    case .detach: model.observeDetach(listener) { me, _ in handler(me) }
    case .addedToParent: model.observeAddedToParent(listener) { me, _, _ in handler(me) }
    case .removedFromParent: model.observeRemovedFromParent(listener) { me, _, _ in handler(me) }
    }
  }

  /// Does what an observation of this kind is told about once.
  func write(_ kind: ObservationKind) {
    switch kind {
    case .immediate, .immediateAll, .immediateKeys, .immediateComposite, .coalesced, .coalescedAll,
      .coalescedKeys, .values, .compositeValues:
      model.number += 1
    case .composite, .tree, .treeOfProperty, .treePath, .rawTree: child.number += 1
    case .difference, .collectionAdd, .collectionKey: model.items.append(Node())
    case .collectionRemove:
      model.items.append(Node())
      model.items.remove(at: model.items.count - 1)
    case .collectionMove:
      while model.items.count < 2 { model.items.append(Node()) }
      model.items.move(from: 0, to: 1)
    case .attach, .detach, .addedToParent, .removedFromParent:
      model.detach()
      root.items.append(model)
    }
  }

  /// Does that and lets a tick pass.
  func trigger(_ kind: ObservationKind) {
    write(kind)
    scope.ticker.tick()
  }

  /// How many entries observations have left with the models.
  var entries: Int {
    [root, model, child].reduce(0) { count, node in
      guard let record = node.record else { return count }
      var count = count + record.nodes.count
      guard let observers = record.observers else { return count }
      count += observers.trees.count + (observers.extras?.composites.count ?? 0)
      count += observers.propertyChange?.listenerCount ?? 0
      count += observers.collectionChange?.listenerCount ?? 0
      count += observers.attach?.listenerCount ?? 0
      count += observers.detach?.listenerCount ?? 0
      count += observers.parentAdded?.listenerCount ?? 0
      count += observers.parentRemoved?.listenerCount ?? 0
      return count
    }
  }
}
