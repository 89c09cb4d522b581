#if os(Linux)
/// A protocol by which the load talks to a server.
protocol FanoutWire {
  /// Appends the first bytes that a connection sends.
  func greet(_ connection: FanoutConnection)

  /// Takes bytes that have arrived: counts deliveries, and appends answers to the connection's output.
  ///
  /// - Returns: the number of bytes that were taken. The others come again, with more behind them.
  mutating func take(
    _ bytes: Span<UInt8>, of connection: FanoutConnection, _ tally: inout FanoutTally
  ) throws -> Int

  /// Appends the next message of the publisher to its output.
  ///
  /// - Parameter time: the time that the message has as its value.
  mutating func publish(_ time: Int, by publisher: FanoutConnection)
}

/// The deliveries of a load.
struct FanoutTally {
  /// The number of deliveries to all watchers.
  private(set) var deliveries = 0
  /// The time at which the bytes arrived that are being taken.
  var now = 0
  /// True while latencies are recorded.
  var isMeasuring = false
  private(set) var latencies: [Int] = []

  init() { latencies.reserveCapacity(1 << 20) }

  /// Counts messages that have arrived at a watcher.
  mutating func add(_ count: Int, to connection: FanoutConnection) {
    deliveries += count
    connection.delivered += count
    if count > 0 { connection.lastDelivery = now }
  }

  /// Records the latency of a message that was sent at `time`.
  mutating func record(_ time: Int) {
    if isMeasuring { latencies.append(now - time) }
  }
}
#endif
