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
  /// The same in the order in which that began, among others that are gone.
  private var closingOrder: [Int] = []

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

  /// Removes, if there are too many sockets, those whose WebSockets have been closing for the longest time, and returns
  /// them. Cost: O(1) if there are not, and otherwise O(n) in those that are being closed, of which a quarter is removed.
  mutating func takeLastingCloses(_ limits: WaitingSocketLimits) -> [Int] {
    guard let most = limits.total, groups.count + closing.count > most else { return [] }
    let excess = groups.count + closing.count - most
    forgetGone()
    let taken = closingOrder.prefix(max(excess, closing.count / 4))
    closing.subtract(taken)
    closingOrder.removeFirst(taken.count)
    return Array(taken)
  }

  private mutating func forgetGone() { closingOrder.removeAll { !closing.contains($0) } }

  /// Removes a socket that has become a WebSocket, or is closed. Does nothing if it was removed before.
  mutating func remove(_ id: Int) {
    if closing.remove(id) != nil {
      if closing.count < closingOrder.count / 2 { forgetGone() }
      return
    }
    guard let group = groups.removeValue(forKey: id), let group else { return }
    let count = counts[group, default: 0] - 1
    counts[group] = count > 0 ? count : nil
  }
}
