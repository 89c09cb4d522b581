/// A bound that the result of a row has to keep.
enum Bar: Sendable {
  /// At most this ratio to the peer; without a peer, at most this figure.
  case most(Double)
  /// At most this figure of ours, whatever the peer's.
  case figure(Double)
  /// At least this figure of ours: for rates.
  case least(Double)
  /// At least this ratio to the peer: for rates.
  case leastRatio(Double)

  func holds(_ measurement: Measurement) -> Bool {
    switch self {
    case .most(let bar): (measurement.ratio ?? measurement.ours.median) <= bar
    case .figure(let bar): measurement.ours.median <= bar
    case .least(let bar): measurement.ours.median >= bar
    case .leastRatio(let bar): (measurement.ratio ?? 0) >= bar
    }
  }

  /// The number in it.
  var value: Double {
    switch self {
    case .most(let value), .figure(let value), .least(let value), .leastRatio(let value): value
    }
  }
}

extension Bar: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
  init(floatLiteral value: Double) { self = .most(value) }
  init(integerLiteral value: Int) { self = .most(Double(value)) }
}
