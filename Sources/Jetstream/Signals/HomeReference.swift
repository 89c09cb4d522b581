import JetstreamWebSocket

/// A reference to an object that is used on one actor only. Code that runs elsewhere holds it
/// to bring its results back to that actor.
///
/// It is safe although the object is not Sendable: only code that is isolated to the actor
/// dereferences it. Object and actor are both held weakly, so waiting code keeps neither alive; an object that lives as
/// long as the process anyway is held strongly.
package struct HomeReference<Object: AnyObject>: @unchecked Sendable {
  private weak var object: Object?
  /// The object, if it lives as long as the process.
  private let permanent: Object?
  private let actor: WeakActor

  /// - Parameters:
  ///   - actor: The actor on which `object` is used.
  ///   - isPermanent: true if `object` lives as long as the process. It is not referred to weakly then, because objects
  ///     that are take longer to retain.
  package init(_ object: Object, on actor: WeakActor, isPermanent: Bool = false) {
    permanent = isPermanent ? object : nil
    self.object = isPermanent ? nil : object
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

  /// Calls `body` with the object on its actor, and waits for what it waits for. Returns nil if the object or the actor has
  /// been released.
  package nonisolated func perform<Result: Sendable>(
    _ body: @Sendable (Object) async -> Result
  ) async -> Result? {
    guard let home = actor.value else { return nil }
    return await perform(body, on: home)
  }

  /// Calls `body` with the object on its actor, in a turn of its own, unless one of them has been released by then.
  package nonisolated func performLater(_ body: @escaping @Sendable (Object) -> Void) {
    guard let home = actor.value else { return }
    if actor.isMain {
      Task { @MainActor in
        if let object = permanent ?? object { body(object) }
      }
    } else if EventLoop.isHome(of: home) {
      beginTask(body, on: home)
    } else {
      Task { await perform(body) }
    }
  }

  /// Calls `body` with the object on its actor in a task of its own, unless one of them has been released by then. The
  /// object is kept until `body` returns.
  package nonisolated func task(
    _ body: @escaping @Sendable (Object) async -> Void
  ) -> Task<Void, Never> {
    Task {
      guard let home = actor.value else { return }
      await run(body, on: home)
    }
  }

  private func run(
    _ body: @Sendable (Object) async -> Void, on actor: isolated any Actor
  ) async {
    if let object = permanent ?? object { await body(object) }
  }

  private func perform<Result: Sendable>(
    _ body: @Sendable (Object) async -> Result, on actor: isolated any Actor
  ) async -> Result? {
    guard let object = permanent ?? object else { return nil }
    return await body(object)
  }

  /// Begins a task on the actor, on which the caller is: one that begins elsewhere takes another thread first. The task
  /// keeps the actor until its turn.
  private func beginTask<Home: Actor>(
    _ body: @escaping @Sendable (Object) -> Void, on home: Home
  ) {
    home.assumeIsolated { home in
      _ = Task {
        _ = home
        if let object = permanent ?? object { body(object) }
      }
    }
  }

  private func perform<Result: Sendable>(
    _ body: @Sendable (Object) -> Result, on actor: isolated any Actor
  ) async -> Result? { (permanent ?? object).map { body($0) } }
}
