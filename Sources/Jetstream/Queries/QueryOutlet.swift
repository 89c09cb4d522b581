/// The destination of the changes of a query.
enum QueryOutlet {
  /// Changes of the rows are computed, and told, while they are observed or tracked.
  case rows(Signal<QueryChange>, ResultTracking)
  /// Something else is made of the rows: `refresh` brings it up to date, and returns true if that has changed it.
  case value(Signal<QueryChange>, ResultTracking, refresh: () -> Bool)

  var signal: Signal<QueryChange> {
    switch self {
    case .rows(let signal, _), .value(let signal, _, _): signal
    }
  }

  var wantsChanges: Bool {
    if case .rows(let signal, let tracking) = self {
      signal.hasListeners || tracking.isRead
    } else {
      false
    }
  }

  /// Returns the calls with a change: of trackings, and then of listeners.
  func calls(with change: QueryChange) -> any PendingCalls {
    switch self {
    case .rows(let signal, let tracking):
      QueryCalls(change.movesRows ? tracking : nil, signal.calls(with: change))
    case .value(let signal, let tracking, _):
      QueryCalls(tracking, signal.calls(with: change))
    }
  }
}

/// The calls with one change of a query.
private final class QueryCalls: PendingCalls {
  private var tracking: ResultTracking?
  private let calls: any PendingCalls

  init(_ tracking: ResultTracking?, _ calls: any PendingCalls) {
    (self.tracking, self.calls) = (tracking, calls)
  }

  func callNext() -> Bool {
    guard let tracking else { return calls.callNext() }
    self.tracking = nil
    tracking.report()
    return true
  }
}

extension QueryEngine {
  /// Returns a filter for an observer that is added now and sees the current rows: it accepts later changes only, and none
  /// once another observer has stopped the query.
  func isLater() -> (QueryChange) -> Bool {
    let now = version
    return { [weak self] in $0.version > now && self?.isStopped != true }
  }
}
