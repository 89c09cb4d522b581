/// The bounds of the accepted sockets that are no WebSockets: those that still have to ask for something, and those
/// that are sent a page.
///
/// A socket is one for a limited time only, but it takes a descriptor, and a process has few. One that exceeds a
/// bound is closed at once, without an answer.
package struct WaitingSocketLimits: Sendable {
  /// The largest number of them; nil for no limit. When half of it is reached, connections are not kept alive behind a
  /// response: a peer that asks for a page again and again holds its socket for no longer than others.
  package var total: Int?
  /// The largest number of them from one address; nil for no limit.
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

  /// Removes a socket that has become a WebSocket, or is closed. Does nothing if it was removed before.
  mutating func remove(_ id: Int) {
    guard let group = groups.removeValue(forKey: id), let group else { return }
    let count = counts[group, default: 0] - 1
    counts[group] = count > 0 ? count : nil
  }
}
