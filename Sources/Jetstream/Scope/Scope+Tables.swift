extension Scope {
  /// The sizes of the tables that are empty when all changes are in change sets that were delivered, by name; for
  /// tests.
  package var restingTables: [String: Int] {
    [
      "entered": entered.count, "left": left.count, "changed": changed.count,
      "remembered": remembered.count, "unshared": unshared.count, "loosened": loosened.count,
      "suspects": suspects.count, "sealed": sealed.count,
    ]
  }
}
