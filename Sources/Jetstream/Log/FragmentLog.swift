import Foundation
import Synchronization

/// The change sets of a scope on disk, so that a new process begins where the last one stopped.
///
/// ```swift
/// let log = try FragmentLog(path)
/// try await log.restore(into: scope)
/// log.record(scope) { error in print(error) }
/// ```
///
/// Each change set is one line of JSON that people can read. Recording does not wait for the disk; ``sync()`` returns when
/// everything is durable. The promises of a log, and its format, are in <doc:Logs>.
///
/// A log has one use: an app records a scope in it, or a client or a server keeps a scope in it.
///
/// The log can be used from any isolation domain; what takes a scope has to be called in that scope's.
public final class FragmentLog: Sendable {
  /// The underlying log of records. Each change set is one record.
  package let records: RecordLog
  /// The change sets appended last, so that none is appended twice.
  private let recent = Mutex(RecentSets())
  /// The use of the log; nil before the first one.
  private let use = Mutex<Use?>(nil)

  /// Opens the log in the directory at `path`, which is created with those above it if it does not exist.
  ///
  /// - Throws: ``LogError/inUse(path:)``, ``LogError/damaged(_:)``, ``LogError/file(_:)`` or
  ///   ``LogError/newerVersion(file:version:)``. Nothing has been changed then. A ``LogReader`` reads a damaged log
  ///   up to the damage.
  public init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    records = try RecordLog(path, configuration: configuration)
  }

  /// The use of a log. Each writes records of its own, and cannot read those of the others.
  package enum Use: Sendable {
    /// An app records the change sets of a scope.
    case app
    /// A client keeps what it has of a scope.
    case client
    /// A server keeps the history of a scope.
    case server

    fileprivate var before: String {
      switch self {
      case .app: "is recorded by an app already"
      case .client: "is the log of a client already"
      case .server: "is the log of a server already"
      }
    }

    fileprivate var after: String {
      switch self {
      case .app: "be recorded by an app"
      case .client: "be the log of a client"
      case .server: "be the log of a server"
      }
    }
  }

  /// Notes the use of the log, which stays the same for as long as it is open. Called once the log was read without an
  /// error, so that the wrong use of a log leaves it free for the right one.
  package func claim(_ new: Use) {
    let old = use.withLock { use in
      if let use { return use }
      use = new
      return new
    }
    precondition(
      old == new,
      "A log \(old.before), and cannot \(new.after), too: give each use a log of its own.")
  }

  /// True if a client or a server appends to the log, and has to be the only one.
  var isKept: Bool { use.withLock { $0 == .client || $0 == .server } }

  /// Uses an open log of records.
  package init(_ records: RecordLog) { self.records = records }

  /// Reads the log's past: earlier states of the scope, differences, change sets and who has written a property.
  ///
  /// A reader sees what is written to the file; ``sync()`` writes what was appended just now.
  public var reader: LogReader { LogReader(records.directory) }

  /// The findings of opening the log: a torn tail, damaged snapshots, missing records.
  public var opening: LogOpening { records.opening }

  /// The sequence number of the last record; 0 if there is none.
  public var lastSequence: Int { records.lastSequence }

  /// Appends a change set and returns its receipt. The change set is encoded before this returns,
  /// and written on a queue of the log.
  ///
  /// Appending a change set again does nothing and returns a receipt for the same record, provided
  /// that it was appended shortly before or is not durable yet. It is therefore safe to repeat a
  /// failed append.
  ///
  /// - Throws: ``LogError/backlog(bytes:)``, ``LogError/tooLong(bytes:)`` or ``LogError/closed``; nothing
  ///   was appended then. Errors of the disk are reported by the receipt.
  @discardableResult
  package func append(_ set: ChangeSet) throws(LogError) -> LogReceipt {
    var payload: [UInt8] = []
    set.write(to: &payload)
    return try recent.withLock { recent throws(LogError) in
      if let sequence = recent.sequence(of: set.id) {
        return LogReceipt(log: records, sequence: sequence)
      }
      let receipt = try records.append(.set, payload)
      recent.add(set.id, receipt.sequence, durable: records.durableSequence)
      return receipt
    }
  }

  /// Appends several change sets as one batch: after a crash, the log has all of them or none. Returns
  /// the receipt of the last one. If the last one was appended shortly before or is not durable yet,
  /// appends nothing. Traps if `sets` is empty.
  ///
  /// - Throws: ``LogError/backlog(bytes:)``, ``LogError/tooLong(bytes:)`` or ``LogError/closed``; nothing
  ///   was appended then.
  @discardableResult
  package func append(_ sets: [ChangeSet]) throws(LogError) -> LogReceipt {
    let payloads = sets.map { set in
      var payload: [UInt8] = []
      set.write(to: &payload)
      return RecordContent(.set, payload)
    }
    return try recent.withLock { recent throws(LogError) in
      if let last = sets.last, let sequence = recent.sequence(of: last.id) {
        return LogReceipt(log: records, sequence: sequence)
      }
      let receipt = try records.append(payloads)
      let first = receipt.sequence - sets.count + 1
      for (place, set) in sets.enumerated() {
        recent.add(set.id, first + place, durable: records.durableSequence)
      }
      return receipt
    }
  }

  /// Writes and syncs all appended records. After a failure, this tries again.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/moved(path:)``. Nothing is lost; the records wait
  ///   for the next attempt.
  public func sync() async throws(LogError) { try await records.sync() }

  /// Writes and syncs all appended records, then closes the log and releases its lock.
  ///
  /// A log that is released without being closed does the same, if it can, on the thread that releases it, and reports
  /// nothing: close a log to learn that everything is durable.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/moved(path:)``. The log stays open then, and
  ///   closing it can be tried again.
  public func close() async throws(LogError) { try await records.close() }
}

/// The change sets appended last: all that are not durable yet, and up to a thousand more.
private struct RecentSets {
  private var sequences: [UUID: Int] = [:]
  private var order: [UUID] = []
  /// The number of entries at the beginning of `order` that are out of date.
  private var forgotten = 0

  func sequence(of id: UUID) -> Int? { sequences[id] }

  mutating func add(_ id: UUID, _ sequence: Int, durable: Int) {
    sequences[id] = sequence
    order.append(id)
    while order.count - forgotten > 1000, let oldest = sequences[order[forgotten]],
      oldest <= durable
    {
      sequences[order[forgotten]] = nil
      forgotten += 1
    }
    guard forgotten > 1000 else { return }
    order.removeFirst(forgotten)
    forgotten = 0
  }
}
