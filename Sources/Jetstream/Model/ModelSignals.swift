/// A property has changed.
public struct PropertyChange {
  /// The property's name.
  public let key: String
  /// The value before, of the property's type.
  public let old: Any
  /// The value now, of the property's type.
  public let new: Any

  init(key: String, old: Any, new: Any) {
    self.key = key
    self.old = old
    self.new = new
  }
}

/// One step of a change of a collection. The steps of a change, applied in order to the old content,
/// give the new content.
public struct CollectionChange {
  /// What happened to the model.
  public enum Kind: Sendable, Equatable {
    /// It was inserted at an index.
    case insert(at: Int)
    /// It was removed from an index.
    case remove(at: Int)
    /// It was moved; `to` is its index afterwards.
    case move(from: Int, to: Int)
  }

  /// The property's name.
  public let key: String
  /// What happened.
  public let kind: Kind
  /// The model it happened to.
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

/// A model came to be held by a property of a parent, or is held by it no more.
package struct ParentChange {
  /// The parent.
  package let parent: ModelObject
  /// The property's name.
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

  /// A property has changed.
  public var onPropertyChange: Signal<PropertyChange> { signal(\.propertyChange) }
  /// A collection has changed by one step.
  public var onCollectionChange: Signal<CollectionChange> { signal(\.collectionChange) }
  /// The model came into a scope.
  package var onAttach: Signal<Scope> { signal(\.attach) }
  /// The model left its scope.
  package var onDetach: Signal<Scope> { signal(\.detach) }
  /// A property of a parent holds the model.
  package var onAddedToParent: Signal<ParentChange> { signal(\.parentAdded) }
  /// A property of a parent holds the model no more.
  package var onRemovedFromParent: Signal<ParentChange> { signal(\.parentRemoved) }
  /// The model, or one that it holds, at any depth, has changed: fires once in each tick in which
  /// that happened. Outside of a scope it fires where something else observes the tree on an actor.
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
