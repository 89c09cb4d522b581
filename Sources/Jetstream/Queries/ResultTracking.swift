import Observation

/// Tells the Observation module about the result of one live query.
///
/// A read costs what asking for the tracking that is under way costs. A tick reports nothing, and computes nothing for
/// it, unless the result was read since the last report: whatever was tracked before then has been called.
final class ResultTracking: Observable {
  private let registrar = ObservationRegistrar()
  /// True while a tracking may wait for a change.
  private(set) var isRead = false

  /// Notes a read in the tracking that is under way, if there is one.
  func read() {
    isRead = true
    registrar.access(self, keyPath: Self.path)
  }

  /// Calls the trackings that have read the result, each once. One that reads it again from its `onChange` waits for
  /// the next change.
  func report() {
    guard isRead else { return }
    isRead = false
    registrar.willSet(self, keyPath: Self.path)
    registrar.didSet(self, keyPath: Self.path)
  }

  /// Stands for the result. Registrars only compare key paths. Made once, because a key path into a generic class, such
  /// as that of the query, would be made anew at each read.
  ///
  /// Sound although key paths are not Sendable: this one is immutable and holds nothing.
  private nonisolated(unsafe) static let path: KeyPath<ResultTracking, Bool> =
    \ResultTracking.isRead
}
