import Synchronization

/// The number of times that each limit of a server was reached, on all of its threads.
final class LimitHits: Sendable {
  private let counts = Mutex<[ServerLimit: Int]>([:])

  func note(_ limit: ServerLimit) { counts.withLock { $0[limit, default: 0] += 1 } }

  /// The counts by the names of the limits; those that were never reached are left out.
  var byName: [String: Int] {
    let counts = counts.withLock { $0 }
    return Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
  }
}
