import Foundation

/// Applying fragments as local changes.
extension Scope {
  /// Applies `fragments` as the app would make the changes: they are collected, come out of ``onChanges`` and are
  /// sent to other replicas.
  ///
  /// Earlier collected changes become a change set of their own first, unless this is called within `modify`.
  /// References to models that are gone are left out, and so are models that no property of the scope refers to in the
  /// end, and changes of what no class knows: nothing would be sent of them, and the report has an error for each of their
  /// fragments.
  @discardableResult
  package func perform(
    _ fragments: [SyncFragment], alsoKnown: @escaping (UUID) -> ModelObject? = { _ in nil }
  ) -> ApplyReport {
    if modification == nil, hasCollectedChanges { flush() }
    var writer = FragmentWriter(scope: self, alsoKnown: alsoKnown)
    writer.isLocal = true
    writer.writeAll(fragments)
    writer.leaveKept()
    writer.reportUnattached(fragments)
    writer.report.releaseOrphans()
    withExtendedLifetime((writer.held, writer.created)) {}
    return writer.report
  }

  /// Changes the scope to `fragments`, a full state of this scope with the root first, as a local change. Returns a
  /// report of the fragments that did not fit; the state must begin with the root of this scope.
  ///
  /// Only values that differ are written, so only these call observers. Properties and classes that the scope does not know
  /// keep the values that other replicas have.
  @discardableResult
  public func restore(_ fragments: [SyncFragment]) -> ApplyReport {
    guard let root, let first = fragments.first, first.uuid == root.uuid else {
      var report = ApplyReport()
      report.errors = [
        (0, .invalidState(problem: "it does not begin with the root of scope \(name)."))
      ]
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
        // A state has the entries of dictionaries that there were, and says nothing of others.
        if known.schema.hasDictionaries {
          for entry in known.ensureRecord().entryNames where fragment.properties[entry] == nil {
            change.properties[entry] = .null
          }
        }
        return change
      })
  }
}

extension FragmentWriter {
  /// Reports the fragments of models that are not in the scope, and notes the added models among them as orphans.
  fileprivate mutating func reportUnattached(_ fragments: [SyncFragment]) {
    let reported = Set(report.errors.map(\.fragment))
    for (position, fragment) in fragments.enumerated() where !reported.contains(position) {
      let (uuid, name) = (fragment.uuid, fragment.className)
      if scope.model(uuid) != nil { continue }
      if scope.unknownModel(uuid) != nil, scope.unknownModelUUIDs().contains(uuid) { continue }
      if scope.schema(named: name) == nil {
        fail(position, .unknownClass(className: name, model: uuid))
        continue
      }
      switch fragment.kind {
      case .add: fail(position, .noParent(className: name, model: uuid))
      case .change: fail(position, .unknownModel(className: name, model: uuid))
      }
    }
    for (uuid, model) in created where scope.model(uuid) == nil && scope.modelThatLeft(uuid) == nil
    { report.orphans.append(model) }
  }
}
