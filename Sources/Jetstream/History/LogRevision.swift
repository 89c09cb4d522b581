import Foundation

/// A named state in a log.
///
/// ```swift
/// try await log.mark("Before the review", author: "Ada")
/// for revision in try log.reader.revisions() { print(revision.sequence, revision.label) }
/// if let last = try log.reader.revisions(limit: 1).first {
///   try log.reader.restore(into: then, at: last.sequence)
/// }
/// ```
///
/// A revision names a state; it does not keep it. If ``LogConfiguration/history`` drops old records, the state of
/// an old revision can no longer be restored, while the revision itself stays.
public struct LogRevision: Sendable, Hashable {
  /// The sequence of the revision's record: the named state is that of the log at this record.
  public let sequence: Int
  /// The name of the state.
  public let label: String
  /// A longer description; nil if none was given.
  public let details: String?
  /// The author of the name; nil if none was given.
  public let author: String?
  /// The time when the state was named, in whole milliseconds; nil if none was given.
  public let date: Date?
}

extension FragmentLog {
  /// Names the state that the log has now, which is that of the last change set appended.
  ///
  /// Changes that are still being collected are not in it; see ``Scope/flush()``. Traps if a client or a server has
  /// kept a scope in the log since it was opened: it has to be the only one that appends to it. Close the log, and open it again.
  ///
  /// - Returns: the sequence of the revision, once it is durable.
  /// - Throws: ``LogError/backlog(bytes:)``, ``LogError/tooLong(bytes:)`` or ``LogError/closed``, and what the disk has to say.
  @discardableResult
  public func mark(
    _ label: String, details: String? = nil, author: String? = nil, date: Date? = Date()
  ) async throws(LogError) -> Int {
    precondition(
      !isKept,
      "A log that a client or a server keeps takes records from no others: mark it when it is not in use."
    )
    var object: JSONObject = ["label": .string(label)]
    if let details { object["details"] = .string(details) }
    if let author { object["author"] = .string(author) }
    if let date { object["date"] = .double(date.milliseconds / 1000) }
    var payload: [UInt8] = []
    JSONValue.object(object).write(to: &payload)
    let receipt = try records.append(.revision, payload)
    try await receipt.durable()
    return receipt.sequence
  }
}

extension LogReader {
  /// The revisions that are written, the newest first. Reads the disk on the caller; cost: O(n) in what is kept.
  ///
  /// - Parameters:
  ///   - sequence: only those with a smaller number are wanted, such as those behind the last one of the
  ///     page before.
  ///   - limit: how many are wanted at most.
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)`` or ``LogError/file(_:)``.
  public func revisions(
    before sequence: Int = .max, limit: Int = .max
  ) throws(LogError) -> [LogRevision] {
    // A snapshot carries what stood before it along.
    var found = try snapshot()?.kept ?? []
    var cursor = try read(from: max(try firstSequence() ?? 1, 1))
    let carried = Set(found.map(\.sequence))
    while let record = try cursor.next() {
      if record.kind == .revision, !carried.contains(record.sequence) { found.append(record) }
    }
    var result: [LogRevision] = []
    for record in found.sorted(by: { $0.sequence > $1.sequence })
    where record.kind == .revision && record.sequence < sequence {
      if result.count >= limit { break }
      result.append(try LogRevision(record))
    }
    return result
  }
}

extension LogRevision {
  /// Reads a revision from a record of the kind ``LogKind/revision``.
  ///
  /// - Throws: ``LogError/unreadable(sequence:problem:)`` if the record is of another kind, or if its content is no revision.
  package init(_ record: LogRecord) throws(LogError) {
    guard record.kind == .revision else {
      throw .unreadable(
        sequence: record.sequence, problem: "it is a \(record.kind.rawValue), not a revision")
    }
    self = try record.read { json throws(FragmentError) in
      guard case .object(let object) = json else { throw .notAnObject }
      return LogRevision(
        sequence: record.sequence, label: try object.fragmentString("label"),
        details: try object.optionalString("details"), author: try object.optionalString("author"),
        date: try object.optionalDate("date"))
    }
  }
}
