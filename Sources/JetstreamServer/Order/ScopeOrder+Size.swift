import Foundation
import Jetstream

/// The size of a scope, for the limits on it.
extension ScopeOrder {
  /// The number of models; see ``HostedContent/modelCount``.
  var modelCount: Int { content.modelCount }

  /// Returns the number of models that fragments can bring in at most: a model that has left comes back with a single
  /// insertion or, if unknown content is kept, with any reference, with all models below it. Cost: O(1).
  func mostArrivals(by fragments: [SyncFragment]) -> Int {
    fragments.count + tombstones.models.count + content.unknownModelCount
  }

  /// Returns the number of models that fragments would bring in: those that they add, and those that have left and that
  /// they name, with all below them. Cost: O(n) in the fragments and in `effort`. Once they are more than `most`, no
  /// further ones are looked at.
  ///
  /// - Parameter effort: grows by the number of models that were looked at below those that the fragments name.
  func arrivals(by fragments: [SyncFragment], upTo most: Int, _ effort: inout Int) -> Int {
    let added = Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid))
    let kept = content.unknownModelUUIDs()
    var open: [UUID] = []
    for fragment in fragments {
      if fragment.kind == .add { open.append(fragment.uuid) }
      content.forEachModel(namedBy: fragment) { open.append($0) }
    }
    var found: Set<UUID> = []
    while found.count <= most, let uuid = open.popLast() {
      guard !found.contains(uuid), !kept.contains(uuid), content.sharedModel(uuid) == nil else {
        continue
      }
      if let model = departed(uuid) {
        found.insert(uuid)
        content.forEachChild(of: model) {
          open.append($0)
          effort += 1
        }
      } else if added.contains(uuid) {
        found.insert(uuid)
      } else if let model = content.unknownModel(uuid) {
        found.insert(uuid)
        content.forEachModel(namedBy: model) {
          open.append($0)
          effort += 1
        }
      }
    }
    return found.count
  }
}

extension HostedContent {
  /// Calls `body` with each model that a fragment names, as the class of its model reads it.
  func forEachModel(namedBy fragment: SyncFragment, _ body: (UUID) -> Void) {
    fragment.forEachModel(as: sharedModel(fragment.uuid)?.classSchema ?? schema(of: fragment), body)
  }
}
