extension Scope {
  /// The sizes of the tables that are empty when all changes are in change sets that were delivered, by name; for
  /// tests.
  package var restingTables: [String: Int] {
    // What only local properties hold stays unshared for as long as they do.
    let unshared = unshared.filter { $0.scope !== self || !$0.isNew }
    return [
      "entered": entered.count, "left": left.count, "changed": changed.count,
      "remembered": remembered.count, "unshared": unshared.count, "loosened": loosened.count,
      "suspects": suspects.count, "sealed": sealed.count,
    ]
  }
}
