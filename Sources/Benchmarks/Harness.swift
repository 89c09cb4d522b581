/// Rows that belong together and are run by one name.
struct Suite: Sendable {
  let name: String
  let summary: String
  /// True if the suite runs only when it is named.
  var isOnDemand = false
  /// Made when the suite runs.
  let rows: @Sendable () -> [Row]
}

/// One thing that is measured, beside a peer where there is one.
struct Row {
  let name: String
  /// The unit of the figures, such as `ns` for nanoseconds per operation.
  let unit: String
  /// The peer with which Jetstream's figure is compared.
  var peerName: String?
  /// The bound that the result has to keep.
  var bar: Bar?
  var rounds = 15
  /// Makes the probes. Called once, before the first round; what they retain is released with the row.
  let prepare: () -> Probes
}

/// Measures one round at each call, and returns the figure in the row's unit, or ``Row/failed(_:)``.
typealias Probe = () -> Double

/// The probes of a row.
struct Probes {
  let ours: Probe
  var peer: Probe?

  init(ours: @escaping Probe, peer: Probe? = nil) {
    self.ours = ours
    self.peer = peer
  }
}

extension Row {
  /// Runs the rounds, ours and the peer by turns and each first in every other round, after one round
  /// that does not count.
  func measure(rounds: Int?) -> Measurement {
    let probes = prepare()
    var ours: [Double] = []
    var peer: [Double] = []
    if probes.ours().isNaN { return .failed }
    if probes.peer?().isNaN == true { return .failed }
    for round in 0..<(rounds ?? self.rounds) {
      if round % 2 == 0 { ours.append(probes.ours()) }
      if let probe = probes.peer { peer.append(probe()) }
      if round % 2 == 1 { ours.append(probes.ours()) }
    }
    if (ours + peer).contains(where: \.isNaN) { return .failed }
    return Measurement(
      ours: Figures(ours), peer: peer.isEmpty ? nil : Figures(peer), bar: bar)
  }

  /// Prints why a probe could not measure, and returns the figure that stands for that.
  static func failed(_ reason: String) -> Double {
    Console.error("benchmarks: \(reason)")
    return .nan
  }
}

/// A summary of the figures of all rounds.
struct Figures {
  let median: Double
  let least: Double
  let most: Double

  init(_ values: [Double]) {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    median = sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    least = sorted[0]
    most = sorted[sorted.count - 1]
  }
}

/// The result of a row.
struct Measurement {
  let ours: Figures
  let peer: Figures?
  let bar: Bar?

  /// A row that could not be measured.
  static let failed = Measurement(ours: Figures([.nan]), peer: nil, bar: nil)

  var isFailed: Bool { ours.median.isNaN }

  /// Our median divided by the peer's.
  var ratio: Double? { peer.map { ours.median / $0.median } }

  /// True if the result is within the bar; nil without a bar.
  var holds: Bool? { bar.map { $0.holds(self) } }
}

/// Returns the time that `body` takes, in nanoseconds.
@inline(__always)
func nanoseconds(_ body: () -> Void) -> Double {
  let clock = ContinuousClock()
  let start = clock.now
  body()
  let parts = start.duration(to: clock.now).components
  return Double(parts.seconds) * 1e9 + Double(parts.attoseconds) / 1e9
}

/// Takes results, so that the optimizer cannot leave out the work that computed them.
enum Sink {
  nonisolated(unsafe) private static var total = 0

  @inline(never)
  static func take(_ value: Int) { total &+= value }

  @inline(never)
  static func take(_ object: AnyObject) { total &+= ObjectIdentifier(object).hashValue }

  /// Reads the total; without this, the compiler need not compute it.
  static func close() { if total == .min { print("") } }
}
