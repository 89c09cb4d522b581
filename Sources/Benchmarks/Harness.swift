/// Rows that belong together and are run by one name.
struct Suite: Sendable {
  let name: String
  let summary: String
  /// Made when the suite runs.
  let rows: @Sendable () -> [Row]
}

/// One thing that is measured, beside a peer where there is one.
struct Row {
  let name: String
  /// What the figures are, such as `ns` for nanoseconds an operation.
  let unit: String
  /// What our figure is compared with.
  var peerName: String?
  /// The most that the ratio may be; without a peer, the most that our figure may be.
  var bar: Double?
  var rounds = 15
  /// Makes what is measured. Called once, before the first round; what it holds goes with the row.
  let prepare: () -> Probes
}

/// Measures one round each time it is called, and gives the figure in the row's unit, or
/// ``Row/failed(_:)``.
typealias Probe = () -> Double

/// What a row measures.
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

  /// What a probe gives that could not measure; says why.
  static func failed(_ reason: String) -> Double {
    Console.error("benchmarks: \(reason)")
    return .nan
  }
}

/// The figures of all rounds, boiled down.
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

/// What came out of a row.
struct Measurement {
  let ours: Figures
  let peer: Figures?
  let bar: Double?

  /// A row that could not be measured.
  static let failed = Measurement(ours: Figures([.nan]), peer: nil, bar: nil)

  var isFailed: Bool { ours.median.isNaN }

  /// Our median divided by the peer's.
  var ratio: Double? { peer.map { ours.median / $0.median } }

  /// Whether the bar holds; nil without a bar.
  var holds: Bool? { bar.map { (ratio ?? ours.median) <= $0 } }
}

/// The time that `body` takes, in nanoseconds.
@inline(__always)
func nanoseconds(_ body: () -> Void) -> Double {
  let clock = ContinuousClock()
  let start = clock.now
  body()
  let parts = start.duration(to: clock.now).components
  return Double(parts.seconds) * 1e9 + Double(parts.attoseconds) / 1e9
}

/// Where results go, so that the optimizer cannot leave out the work that gave them.
enum Sink {
  nonisolated(unsafe) private static var total = 0

  @inline(never)
  static func take(_ value: Int) { total &+= value }

  @inline(never)
  static func take(_ object: AnyObject) { total &+= ObjectIdentifier(object).hashValue }

  /// Reads the total, without which nobody would have to compute it.
  static func close() { if total == .min { print("") } }
}
