/// When the clients of a ticker want to be served: each has one appointment at most.
struct Appointments {
  private var seats: ContiguousArray<TickSeat> = []
  /// When the first of them is due; nil if there is none.
  private(set) var next: Duration?

  /// Has the client of `seat` served at the first tick from `due` on, instead of when it asked before.
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

  /// The clients that are due and still there, in the order in which they asked. Nobody waits for them
  /// any more.
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

/// The clients that a tick serves, in order. Mostly there is one, for which nothing is allocated.
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

/// Where a ticker looks for one client. The client has it for good, so that asking for a tick again and
/// again makes no objects.
///
/// The client is held weakly, and does not say when it goes: that may be on another thread, where whoever
/// let go of it last happened to be.
final class TickSeat {
  private(set) weak var client: (any TickClient)?
  /// When the client is to be served; nil if it waits for nothing.
  fileprivate var due: Duration?

  init(_ client: any TickClient) { self.client = client }
}

/// Something that takes part in a tick around the delivery to observers.
protocol TickClient: AnyObject {
  /// Where its ticker finds it.
  var seat: TickSeat { get }
  /// Seals what was collected: what observers do from here on belongs to the next tick.
  func tickWillDeliver()
  /// Delivers what was sealed.
  func tickDidDeliver()
}
