import Foundation
import Synchronization

/// An append-only log of records on disk, in segments that people can read: one line of JSON per
/// record.
///
/// ```swift
/// let log = try RecordLog(directory)
/// let receipt = try log.append(.init("note"), Array(#"{"text":"hello"}"#.utf8))
/// try await receipt.durable()
/// ```
///
/// The log does not interpret records; ``FragmentLog`` is a log of change sets on top of it.
/// Records have sequence numbers from 1 on, without gaps. Appending costs only the encoding of a
/// line: writing and syncing happen on a queue, within moments, and a ``LogReceipt`` tells when a
/// record is durable. Records are written in order, and a batch is on disk as a whole or not at
/// all. See <doc:Logs> for the format and the guarantees.
///
/// A log can be used from any isolation domain. While it is open, no other process or object can
/// open it for writing.
package final class RecordLog: Sendable {
  /// The findings of opening the log.
  package let opening: LogOpening
  /// The settings of the log.
  package let configuration: LogConfiguration
  package let directory: any LogDirectory
  /// The queue on which segments are written and synced.
  let queue: any LogQueue
  /// The queue on which snapshots are written and old files removed.
  let snapshotQueue: any LogQueue
  let log: UUID
  /// The current boot of the machine.
  let boot: UUID
  let lockFile: any LogFile
  /// The content of the lock file. Locked while the file is written, so that an older mark never
  /// replaces a newer one.
  let mark: Mutex<LogMark>

  // Two locks. `writer` is held while the system accepts lines, but not while they are synced, unless they are written
  // again after a failed sync.
  // `state` is held only while a line is encoded or fields are copied. `state` may be taken while
  // `writer` is held, never the other way round.
  let writer: Mutex<LogWriter>
  let state: Mutex<State>
  /// True while lines of a failed sync are being written again: the lock of the writer is held for as long as the disk
  /// takes.
  let isWritingAgain = Atomic(false)

  struct State {
    /// The sequence number of the next record.
    var next: Int
    /// Encoded lines that the writer has not taken over yet.
    var pending: [UInt8] = []
    /// The number of bytes that the writer has taken over but not written.
    var unwrittenBytes = 0
    var written: Int
    var synced: Int
    /// True while a commit waits in the queue.
    var isScheduled = false
    var isTimerSet = false
    /// The number of appended bytes when the log last looked for new ones, and looks again soon; nil
    /// while it does not. See ``planRest(isSynced:)``.
    var bytesBeforeRest: Int?
    /// True if the next commit must sync.
    var wantsSync = false
    /// The total number of bytes of all appended lines, from the first one that the writer has taken over.
    var appendedBytes: Int
    /// The position at which the next commit must end the segment; nil if it need not.
    var rollMark: LogWriter.Mark?
    /// The error of the last commit; nil if it succeeded.
    var failure: LogError?
    var phase = Phase.open
    var waiters: [Waiter] = []
    var followers = LogFollowers()
  }

  /// The phases of a log, in their order.
  enum Phase: Comparable {
    case open
    /// Appends are refused.
    case closing
    /// Nothing more is written.
    case stopped
    case closed
  }

  /// A callback that waits until a record is durable.
  struct Waiter {
    let sequence: Int
    /// True if the record must be on stable storage, whatever the configuration says.
    let needsSync: Bool
    /// True if only the commit that was asked to end the segment may answer.
    let needsRoll: Bool
    let done: @Sendable (Result<Void, LogError>) -> Void
  }

  /// Opens the log in the directory at `path`. Creates the directory if it does not exist.
  ///
  /// Cost: reading the newest snapshot and the records after it.
  ///
  /// - Parameter afterLoss: a record that is appended, and durable, before the log forgets that records were missing, or
  ///   may have been; see ``LogOpening/losses`` and ``LogOpening/mayHaveLostEnd``. However often the process ends
  ///   meanwhile, a log that goes on after a loss has it.
  /// - Throws: ``LogError/inUse(path:)``, ``LogError/damaged(_:)``, ``LogError/file(_:)`` or
  ///   ``LogError/newerVersion(file:version:)``. No record has been changed then. A ``LogReader`` reads a
  ///   damaged log up to the damage.
  package convenience init(
    _ path: String, configuration: LogConfiguration = LogConfiguration(),
    afterLoss: RecordContent? = nil
  ) throws(LogError) {
    let directory = try reading { () throws(LogFileError) in try POSIXLogDirectory(path) }
    try self.init(directory, configuration: configuration, afterLoss: afterLoss)
  }

  /// Opens the log in any implementation of a directory.
  package convenience init(
    _ directory: any LogDirectory, configuration: LogConfiguration = LogConfiguration(),
    afterLoss: RecordContent? = nil
  ) throws(LogError) {
    try self.init(
      directory, configuration: configuration, queue: DispatchLogQueue("jetstream.log"),
      snapshotQueue: DispatchLogQueue("jetstream.log.snapshots"), afterLoss: afterLoss)
  }

  /// Opens a log that works on the given queues.
  package init(
    _ directory: any LogDirectory, configuration: LogConfiguration, queue: any LogQueue,
    snapshotQueue: any LogQueue, afterLoss: RecordContent? = nil
  ) throws(LogError) {
    let opened = try OpenedLog(directory, configuration, afterLoss: afterLoss)
    self.directory = directory
    self.configuration = configuration
    self.queue = queue
    self.snapshotQueue = snapshotQueue
    opening = opened.report
    log = opened.writer.header.log
    boot = opened.boot
    lockFile = opened.lockFile
    let last = opened.writer.last
    writer = Mutex(opened.writer)
    state = Mutex(
      State(
        next: last + 1, written: last, synced: last, appendedBytes: opened.writer.takenBytes))
    mark = Mutex(opened.mark)
    changeMark { _ in }
    if opened.isBootForgotten { try? lockFile.syncFully() }
  }

  deinit { syncBeforeRelease() }

  /// The sequence number of the last appended record; 0 if there is none.
  package var lastSequence: Int { state.withLock { $0.next - 1 } }

  /// The sequence number of the last record that is durable as ``configuration`` defines it.
  package var durableSequence: Int { state.withLock { durable($0) } }

  /// The error of the last attempt to write; nil if it succeeded.
  package var failure: LogError? { state.withLock { $0.failure } }

  /// True once the log was closed without an error.
  package var isClosed: Bool { state.withLock { $0.phase >= .stopped } }

  func durable(_ state: State) -> Int {
    configuration.durability == .none ? state.written : state.synced
  }

  /// Writes a changed mark to the lock file, and syncs one that forgets a boot: otherwise a power failure could bring
  /// back the old one, by which records may be missing. A failure is harmless, because the old mark claims less.
  func changeMark(_ change: (inout LogMark) -> Void) {
    let isBootForgotten = mark.withLock { mark in
      let old = mark.unsyncedBoot
      change(&mark)
      try? lockFile.write(mark)
      return old != nil && mark.unsyncedBoot == nil
    }
    if isBootForgotten { try? lockFile.syncFully() }
  }

  /// Writes the sequence number of the oldest snapshot to the lock file, and syncs it.
  ///
  /// - Throws: ``LogError/file(_:)``. The snapshot noted before must be kept then.
  func noteOldestSnapshot(_ sequence: Int) throws(LogError) {
    try reading { () throws(LogFileError) in
      try mark.withLock { mark throws(LogFileError) in
        mark.snapshot = sequence
        try lockFile.write(mark)
      }
      try lockFile.syncFully()
    }
  }

  /// The oldest snapshot; nil if there is none.
  var oldestSnapshot: Int? { mark.withLock { $0.snapshot } }

  // MARK: Appending

  /// Appends a record.
  ///
  /// The payload must be one JSON value without line breaks or other control characters, as
  /// ``JSONValue/write(to:)`` produces. Only the control characters are checked; one of them traps.
  ///
  /// - Throws: ``LogError/backlog(bytes:)``, ``LogError/tooLong(bytes:)`` or ``LogError/closed``; nothing
  ///   was appended then. Otherwise the record has its final sequence number: if the disk fails,
  ///   the receipt reports it, and the record stays in memory until a later attempt succeeds. Do
  ///   not append it again.
  @discardableResult
  package func append(_ kind: LogKind, _ payload: [UInt8]) throws(LogError) -> LogReceipt {
    try append([RecordContent(kind, payload)])
  }

  /// Appends several records as one batch: after a crash, the log has all of them or none. Returns
  /// the receipt of the last one. Traps if the batch is empty.
  @discardableResult
  package func append(_ records: [RecordContent]) throws(LogError) -> LogReceipt {
    guard let receipt = try append(records, after: nil) else {
      preconditionFailure("A batch was refused although it may be appended anywhere.")
    }
    return receipt
  }

  /// Appends several records as one batch. Appends nothing, and returns nil, if the last record has
  /// another sequence number than `expected`; nil for any.
  func append(
    _ records: [RecordContent], after expected: Int?, ignoringBacklog: Bool = false
  ) throws(LogError) -> LogReceipt? {
    precondition(!records.isEmpty, "A batch of records is empty.")
    var size = 0
    for record in records {
      precondition(
        !record.payload.isEmpty && !LogLine.hasControlCharacters(record.payload),
        "The payload of a record has to be JSON without control characters.")
      guard record.payload.count <= LogLine.maxPayload else {
        throw .tooLong(bytes: record.payload.count)
      }
      size += record.payload.count
    }
    let appended: (sequence: Int, isFirst: Bool)? = try state.withLock { state throws(LogError) in
      guard state.phase == .open else { throw .closed }
      if let expected, expected != state.next - 1 { return nil }
      let waiting = state.pending.count + state.unwrittenBytes
      if !ignoringBacklog, waiting > 0, waiting + size > configuration.backlogBytes {
        throw .backlog(bytes: waiting)
      }
      let start = state.pending.count
      for (place, record) in records.enumerated() {
        LogLine.append(
          sequence: state.next, kind: record.kind, rest: records.count - 1 - place,
          synced: state.synced, payload: record.payload, to: &state.pending)
        state.next += 1
      }
      state.appendedBytes += state.pending.count - start
      return (state.next - 1, schedule(&state))
    }
    guard let appended else { return nil }
    if appended.isFirst { queue.run { self.commit() } }
    return LogReceipt(log: self, sequence: appended.sequence)
  }

  /// Notes that a commit is due. Returns true if the caller must put it into the queue.
  func schedule(_ state: inout State) -> Bool {
    if state.isScheduled { return false }
    state.isScheduled = true
    return true
  }
}
