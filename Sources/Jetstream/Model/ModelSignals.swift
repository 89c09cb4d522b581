/// A change of one property.
public struct PropertyChange {
  /// The name of the property in the source.
  public let key: String
  /// The value before the change, of the property's type.
  public let old: Any
  /// The value after the change, of the property's type.
  public let new: Any

  init(key: String, old: Any, new: Any) {
    self.key = key
    self.old = old
    self.new = new
  }
}

/// One step of a change of a collection. The steps of a change, applied in order to the old
/// content, give the new content.
public struct CollectionChange {
  /// The kind of step.
  public enum Kind: Sendable, Equatable {
    /// The model was inserted at an index.
    case insert(at: Int)
    /// The model was removed from an index.
    case remove(at: Int)
    /// The model was moved; `to` is its index after the move.
    case move(from: Int, to: Int)
  }

  /// The name of the property in the source.
  public let key: String
  /// The kind of step, with the indices.
  public let kind: Kind
  /// The model that was inserted, removed or moved.
  public let model: ModelObject

  init(_ key: String, _ operation: ListOperation) {
    self.key = key
    switch operation {
    case .insert(let model, let position): (self.model, kind) = (model, .insert(at: position))
    case .remove(let model, let position): (self.model, kind) = (model, .remove(at: position))
    case .move(let model, let from, let to): (self.model, kind) = (model, .move(from: from, to: to))
    }
  }
}

/// A property of a parent that has begun, or ceased, to hold a model.
package struct ParentChange {
  /// The model whose property it is.
  package let parent: ModelObject
  /// The name of the property in the source.
  public let key: String

  init?(_ parent: ModelRecord, _ index: Int) {
    guard let model = parent.model else { return nil }
    self.parent = model
    key = parent.schema.properties[index].name
  }
}

/// Signals of one model for code that does not know its class, such as an inspector or a bridge. They fire at once, for
/// every property.
///
/// ```swift
/// model.signals.onPropertyChange.listen(self) { me, change in me.log(change.key, change.new) }
/// ```
public struct ModelSignals {
  private let record: ModelRecord

  init(_ record: ModelRecord) { self.record = record }

  /// Fires after each change of a property, in the order of the changes; see `observeChangeImmediately`.
  public var onPropertyChange: Signal<PropertyChange> { signal(\.propertyChange) }
  /// Fires after a change of a collection, once for each step.
  public var onCollectionChange: Signal<CollectionChange> { signal(\.collectionChange) }
  /// Fires when the model enters a scope.
  var onAttach: Signal<any TreeKeeper> { signal(\.attach) }
  /// Fires when the model leaves its scope.
  var onDetach: Signal<any TreeKeeper> { signal(\.detach) }
  /// Fires when a property of a parent begins to hold the model.
  package var onAddedToParent: Signal<ParentChange> { signal(\.parentAdded) }
  /// Fires when a property of a parent ceases to hold the model.
  package var onRemovedFromParent: Signal<ParentChange> { signal(\.parentRemoved) }
  /// Fires once in each tick in which the model, or a model at any depth below it, has changed. For
  /// a model in no scope, it fires only if another observer, on an actor, observes the tree.
  package var onTreeChange: Signal<Void> {
    record.ensureObservers().ensureExtras().treeChange(of: record)
  }

  private func signal<Payload>(
    _ path: ReferenceWritableKeyPath<ModelObservers, Signal<Payload>?>
  ) -> Signal<Payload> {
    let observers = record.ensureObservers()
    if let signal = observers[keyPath: path] { return signal }
    let made = Signal<Payload>()
    observers[keyPath: path] = made
    return made
  }
}
