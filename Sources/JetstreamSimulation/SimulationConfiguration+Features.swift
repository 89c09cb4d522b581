extension SimulationConfiguration {
  /// The rates at which edits use features that not every app uses, each a share of all edits from
  /// 0 to 1. ``SimulationWorld/garden`` follows them; other worlds may.
  public struct Features: Sendable, Hashable, Codable {
    /// A process undoes or redoes one of its own change sets.
    public var undo = 0.05
    /// A counter is changed whose type has few values, such as `UInt8`.
    public var boundedCounters = 0.06
    /// A model is removed by one change set and put back by a later one.
    public var cutAndPaste = 0.0
    /// A model refers to the root, with a strong or a weak reference.
    public var rootReferences = 0.04
    /// A local property of a client holds a model.
    public var localHolders = 0.04
    /// A local property of the server holds a model.
    public var serverLocalHolders = 0.0
    /// An entry of a dictionary is changed.
    public var dictionaries = 0.08
    /// A modification throws, and is rolled back.
    public var throwing = 0.05
    /// A throttled property is changed.
    public var throttling = 0.1
    /// The share of the clients, not of the edits, whose observers write.
    public var rules = 0.5
    /// An old browser client writes a number that a `Float` rounds: a share of those clients'
    /// edits, in any world.
    public var roundedNumbers = 0.0
    /// The share of the old browser clients, not of the edits, that acknowledge as late as real
    /// ones do.
    public var slowBrowsers = 0.0
    /// The share of the losses of frames from clients of version 1, not of the edits, that drop a
    /// change set: it gets no answer, although a later one gets its own. The other such losses do
    /// nothing.
    public var droppedSets = 0.0

    /// Creates the default rates.
    public init() {}

    /// The rate of the feature with this name, such as `undo`; nil if there is no such feature.
    /// Setting the rate of an unknown feature, or setting nil, does nothing.
    public subscript(name: String) -> Double? {
      get { Self.rates[name].map { self[keyPath: $0] } }
      set { if let rate = Self.rates[name], let newValue { self[keyPath: rate] = newValue } }
    }

    /// The names of all features.
    public static var names: [String] { rates.keys.sorted() }

    /// The features that drawn configurations leave at their defaults: drawing another one would
    /// change what existing seeds do.
    static let undrawn: Set = ["roundedNumbers", "slowBrowsers", "droppedSets"]

    private static var rates: [String: WritableKeyPath<Features, Double>] {
      [
        "undo": \.undo, "boundedCounters": \.boundedCounters, "cutAndPaste": \.cutAndPaste,
        "rootReferences": \.rootReferences, "localHolders": \.localHolders,
        "serverLocalHolders": \.serverLocalHolders, "throwing": \.throwing,
        "throttling": \.throttling, "dictionaries": \.dictionaries, "rules": \.rules,
        "roundedNumbers": \.roundedNumbers,
        "slowBrowsers": \.slowBrowsers, "droppedSets": \.droppedSets,
      ]
    }
  }
}
