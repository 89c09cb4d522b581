/// The isolation domain of the suites that need an actor.
///
/// The targets under Tests/Domains compile the suites of models, scopes, signals and bridges again, on
/// the main actor and on another one. A suite takes part by being isolated to this domain where
/// `ON_ACTOR` is set; its scopes come from `manualScope`, or have their tickers from `testTicker`.
#if SIDE_ACTOR
typealias TestDomain = SideActor
#else
typealias TestDomain = MainActor
#endif

/// An actor that is not the main one.
@globalActor actor SideActor {
  static let shared = SideActor()
}
