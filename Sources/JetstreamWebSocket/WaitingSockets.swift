/// The bounds of the accepted sockets that are no WebSockets: those that still have to ask for something, those that are
/// sent a page, and those whose WebSocket is being closed.
///
/// A socket is one for a limited time only, but it takes a descriptor, and a process has few. A new one that exceeds a
/// bound is closed at once, without an answer. For all others, those whose WebSocket has been closing for the longest
/// time make room.
package struct WaitingSocketLimits: Sendable {
  /// The largest number of them; nil for no limit. When half of it is reached, connections are not kept alive behind a
  /// response: a peer that asks for a page again and again holds its socket for no longer than others.
  package var total: Int?
  /// The largest number of those from one address that were no WebSockets yet; nil for no limit.
  package var perAddress: Int?
  /// Returns the name under which an address counts; nil if it is not limited by itself.
  package var group: @Sendable (String) -> String? = { $0 }
  /// Called when a socket is dropped, with true if its address has too many.
  package var onDrop: @Sendable (_ ofAddress: Bool) -> Void = { _ in }

  package init() {}
}

/// The sockets that count for ``WaitingSocketLimits``.
struct WaitingSockets: Sendable {
  enum Excess { case total, address }

  private var groups: [Int: String?] = [:]
  private var counts: [String: Int] = [:]
  /// The sockets whose WebSocket is being closed.
  private var closing: Set<Int> = []
  /// Their ids, from ``firstClosing`` on the oldest first, with ids that were removed among them.
  private var closingOrder: [Int] = []
  private var firstClosing = 0

  /// The number of those that were no WebSockets yet.
  var count: Int { groups.count }

  /// Adds a socket, unless it exceeds a limit, which is returned then. Cost: O(1).
  mutating func add(
    _ id: Int, from address: String?, _ limits: WaitingSocketLimits
  ) -> Excess? {
    let group = address.flatMap(limits.group)
    if let group, let most = limits.perAddress, counts[group, default: 0] >= most {
      return .address
    }
    if let most = limits.total, groups.count >= most { return .total }
    groups[id] = .some(group)
    if let group { counts[group, default: 0] += 1 }
    return nil
  }

  /// Adds a socket whose WebSocket is being closed.
  mutating func addClosing(_ id: Int) {
    if closing.insert(id).inserted { closingOrder.append(id) }
  }

  /// Removes the sockets whose WebSockets have been closing for the longest time, as many as there are too many sockets, and
  /// returns them. Cost: O(1) for each that is added, on average.
  mutating func takeOldestCloses(_ limits: WaitingSocketLimits) -> [Int] {
    guard let most = limits.total else { return [] }
    var taken: [Int] = []
    while groups.count + closing.count > most, firstClosing < closingOrder.count {
      let id = closingOrder[firstClosing]
      firstClosing += 1
      if closing.remove(id) != nil { taken.append(id) }
    }
    forgetRemoved()
    return taken
  }

  private mutating func forgetRemoved() {
    guard closing.count < closingOrder.count / 2 else { return }
    closingOrder = closingOrder[firstClosing...].filter(closing.contains)
    firstClosing = 0
  }

  /// Removes a socket that has become a WebSocket, or is closed. Does nothing if it was removed before.
  mutating func remove(_ id: Int) {
    // A close may have begun before the listener has heard of the WebSocket: the socket goes on closing then.
    guard let group = groups.removeValue(forKey: id) else {
      if closing.remove(id) != nil { forgetRemoved() }
      return
    }
    guard let group else { return }
    let count = counts[group, default: 0] - 1
    counts[group] = count > 0 ? count : nil
  }
}
