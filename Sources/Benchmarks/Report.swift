import Foundation

/// Prints the results, for people or for programs, line by line as they come.
struct Report {
  private let suite: String
  private let isJSON: Bool
  private var hasHeader = false
  private var missed = 0
  private var failed = 0

  init(suite: String, isJSON: Bool) {
    self.suite = suite
    self.isJSON = isJSON
  }

  mutating func add(_ row: Row, _ measurement: Measurement) {
    if measurement.holds == false { missed += 1 }
    if measurement.isFailed { failed += 1 }
    if isJSON { printJSON(row, measurement) } else { printLine(row, measurement) }
    fflush(nil)
  }

  /// Ends the suite.
  func finish() {
    guard !isJSON, hasHeader else { return }
    if failed > 0 { print("Rows failed: \(failed).") }
    print(missed == 0 ? "All bars hold.\n" : "Bars missed: \(missed).\n")
  }

  // MARK: For people

  private mutating func printLine(_ row: Row, _ measurement: Measurement) {
    if !hasHeader {
      hasHeader = true
      print(
        line(
          suite, "ours", "(range)", "peer", "(range)", "", "ratio", "bar", "", peer: "peer is"))
    }
    if measurement.isFailed {
      return print(line(row.name, "FAILED", "", "", "", row.unit, "", "", "", peer: ""))
    }
    let bar = row.bar.map { bar in
      switch bar {
      case .most(let value): "\(measurement.ratio == nil ? "" : "x ")\(short(value))"
      case .figure(let value): short(value)
      case .least(let value): "from \(short(value))"
      case .leastRatio(let value): "from x \(short(value))"
      }
    }
    print(
      line(
        row.name, short(measurement.ours.median), range(measurement.ours),
        measurement.peer.map { short($0.median) } ?? "",
        measurement.peer.map(range) ?? "", row.unit,
        measurement.ratio.map { "x \(short($0))" } ?? "", bar ?? "",
        measurement.holds.map { $0 ? "holds" : "MISSED" } ?? "", peer: row.peerName ?? ""))
  }

  private func line(
    _ name: String, _ ours: String, _ oursRange: String, _ peer: String, _ peerRange: String,
    _ unit: String, _ ratio: String, _ bar: String, _ holds: String, peer peerName: String
  ) -> String {
    let cells = [
      left(name, 48), right(ours, 9), left(oursRange, 15), right(peer, 9), left(peerRange, 15),
      left(unit, 6), right(ratio, 8), right(bar, 10), left(holds, 6), peerName,
    ]
    var text = cells.joined(separator: " ")
    while text.last == " " { text.removeLast() }
    return text
  }

  private func range(_ figures: Figures) -> String {
    "\(short(figures.least))..\(short(figures.most))"
  }

  private func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(width - text.count, 0))
  }

  private func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
  }

  /// Returns the value with three significant digits, and small ones with four places.
  private func short(_ value: Double) -> String {
    let places = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.095 || value == 0 ? 2 : 4
    return String(format: "%.\(places)f", value)
  }

  // MARK: For programs

  private func printJSON(_ row: Row, _ measurement: Measurement) {
    let members = [
      ("suite", quoted(suite)), ("name", quoted(row.name)),
      ("ours", measurement.isFailed ? "null" : number(measurement.ours.median)),
      ("peer", number(measurement.peer?.median)),
      ("peerName", row.peerName.map(quoted) ?? "null"), ("unit", quoted(row.unit)),
      ("ratio", number(measurement.ratio)), ("bar", number(row.bar?.value)),
      ("holds", measurement.holds.map { "\($0)" } ?? "null"),
    ]
    print("{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
  }

  /// Quotes a name, which contains neither quotes nor backslashes.
  private func quoted(_ text: String) -> String { "\"\(text)\"" }

  private func number(_ value: Double?) -> String {
    value.map { String(format: "%.4g", $0) } ?? "null"
  }
}

/// The error output of the process.
enum Console {
  static func error(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }

  static func exit(_ status: Int32) -> Never { Foundation.exit(status) }
}
