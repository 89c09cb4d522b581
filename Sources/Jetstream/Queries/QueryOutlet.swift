/// The destination of the changes of a query.
enum QueryOutlet {
  /// Changes of the rows are computed, and told, while `isWanted` returns true.
  case rows(isWanted: () -> Bool, (QueryChange) -> Void)
  /// Something else is made of the rows: `refresh` brings it up to date, and returns true if that has changed it.
  case value(refresh: () -> Bool, (QueryChange) -> Void)

  var wantsChanges: Bool { if case .rows(let isWanted, _) = self { isWanted() } else { false } }

  func tell(_ change: QueryChange) {
    switch self {
    case .rows(_, let tell), .value(_, let tell): tell(change)
    }
  }
}
