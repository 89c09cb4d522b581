extension SimulationConfiguration {
  /// The rate or share with this name, such as `revocations`, that is of neither the faults nor the features; nil if there
  /// is none. Setting an unknown one, or setting nil, does nothing.
  package subscript(share name: String) -> Double? {
    get { Self.shares[name].map { self[keyPath: $0] } }
    set { if let share = Self.shares[name], let newValue { self[keyPath: share] = newValue } }
  }

  /// The names of ``subscript(share:)``.
  package static var shareNames: [String] { shares.keys.sorted() }

  private static var shares: [String: WritableKeyPath<Self, Double>] {
    [
      "calls": \.calls, "closings": \.closings, "conflicts": \.conflicts, "guarding": \.guarding,
      "revocations": \.revocations,
    ]
  }
}
