import CJetstream
import Observation

/// Tells the Observation module about one model of a class that adopts `Observable`.
///
/// ```swift
/// final class Shape: ModelObject, Observable {
///   @Property var x: Float = 0
/// }
/// ```
///
/// SwiftUI and `withObservationTracking` then follow each property by itself, inherited ones too,
/// wherever in the hierarchy the class comes to adopt the protocol. A computed property is followed
/// through what it reads. `onChange` runs right after the write, once its access has ended, and also
/// for writes in place and for those that fragments bring.
///
/// The bridge lives with the model's observers and is made by the first read. Whether a tracking is
/// under way only the registrar knows, which is why it cannot wait for one.
final class ObservationBridge: Observable {
  private let registrar = ObservationRegistrar()
  /// What has been read: nothing else can be tracked.
  private var read = PropertySet()
  /// What is being reported, and what has changed again meanwhile.
  private var reporting: [Int] = []
  private var again: [Int] = []

  /// Notes a read in the tracking that is under way, if there is one.
  func didRead(_ index: Int) {
    read.insert(index)
    registrar.access(self, keyPath: Self.path(index))
  }

  /// Reports a change to the trackings that have read the property.
  ///
  /// A registrar forgets a tracking only once its `onChange` has returned. What that changes is
  /// therefore reported afterwards, so that no tracking is told twice.
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

  /// Stand for the properties, by index. Registrars only compare key paths, and the getter's own one
  /// is not to be had where fragments write.
  ///
  /// Sound although key paths are not Sendable: these are immutable and hold nothing but a number.
  private nonisolated(unsafe) static let paths = (0..<64).map(makePath)

  private static func makePath(_ index: Int) -> KeyPath<ObservationBridge, Int> {
    \ObservationBridge.[index]
  }

  private static func path(_ index: Int) -> KeyPath<ObservationBridge, Int> {
    index < paths.count ? paths[index] : makePath(index)
  }

  /// No registrar reads through the key path.
  private subscript(index: Int) -> Int { index }

  // MARK: The gate

  /// Whether objects of `modelClass` are to be bridged. The first such class of the process opens the
  /// gate for reads. Until then the bridge costs nobody anything; from then on a read of any model looks
  /// at ``ModelObject/isBridged``.
  static func adopts(_ modelClass: ModelObject.Type) -> Bool {
    guard modelClass is any Observable.Type else { return false }
    _ = openGate
    return true
  }

  private static let openGate: Void = jetstream_read_gate_add(1)
}

extension ModelObject {
  /// A property was read while the gate was open.
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
