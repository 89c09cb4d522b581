extension SimulationConfiguration {
  /// How often the edits of ``SimulationWorld/garden`` use what not every app uses: the share of all edits, from
  /// 0 to 1. Other worlds may follow them as well.
  public struct Features: Sendable, Hashable, Codable {
    /// A process undoes a change set of its own, or does it again.
    public var undo = 0.05
    /// A counter is changed whose type has few values.
    public var boundedCounters = 0.06
    /// A model is removed in one change set and put back in a later one.
    public var cutAndPaste = 0.0
    /// A model refers to the root, strongly or weakly.
    public var rootReferences = 0.04
    /// Local properties of a client hold a model.
    public var localHolders = 0.04
    /// Local properties of the server hold a model.
    public var serverLocalHolders = 0.0
    /// A modification throws, so that nothing of it is left.
    public var throwing = 0.05
    /// A throttled property is changed.
    public var throttling = 0.1
    /// The share of the clients, not of the edits, whose observers write.
    public var rules = 0.5
    /// An old browser client writes a number that a `Float` rounds: a share of its edits, in any world.
    public var roundedNumbers = 0.0
    /// The share of the old browser clients, not of the edits, that acknowledge as late as real ones do.
    public var slowBrowsers = 0.0
    /// The share of the losses of what a client of version 1 has sent that hit a change set, which then goes without an
    /// answer although a later one gets its own.
    public var droppedSets = 0.0

    /// What holds today.
    public init() {}

    /// The rate of a feature by its name, such as `undo`; nil if there is no such feature. Setting one that there
    /// is not does nothing.
    public subscript(name: String) -> Double? {
      get { Self.rates[name].map { self[keyPath: $0] } }
      set { if let rate = Self.rates[name], let newValue { self[keyPath: rate] = newValue } }
    }

    /// The names of all features.
    public static var names: [String] { rates.keys.sorted() }

    /// The features that drawn configurations leave as they are: to draw another one would change what their seeds do.
    static let undrawn: Set = ["roundedNumbers", "slowBrowsers", "droppedSets"]

    private static var rates: [String: WritableKeyPath<Features, Double>] {
      [
        "undo": \.undo, "boundedCounters": \.boundedCounters, "cutAndPaste": \.cutAndPaste,
        "rootReferences": \.rootReferences, "localHolders": \.localHolders,
        "serverLocalHolders": \.serverLocalHolders, "throwing": \.throwing,
        "throttling": \.throttling, "rules": \.rules, "roundedNumbers": \.roundedNumbers,
        "slowBrowsers": \.slowBrowsers, "droppedSets": \.droppedSets,
      ]
    }
  }
}
