import Foundation

/// Doing what fragments say as changes of this replica.
extension Scope {
  /// Does what `fragments` say, as the app would: the changes are collected, come out of ``onChanges`` and
  /// go to others.
  ///
  /// What was collected before becomes a set of its own first. Fragments that name models which are gone
  /// leave these out.
  @discardableResult
  func perform(
    _ fragments: [SyncFragment], alsoKnown: @escaping (UUID) -> ModelObject? = { _ in nil }
  ) -> ApplyReport {
    if modification == nil, hasCollectedChanges { flush() }
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.isLocal = true
    writer.writeAll(fragments)
    withExtendedLifetime((writer.held, writer.created)) {}
    return writer.report
  }

  /// The change that leads from the present state to `fragments`, a full state of this scope, the root
  /// first; made as the app would. Returns what did not fit.
  ///
  /// Only what differs is changed, so observers are told of the differences alone.
  @discardableResult
  public func restore(_ fragments: [SyncFragment]) -> ApplyReport {
    guard let root, let first = fragments.first, first.uuid == root.uuid else {
      var report = ApplyReport()
      report.errors = [(0, .invalidState(problem: "it does not begin with the root of scope \(name)."))]
      return report
    }
    // Models that are there keep their identity: their values are written like changes.
    return perform(
      fragments.map { fragment in
        guard let known = model(fragment.uuid), known.wireClassName == fragment.className else {
          return fragment
        }
        var change = fragment
        change.kind = .change
        return change
      })
  }
}
