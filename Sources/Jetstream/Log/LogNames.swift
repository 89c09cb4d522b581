/// The file names of a log.
package enum LogNames {
  /// The file that the writer locks. Its content tells which records are durable; see ``LogMark``.
  package static let lock = "lock"
  /// A segment that is not complete yet.
  static let newSegment = "segment.tmp"
  /// A snapshot that is not complete yet.
  static let newSnapshot = "snapshot.tmp"

  /// Returns the name of the segment whose first record is `first`.
  static func segment(_ first: Int) -> String { "log-\(padded(first)).jsonl" }

  /// Returns the name of the snapshot of all records up to `sequence`.
  static func snapshot(_ sequence: Int) -> String { "snapshot-\(padded(sequence)).jsonl" }

  /// Returns the first record of the segment with this name; nil for any other file.
  static func first(ofSegment name: String) -> Int? {
    number(in: name, after: "log-").flatMap { segment($0) == name ? $0 : nil }
  }

  /// Returns the sequence number of the snapshot with this name; nil for any other file.
  static func sequence(ofSnapshot name: String) -> Int? {
    number(in: name, after: "snapshot-").flatMap { snapshot($0) == name ? $0 : nil }
  }

  private static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(12 - digits.count, 0)) + digits
  }

  /// Returns the number in a name; nil if it has more than 18 digits, as no number of a line has.
  private static func number(in name: String, after prefix: String) -> Int? {
    guard name.hasPrefix(prefix), name.hasSuffix(".jsonl") else { return nil }
    let digits = name.dropFirst(prefix.count).dropLast(6)
    guard digits.utf8.count <= 18, let number = Int(digits), number >= 0 else { return nil }
    return number
  }
}
