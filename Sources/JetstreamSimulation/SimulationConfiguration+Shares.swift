extension SimulationConfiguration {
  /// The rate or share with this name, such as `revocations`, that is of neither the faults nor the features; nil if there
  /// is none. Setting an unknown one, or setting nil, does nothing.
  package subscript(share name: String) -> Double? {
    get { Self.share(name).map { self[keyPath: $0] } }
    set { if let share = Self.share(name), let newValue { self[keyPath: share] = newValue } }
  }

  /// The names of ``subscript(share:)``.
  package static let shareNames = ["calls", "closings", "conflicts", "guarding", "revocations"]

  private static func share(_ name: String) -> WritableKeyPath<Self, Double>? {
    switch name {
    case "calls": \.calls
    case "closings": \.closings
    case "conflicts": \.conflicts
    case "guarding": \.guarding
    case "revocations": \.revocations
    default: nil
    }
  }
}
