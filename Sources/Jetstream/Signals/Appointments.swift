/// The times at which the clients of a ticker ask to be served. Each client has at most one.
struct Appointments {
  private var seats: ContiguousArray<TickSeat> = []
  /// The earliest due time; nil if no client waits.
  private(set) var next: Duration?

  /// Schedules the client of `seat` for the first tick at or after `due`. Replaces its earlier
  /// request.
  mutating func make(for seat: TickSeat, due: Duration) {
    let old = seat.due
    seat.due = due
    if old == nil {
      seats.append(seat)
      next = next.map { min($0, due) } ?? due
    } else {
      next = seats.lazy.compactMap(\.due).min()
    }
  }

  /// Removes the entries that are due and returns their clients in the order in which they asked.
  /// Clients that have been released are left out.
  @inline(__always)
  mutating func take(dueBy now: Duration) -> DueClients {
    guard let next, next <= now else { return DueClients() }
    return takeAll(dueBy: now)
  }

  private mutating func takeAll(dueBy now: Duration) -> DueClients {
    var clients = DueClients()
    var isSomebodyLeft = false
    for seat in seats {
      if let due = seat.due, due > now {
        isSomebodyLeft = true
        continue
      }
      seat.due = nil
      if let client = seat.client { clients.append(client) }
    }
    if isSomebodyLeft {
      seats.removeAll { $0.due == nil }
      next = seats.lazy.compactMap(\.due).min()
    } else {
      seats.clear()
      next = nil
    }
    return clients
  }
}

/// The clients that one tick serves, in order. A single client, the usual case, needs no
/// allocation.
struct DueClients {
  private var first: (any TickClient)?
  private var others: ContiguousArray<any TickClient> = []

  mutating func append(_ client: any TickClient) {
    if first == nil { first = client } else { others.append(client) }
  }

  @inline(__always)
  func forEach(_ body: (any TickClient) -> Void) {
    guard let first else { return }
    body(first)
    for client in others { body(client) }
  }
}

/// A client's entry in its ticker's schedule. The client keeps the same seat for its lifetime, so
/// that repeated requests allocate nothing.
///
/// The client is held weakly. It does not unregister when it is released, since that can happen on
/// any thread; the ticker skips its entry instead.
final class TickSeat {
  private(set) weak var client: (any TickClient)?
  /// The time at which the client is to be served; nil while it waits for nothing.
  fileprivate var due: Duration?

  init(_ client: any TickClient) { self.client = client }
}

/// An object that takes part in a tick before and after the delivery to observers.
protocol TickClient: AnyObject {
  /// The client's entry in the schedule of its ticker.
  var seat: TickSeat { get }
  /// Seals the changes collected so far. Changes that observers make afterwards belong to the next
  /// tick.
  func tickWillDeliver()
  /// Delivers the changes that ``tickWillDeliver()`` sealed.
  func tickDidDeliver()
}
