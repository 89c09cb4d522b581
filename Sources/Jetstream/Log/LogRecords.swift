/// The records of a log from one on, each as soon as it is durable; it goes on until the log is closed or
/// the task is cancelled. See ``LogReader/follow(from:every:)``.
package struct LogRecords: AsyncSequence, Sendable {
  let directory: any LogDirectory
  let first: Int
  let watch: any LogWatch

  /// Starts with the first record that was asked for.
  package func makeAsyncIterator() -> Iterator {
    Iterator(cursor: LogCursor(directory, from: first), watch: watch)
  }

  /// Iterates over the records of a log.
  package struct Iterator: AsyncIteratorProtocol {
    var cursor: LogCursor
    let watch: any LogWatch

    /// The next record.
    ///
    /// - Throws: ``LogError/damaged(_:)``, ``LogError/file(_:)`` or ``LogError/notKept(sequence:kept:)``.
    package mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async throws(LogError) -> LogRecord? {
      while true {
        if Task.isCancelled { return nil }
        // Looked at first, so that nothing can become durable unseen.
        let isOver = watch.isOver
        if let record = try cursor.next(upTo: watch.durable) { return record }
        if isOver { return nil }
        await watch.wait(beyond: cursor.sequence - 1)
      }
    }

    /// The same in the caller's isolation domain.
    package mutating func next() async throws(LogError) -> LogRecord? {
      try await next(isolation: #isolation)
    }
  }
}

/// Who knows how much of a log is durable.
protocol LogWatch: Sendable {
  /// The last record that is.
  var durable: Int { get }
  /// Whether nothing more will come.
  var isOver: Bool { get }
  /// Returns when a later record than `sequence` may be, when nothing more will come, or when the task
  /// is cancelled.
  func wait(beyond sequence: Int) async
}

extension RecordLog {
  /// The records from one on, each as soon as it is durable, until the log is closed.
  ///
  /// ```swift
  /// for try await record in log.follow(from: log.lastSequence + 1) { ... }
  /// ```
  package func follow(from sequence: Int) -> LogRecords {
    LogRecords(directory: directory, first: sequence, watch: OwnWatch(log: self))
  }

  /// The records from one on that are durable by now.
  package func read(from sequence: Int) -> LogCursor { LogCursor(directory, from: sequence) }

  func wakeFollowers() {
    let followers = state.withLock { state in
      defer { state.followers = [:] }
      return state.followers
    }
    for (_, follower) in followers { follower.resume() }
  }

  fileprivate func wait(beyond sequence: Int) async {
    let id = state.withLock { state in
      state.nextFollower += 1
      return state.nextFollower
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          // A cancellation that comes after this line finds the continuation.
          if Task.isCancelled || state.isClosed || durable(state) > sequence { return true }
          state.followers[id] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.followers.removeValue(forKey: id) }?.resume()
    }
  }
}

/// Follows the log that this process writes.
private struct OwnWatch: LogWatch {
  let log: RecordLog

  var durable: Int { log.durableSequence }
  var isOver: Bool { log.state.withLock { $0.isClosed } }

  func wait(beyond sequence: Int) async { await log.wait(beyond: sequence) }
}

extension LogReader {
  /// The records from one on, each as soon as it is durable, while another process writes them.
  ///
  /// Looks at the files again after each `interval`. It goes on until the task is cancelled, also when the
  /// log is closed and opened again. While nobody has the log open, all that is whole is given. After a
  /// crash of the writer, what it had not marked as durable comes once the log is opened again.
  package func follow(
    from sequence: Int, every interval: Duration = .milliseconds(50)
  ) -> LogRecords {
    follow(from: sequence) { try? await Task.sleep(for: interval) }
  }

  /// The same, with something else to wait for between two looks.
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
    guard let mark = LogMark(directory), mark.isOpen else { return .max }
    return mark.durable
  }

  var isOver: Bool { false }

  func wait(beyond sequence: Int) async { await pause() }
}
