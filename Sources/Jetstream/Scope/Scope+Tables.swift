extension Scope {
  /// The sizes, by name, of the tables that are empty once all changes are in delivered change sets; for tests.
  package var restingTables: [String: Int] {
    // Models that only local properties hold stay unshared while they do.
    let unshared = interval.unshared.filter { $0.tree !== tree || !$0.isNew }
    return [
      "entered": interval.entered.count, "left": interval.departed.models.count,
      "changed": interval.changed.count,
      "remembered": interval.departed.states.count, "unshared": unshared.count,
      "loosened": interval.loosened.count,
      "suspects": tree.suspects.count, "sealed": sealed.count,
    ]
  }
}
