/// The names of the files of a log.
package enum LogNames {
  /// Locked by whoever writes, and says how much is durable; see ``LogMark``.
  package static let lock = "lock"
  /// A segment that is being made.
  static let newSegment = "segment.tmp"
  /// A snapshot that is being made.
  static let newSnapshot = "snapshot.tmp"

  /// The segment whose first record has the number `first`.
  static func segment(_ first: Int) -> String { "log-\(padded(first)).jsonl" }

  /// The snapshot of everything up to `sequence`.
  static func snapshot(_ sequence: Int) -> String { "snapshot-\(padded(sequence)).jsonl" }

  /// The number in the name of a segment; nil for every other file.
  static func first(ofSegment name: String) -> Int? {
    number(in: name, after: "log-").flatMap { segment($0) == name ? $0 : nil }
  }

  /// The number in the name of a snapshot; nil for every other file.
  static func sequence(ofSnapshot name: String) -> Int? {
    number(in: name, after: "snapshot-").flatMap { snapshot($0) == name ? $0 : nil }
  }

  private static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(12 - digits.count, 0)) + digits
  }

  private static func number(in name: String, after prefix: String) -> Int? {
    guard name.hasPrefix(prefix), name.hasSuffix(".jsonl") else { return nil }
    return Int(name.dropFirst(prefix.count).dropLast(6))
  }
}
