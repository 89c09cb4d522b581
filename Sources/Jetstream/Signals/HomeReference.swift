/// A weak reference to something that lives on one actor, for those who work elsewhere and bring there
/// what they have found.
///
/// Sound although what it refers to is not Sendable: the reference is followed only in a method that is
/// isolated to the actor. Both are held weakly, so that whoever waits keeps neither alive.
package struct HomeReference<Object: AnyObject>: @unchecked Sendable {
  private weak var object: Object?
  private let actor: WeakActor

  /// - Parameter actor: the one on which `object` is used.
  package init(_ object: Object, on actor: WeakActor) {
    self.object = object
    self.actor = actor
  }

  /// Does something with the object on its actor. Nil if one of the two is gone.
  package nonisolated func perform<Result: Sendable>(
    _ body: @Sendable (Object) -> Result
  ) async -> Result? {
    guard let home = actor.value else { return nil }
    return await perform(body, on: home)
  }

  private func perform<Result: Sendable>(
    _ body: @Sendable (Object) -> Result, on actor: isolated any Actor
  ) async -> Result? { object.map { body($0) } }
}
