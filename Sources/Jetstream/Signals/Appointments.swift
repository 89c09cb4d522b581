/// When the clients of a ticker want to be served: each has one appointment at most.
struct Appointments {
  private struct Entry {
    let due: Duration
    /// Unowned: a client that goes cancels its appointment.
    unowned(unsafe) let client: any TickClient
  }

  private var entries: ContiguousArray<Entry> = []
  /// When the first of them is due; nil if there is none.
  private(set) var next: Duration?

  /// Has `client` served at the first tick from `due` on, instead of when it asked before.
  mutating func make(for client: any TickClient, due: Duration) {
    cancel(of: client)
    entries.append(Entry(due: due, client: client))
    next = next.map { min($0, due) } ?? due
  }

  /// Cost: O(n) in the clients that wait.
  mutating func cancel(of client: any TickClient) {
    guard let place = entries.firstIndex(where: { $0.client === client }) else { return }
    entries.remove(at: place)
    next = entries.lazy.map(\.due).min()
  }

  /// The clients that are due, in the order in which they asked. Nobody waits for them any more.
  @inline(__always)
  mutating func take(dueBy now: Duration) -> ContiguousArray<any TickClient> {
    guard let next, next <= now else { return [] }
    return takeAll(dueBy: now)
  }

  private mutating func takeAll(dueBy now: Duration) -> ContiguousArray<any TickClient> {
    var due: ContiguousArray<any TickClient> = []
    for entry in entries where entry.due <= now { due.append(entry.client) }
    if due.count == entries.count {
      entries.removeAll(keepingCapacity: true)
    } else {
      entries.removeAll { $0.due <= now }
    }
    next = entries.lazy.map(\.due).min()
    return due
  }
}

/// Something that takes part in a tick around the delivery to observers. One that asks for a tick has to
/// cancel its appointment before it goes.
protocol TickClient: AnyObject {
  /// Seals what was collected: what observers do from here on belongs to the next tick.
  func tickWillDeliver()
  /// Delivers what was sealed.
  func tickDidDeliver()
}
