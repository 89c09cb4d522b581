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
  func calls(with change: QueryChange) -> QueryCalls {
    switch self {
    case .rows(let signal, let tracking):
      QueryCalls(
        change: change, tracking: change.movesRows ? tracking : nil, audience: signal.audience)
    case .value(let signal, let tracking, _):
      QueryCalls(change: change, tracking: tracking, audience: signal.audience)
    }
  }
}

/// The calls with one change of a query that are left.
///
/// A value, since a tick is not to allocate for each query: the query takes a call, stores what is left, and makes the
/// call after that.
struct QueryCalls {
  enum Call {
    case tracking(ResultTracking)
    case listener(Signal<QueryChange>.Listener, QueryChange)

    func make() {
      switch self {
      case .tracking(let tracking): tracking.report()
      case .listener(let listener, let change): _ = listener.call(change)
      }
    }
  }

  let change: QueryChange
  var tracking: ResultTracking?
  var audience: Signal<QueryChange>.Audience

  /// Takes the next call. Returns nil if there is none left.
  mutating func takeNext() -> Call? {
    if let tracking {
      self.tracking = nil
      return .tracking(tracking)
    }
    return audience.takeNext().map { .listener($0, change) }
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
