/// The records of a log as an asynchronous sequence: each record as soon as it is durable. It ends
/// when the log is closed or the task is cancelled; see ``LogReader/follow(from:every:)``.
package struct LogRecords: AsyncSequence, Sendable {
  let directory: any LogDirectory
  let first: Int
  let watch: any LogWatch

  /// Returns an iterator that starts with the first requested record.
  package func makeAsyncIterator() -> Iterator {
    Iterator(cursor: LogCursor(directory, from: first), watch: watch)
  }

  /// Iterates over the records of a log.
  package struct Iterator: AsyncIteratorProtocol {
    var cursor: LogCursor
    let watch: any LogWatch

    /// Waits until the next record is durable, and returns it. Returns nil when the log is closed
    /// or the task is cancelled.
    ///
    /// - Throws: ``LogError/damaged(_:)``, ``LogError/file(_:)`` or ``LogError/notKept(sequence:kept:)``.
    package mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async throws(LogError) -> LogRecord? {
      while true {
        if Task.isCancelled { return nil }
        // Checked before reading, so that records that become durable before the log closes are
        // still returned.
        let isOver = watch.isOver
        if let record = try cursor.next(upTo: try watch.durable) { return record }
        if isOver { return nil }
        await watch.wait(beyond: cursor.sequence - 1)
      }
    }

    /// Like `next(isolation:)`, in the caller's isolation domain.
    package mutating func next() async throws(LogError) -> LogRecord? {
      try await next(isolation: #isolation)
    }
  }
}

/// A source that knows which records of a log are durable.
protocol LogWatch: Sendable {
  /// The sequence number of the last durable record.
  var durable: Int { get throws(LogError) }
  /// True when no more records will become durable.
  var isOver: Bool { get }
  /// Waits until a record after `sequence` may be durable, until no more records will come, or
  /// until the task is cancelled.
  func wait(beyond sequence: Int) async
}

extension RecordLog {
  /// Returns the records from `sequence` on, each as soon as it is durable, until the log is
  /// closed.
  ///
  /// ```swift
  /// for try await record in log.follow(from: log.lastSequence + 1) { ... }
  /// ```
  package func follow(from sequence: Int) -> LogRecords {
    LogRecords(directory: directory, first: sequence, watch: OwnWatch(log: self))
  }

  /// Returns a cursor over the records from `sequence` on. It also returns written records that are
  /// not durable yet.
  package func read(from sequence: Int) -> LogCursor { LogCursor(directory, from: sequence) }

  func wakeFollowers() {
    for follower in state.withLock({ $0.followers.takeAll() }) { follower.resume() }
  }

  fileprivate func wait(beyond sequence: Int) async {
    let id = state.withLock { $0.followers.makeNumber() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          // If the task is cancelled after this line, `onCancel` finds the continuation.
          if Task.isCancelled || state.phase == .closed || durable(state) > sequence { return true }
          state.followers.add(continuation, number: id)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.followers.remove(id) }?.resume()
    }
  }
}

/// The tasks that wait for further records of a log.
struct LogFollowers {
  private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
  private var lastNumber = 0

  /// Makes a number for a task that is going to wait.
  mutating func makeNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  mutating func add(_ follower: CheckedContinuation<Void, Never>, number: Int) {
    waiting[number] = follower
  }

  mutating func remove(_ number: Int) -> CheckedContinuation<Void, Never>? {
    waiting.removeValue(forKey: number)
  }

  mutating func takeAll() -> [CheckedContinuation<Void, Never>] {
    defer { waiting = [:] }
    return Array(waiting.values)
  }
}

/// Follows the log that this process writes.
private struct OwnWatch: LogWatch {
  let log: RecordLog

  var durable: Int { log.durableSequence }
  var isOver: Bool { log.state.withLock { $0.phase == .closed } }

  func wait(beyond sequence: Int) async { await log.wait(beyond: sequence) }
}

extension LogReader {
  /// Returns the records from `sequence` on as an asynchronous sequence: each as soon as it is
  /// durable, while another process writes them.
  ///
  /// Checks the files again after each `interval`. The sequence goes on until the task is
  /// cancelled, also when the log is closed and opened again. While no process has the log open, it
  /// returns all complete records. If the writer crashes, records that it had not marked as durable
  /// follow once the log is opened again; while the file `lock` is damaged, that is all of them. A
  /// `lock` that is there and cannot be read is an error.
  package func follow(
    from sequence: Int, every interval: Duration = .milliseconds(50)
  ) -> LogRecords {
    follow(from: sequence) { try? await Task.sleep(for: interval) }
  }

  /// Like ``follow(from:every:)``, with `pause` called between two checks instead of sleeping.
  package func follow(
    from sequence: Int, pause: @escaping @Sendable () async -> Void
  ) -> LogRecords {
    LogRecords(
      directory: directory, first: sequence, watch: PollWatch(directory: directory, pause: pause))
  }
}

/// Follows a log that another process writes.
private struct PollWatch: LogWatch {
  let directory: any LogDirectory
  let pause: @Sendable () async -> Void

  var durable: Int {
    get throws(LogError) {
      let bytes = try reading { () throws(LogFileError) in try LogMark.bytes(in: directory) }
      // A copy of a log has none.
      guard let bytes else { return .max }
      // One that is not whole is being written, or its writer has crashed: then the next one writes it again.
      guard let mark = LogMark(bytes) else { return 0 }
      return mark.isOpen ? mark.durable : .max
    }
  }

  var isOver: Bool { false }

  func wait(beyond sequence: Int) async { await pause() }
}
