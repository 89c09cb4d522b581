import Foundation
import Jetstream

extension MoveReach {
  /// Finds the models to which the root leads once `fragments`, which have these moves, are applied.
  ///
  /// - Parameter check: knows the classes of the models that `fragments` change.
  init(of moves: [UUID: Move], by fragments: [SyncFragment], in check: FragmentValidator) {
    let content = check.content
    self.init(of: moves, root: content.root?.uuid) { uuid in
      content.model(uuid).map { content.holders(of: $0) } ?? []
    }
    for fragment in fragments {
      check.forEachHolding(in: fragment) { key, models in
        assign(models, to: PropertyKey(uuid: fragment.uuid, name: key))
      }
    }
  }
}
