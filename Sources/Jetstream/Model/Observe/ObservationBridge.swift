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
  /// The indices of the properties that were read. Other properties cannot be tracked.
  private var read = PropertySet()
  /// The properties whose change is being reported, and those that changed again during the report.
  private var reporting: [Int] = []
  private var again: [Int] = []

  /// Registers a read with the tracking that is in progress, if there is one.
  func didRead(_ index: Int) {
    read.insert(index)
    registrar.access(self, keyPath: Self.path(index))
  }

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
    let bridge = record.observers?.bridge ?? makeBridge(record)
    bridge.didRead(record.schema.index(atOffset: offset))
  }

  private final func makeBridge(_ record: ModelRecord) -> ObservationBridge {
    let made = ObservationBridge()
    record.ensureObservers().bridge = made
    return made
  }
}
