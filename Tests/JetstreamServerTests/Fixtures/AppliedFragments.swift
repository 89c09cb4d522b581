import Foundation

@testable import Jetstream

/// Listens to the fragments of other replicas that are applied to a scope, for as long as it is held.
final class AppliedFragments: MembershipObserver {
  private let body: ([SyncFragment]) -> Void

  init(to scope: Scope, _ body: @escaping ([SyncFragment]) -> Void) {
    self.body = body
    scope.addMembershipObserver(self)
  }

  func modelEntered(_ model: ModelObject) {}

  func modelLeft(_ model: ModelObject) {}

  func fragmentsApplied(_ fragments: [SyncFragment]) { body(fragments) }
}
