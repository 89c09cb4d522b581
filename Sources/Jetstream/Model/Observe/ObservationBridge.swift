import CJetstream
import Observation

/// Reports reads and changes of one model to the Observation module, for classes that adopt
/// `Observable`.
///
/// ```swift
/// final class Shape: ModelObject, Observable {
///   @Property var x: Float = 0
/// }
/// ```
///
/// SwiftUI and `withObservationTracking` then track each property separately, inherited ones
/// included, whichever class of the hierarchy adopts the protocol. A computed property is tracked
/// through the properties that it reads. `onChange` runs right after the write, once its access has
/// ended, also for in-place writes and for writes by fragments.
///
/// The first read makes the bridge; it belongs to the model's observers. It cannot be made later,
/// when a tracking starts, because only the registrar knows of trackings.
final class ObservationBridge: Observable {
  private let registrar = ObservationRegistrar()
  /// The indices of the properties that were read, and that of the parents. What was not read cannot be tracked.
  private var read = PropertySet()
  /// The properties whose change is being reported, and those that changed again during the report.
  private var reporting: [Int] = []
  private var again: [Int] = []

  /// Registers a read with the tracking that is in progress, if there is one.
  func didRead(_ index: Int) {
    read.insert(index)
    registrar.access(self, keyPath: Self.path(index))
  }

  /// Returns true if the property was read, so that a tracking may wait for its change.
  func wasRead(_ index: Int) -> Bool { read.contains(index) }

  /// Reports a change to the trackings that have read the property.
  ///
  /// A registrar forgets a tracking only after its `onChange` has returned. A change made by
  /// `onChange` is therefore reported afterwards, so that no tracking is notified twice.
  func didChange(_ index: Int) {
    guard read.contains(index) else { return }
    if reporting.contains(index) {
      again.append(index)
      return
    }
    let path = Self.path(index)
    reporting.append(index)
    repeat {
      again.removeAll { $0 == index }
      registrar.willSet(self, keyPath: path)
      registrar.didSet(self, keyPath: path)
    } while again.contains(index)
    reporting.removeAll { $0 == index }
  }

  // MARK: Key paths

  /// Key paths that stand for the properties, by index. Registrars only compare key paths, and the
  /// key path of the property itself is not available where fragments write.
  ///
  /// Safe although key paths are not Sendable: these are immutable and capture only a number.
  private nonisolated(unsafe) static let paths = (0..<64).map(makePath)

  private static func makePath(_ index: Int) -> KeyPath<ObservationBridge, Int> {
    \ObservationBridge.[index]
  }

  private static func path(_ index: Int) -> KeyPath<ObservationBridge, Int> {
    index < paths.count ? paths[index] : makePath(index)
  }

  /// Never called: it only gives the key paths something to name.
  private subscript(index: Int) -> Int { index }

  // MARK: The gate

  /// Returns true if `modelClass` adopts `Observable`. The first such class in the process opens
  /// the gate for reads. Until then the bridge costs nothing; from then on a read of any model
  /// checks ``ModelObject/isBridged``.
  static func adopts(_ modelClass: ModelObject.Type) -> Bool {
    guard modelClass is any Observable.Type else { return false }
    _ = openGate
    return true
  }

  private static let openGate: Void = jetstream_read_gate_add(1)
}

extension ModelObject {
  /// Reports the read of a property. Called only while the gate is open.
  final func bridgeRead(at offset: Int) {
    let record = ensureRecord()
    ensureBridge(record).didRead(record.schema.index(atOffset: offset))
  }

  /// Reports a read of the parents to the Observation module, and to what makes copies of them.
  final func parentsAreRead() {
    relativesAreRead()
    guard isBridged else { return }
    let record = ensureRecord()
    ensureBridge(record).didRead(record.schema.indexOfParents)
  }

  private final func ensureBridge(_ record: ModelRecord) -> ObservationBridge {
    if let bridge = record.observers?.bridge { return bridge }
    let made = ObservationBridge()
    record.ensureObservers().bridge = made
    return made
  }
}

extension ModelSchema {
  /// The index that stands for the parents of a model where the Observation module is concerned: the one behind the
  /// properties.
  fileprivate var indexOfParents: Int { properties.count }
}

extension ModelRecord {
  /// The report of a change of the parents to the trackings that have read them; nil if none can have.
  var parentsReport: (any PendingCalls)? {
    guard let bridge = observers?.bridge, bridge.wasRead(schema.indexOfParents) else { return nil }
    return BridgeReport(bridge, schema.indexOfParents)
  }
}

/// The report of one change to the Observation module.
private final class BridgeReport: PendingCalls {
  private var bridge: ObservationBridge?
  private let index: Int

  init(_ bridge: ObservationBridge, _ index: Int) { (self.bridge, self.index) = (bridge, index) }

  func callNext() -> Bool {
    guard let bridge else { return false }
    // A tracking may ask for the calls after this one.
    self.bridge = nil
    bridge.didChange(index)
    return true
  }
}
