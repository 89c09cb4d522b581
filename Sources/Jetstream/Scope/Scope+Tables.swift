extension Scope {
  /// The sizes, by name, of the tables that are empty once all changes are in delivered change sets; for tests.
  package var restingTables: [String: Int] {
    // Models that only local properties hold stay unshared while they do.
    let unshared = unshared.filter { $0.tree !== tree || !$0.isNew }
    return [
      "entered": entered.count, "left": left.count, "changed": changed.count,
      "remembered": remembered.count, "unshared": unshared.count, "loosened": loosened.count,
      "suspects": tree.suspects.count, "sealed": sealed.count,
    ]
  }
}
