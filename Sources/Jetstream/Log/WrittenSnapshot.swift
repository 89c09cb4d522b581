/// A snapshot that counts.
package struct WrittenSnapshot<Failure: Error>: Sendable {
  /// The error because of which the records and snapshots that the snapshot replaces were not removed; nil if they were,
  /// or are kept. The next snapshot tries again.
  package var removalError: Failure?

  /// The report of that error, in words; nil if there was none.
  package var report: String? {
    removalError.map { "what a snapshot of its history replaces is not removed yet: \($0)" }
  }

  package init(removalError: Failure? = nil) { self.removalError = removalError }
}
