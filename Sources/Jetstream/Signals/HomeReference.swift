/// A weak reference to an object that is used on one actor only. Code that runs elsewhere holds it
/// to bring its results back to that actor.
///
/// It is safe although the object is not Sendable: only a method that is isolated to the actor
/// dereferences it. Object and actor are both held weakly, so waiting code keeps neither alive.
package struct HomeReference<Object: AnyObject>: @unchecked Sendable {
  private weak var object: Object?
  private let actor: WeakActor

  /// - Parameter actor: The actor on which `object` is used.
  package init(_ object: Object, on actor: WeakActor) {
    self.object = object
    self.actor = actor
  }

  /// Calls `body` with the object on its actor. Returns nil if the object or the actor has been
  /// released.
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
