/// The isolation domain of the suites that need an actor.
#if SIDE_ACTOR
typealias TestDomain = SideActor
#else
typealias TestDomain = MainActor
#endif

/// An actor that is not the main one.
@globalActor actor SideActor {
  static let shared = SideActor()
}
