/// Who observes one model. Made when the first observer comes.
final class ModelObservers: TokenHolder {
  var changes: [ChangeEntry] = []
  /// Owns the observations on this model, also those whose entries stand with other models.
  var observations: [ChangeObservation] = []
  var trees: [TreeObservation] = []
  var propertyChange: Signal<PropertyChange>?
  var collectionChange: Signal<CollectionChange>?
  var attach: Signal<Scope>?
  var detach: Signal<Scope>?
  var parentAdded: Signal<ParentChange>?
  var parentRemoved: Signal<ParentChange>?
  /// Delivers while the model is in no scope.
  var ticker: Ticker?

  /// A coalesced observation of some properties, or of a composite that reads them.
  struct ChangeEntry {
    /// Nil for all properties.
    let properties: PropertySet?
    let target: Target

    enum Target {
      case observation(ChangeObservation)
      case composite(CompositeWatch)
    }

    var isLive: Bool {
      switch target {
      case .observation(let observation): observation.isLive
      case .composite(let watch): watch.isLive
      }
    }
  }

  func tokenWasCancelled(_ token: ObservationToken) { dropDead() }

  /// Drops what was cancelled or whose observer has gone.
  func dropDead() {
    observations.removeAll { !$0.isLive }
    changes.removeAll { !$0.isLive }
    trees.removeAll { !$0.isLive }
  }

  func remove(_ observer: AnyObject) {
    observations.removeTokens(of: observer)
    trees.removeTokens(of: observer)
    dropDead()
    propertyChange?.removeListeners(of: observer)
    collectionChange?.removeListeners(of: observer)
    attach?.removeListeners(of: observer)
    detach?.removeListeners(of: observer)
    parentAdded?.removeListeners(of: observer)
    parentRemoved?.removeListeners(of: observer)
  }
}

/// A callback that runs once a tick in which one of the things it observes has changed.
final class ChangeObservation: ObservationToken {
  var handler: (() -> Void)?
  var composites: [CompositeWatch] = []
  /// Set while the callback waits for its turn in a tick.
  var isTriggered = false

  override func forgetHandler() {
    handler = nil
    for composite in composites { composite.stop() }
    composites = []
  }
}

/// A callback that runs once a tick in which the model or one of its descendants has changed.
final class TreeObservation: ObservationToken {
  var handler: (() -> Void)?

  override init(observer: AnyObject?) {
    super.init(observer: observer)
    TreeObservers.count(1)
  }

  deinit { if !isCancelled { TreeObservers.count(-1) } }

  override func forgetHandler() {
    handler = nil
    TreeObservers.count(-1)
  }
}

/// Follows the value of a getter: learns what it reads, and learns it again after each change.
final class CompositeWatch {
  weak var observation: ChangeObservation?
  private let model: ModelRecord
  private let read: (ModelObject) -> Any
  private var value: Any?
  private var dependencies: [ModelRecord] = []
  /// Set while the watch waits to be evaluated in a tick.
  var isTriggered = false

  init(_ model: ModelRecord, observation: ChangeObservation, read: @escaping (ModelObject) -> Any) {
    self.model = model
    self.observation = observation
    self.read = read
  }

  var isLive: Bool { observation?.isLive ?? false }

  /// Runs the getter, and listens to all that it read. True if the value differs from the last one;
  /// values that cannot be compared count as different.
  func evaluate() -> Bool {
    guard isLive, let owner = model.model else { return false }
    let (new, reads) = ReadTracker.track { read(owner) }
    let old = value
    value = new
    follow(reads)
    guard let old else { return true }
    return !AnyEquality.areEqual(old, new)
  }

  func follow(_ reads: [ReadTracker.Read]) {
    stop()
    var indices: [ObjectIdentifier: (ModelRecord, PropertySet)] = [:]
    for read in reads {
      let record = read.model.ensureRecord()
      indices[ObjectIdentifier(record), default: (record, PropertySet())].1.insert(read.index)
    }
    for (record, properties) in indices.values {
      let observers = record.ensureObservers(ticker: model.ticker)
      observers.changes.append(.init(properties: properties, target: .composite(self)))
      dependencies.append(record)
    }
  }

  /// Listens to nothing any more.
  func stop() {
    for record in dependencies {
      record.observers?.changes.removeAll {
        if case .composite(let watch) = $0.target { watch === self } else { false }
      }
    }
    dependencies = []
  }
}

/// Compares values whose type is not known.
enum AnyEquality {
  static func areEqual(_ a: Any, _ b: Any) -> Bool {
    guard let a = a as? any Equatable else { return false }
    return isEqual(a, b)
  }

  private static func isEqual<Value: Equatable>(_ a: Value, _ b: Any) -> Bool {
    (b as? Value) == a
  }
}
