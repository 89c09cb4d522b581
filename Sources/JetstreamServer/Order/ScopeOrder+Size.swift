import Foundation
import Jetstream

/// The size of a scope, for the limits on it.
extension ScopeOrder {
  /// The number of models, with those of unknown classes and those that only local properties of the app hold.
  /// Cost: O(1).
  var modelCount: Int {
    switch content {
    case let rows as RowsContent: rows.document.count
    case let models as ModelContent: models.scope.count + models.scope.unknownModelCount
    default: 0
    }
  }

  /// Returns the number of models that fragments would bring in: those that they add, and those that have left and that
  /// they name, with all below them. Cost: O(n) in the fragments and in `effort`. Once they are more than `most`, no
  /// further ones are looked at.
  ///
  /// - Parameter effort: grows by the number of models that were looked at below those that the fragments name.
  func arrivals(by fragments: [SyncFragment], upTo most: Int, _ effort: inout Int) -> Int {
    let added = Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid))
    var open = fragments.flatMap { fragment in
      (fragment.kind == .add ? [fragment.uuid] : [])
        + fragment.operations.flatMap { FragmentValidator.inserted(by: $0.operations) }
        + fragment.properties.flatMap { FragmentValidator.uuids(in: $0.value) }
    }
    var found: Set<UUID> = []
    while found.count <= most, let uuid = open.popLast() {
      guard !found.contains(uuid), content.sharedModel(uuid) == nil else { continue }
      if let model = departed(uuid) {
        found.insert(uuid)
        content.forEachChild(of: model) {
          open.append($0)
          effort += 1
        }
      } else if added.contains(uuid) {
        found.insert(uuid)
      }
    }
    return found.count
  }
}
