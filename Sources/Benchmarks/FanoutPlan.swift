#if os(Linux)
/// A load on a server that tells many watchers of the changes of one publisher.
struct FanoutPlan {
  enum Peer: String {
    /// Our server, with sessions of that version of the protocol.
    case version1, version2
    case redis
  }

  var peer: Peer
  let watchers: Int
  /// The number of change sets in flight. One counts as long as the watchers have not received it, on average.
  let window: Int
  /// The number of change sets in a second; nil for as many as the window permits.
  var rate: Int?

  /// The plan as arguments of a command line.
  var arguments: [String] { [peer.rawValue, "\(watchers)", "\(window)", "\(rate ?? 0)"] }
}

extension FanoutPlan {
  /// Reads the arguments of a command line; nil if they are others.
  init?(_ arguments: some Collection<String>) {
    let numbers = arguments.dropFirst().compactMap { Int($0) }
    guard let peer = arguments.first.flatMap(Peer.init), arguments.count == 4, numbers.count == 3,
      numbers[0] > 0, numbers[1] > 0, numbers[2] >= 0
    else { return nil }
    self.init(
      peer: peer, watchers: numbers[0], window: numbers[1],
      rate: numbers[2] == 0 ? nil : numbers[2])
  }
}

/// The figures of a load.
struct FanoutFigures {
  /// The number of deliveries to all watchers in a second.
  let deliveries: Double
  /// The processor time of the server for a delivery, in microseconds.
  let cost: Double
  /// The latency of a delivery in milliseconds: the median, and the 99th percentile.
  let median, slowest: Double
  /// The shares of their processors that the server and the load have used.
  let server, load: Double

  static let failed = FanoutFigures([.nan, .nan, .nan, .nan, .nan, .nan])!

  var line: String {
    [deliveries, cost, median, slowest, server, load].map { "\($0)" }.joined(separator: " ")
  }
}

extension FanoutFigures {
  /// Reads a line with figures; nil if it says something else.
  init?(line: String) { self.init(line.split(separator: " ").compactMap { Double($0) }) }

  private init?(_ figures: [Double]) {
    guard figures.count == 6 else { return nil }
    self.init(
      deliveries: figures[0], cost: figures[1], median: figures[2], slowest: figures[3],
      server: figures[4], load: figures[5])
  }
}
#endif
