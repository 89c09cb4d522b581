import Dispatch
import Synchronization

/// The result of an append: the sequence number of the record, and ways to learn when it is
/// durable.
///
/// A record is durable as ``LogConfiguration/durability`` defines it: on stable storage, or only
/// written with ``LogDurability/none``.
package struct LogReceipt: Sendable {
  let log: RecordLog
  /// The sequence number of the record; of the last record if a batch was appended.
  package let sequence: Int

  /// True once the record is durable.
  package var isDurable: Bool { log.durableSequence >= sequence }

  /// Waits until the record is durable.
  ///
  /// - Throws: ``LogError/file(_:)`` if an attempt to write it failed, and ``LogError/moved(path:)``
  ///   if the log is no longer in place. The record stays in memory and will be written before any
  ///   later one: calling this again, or appending, starts a new attempt.
  package func durable() async throws(LogError) {
    try await withCheckedContinuation { continuation in
      log.whenDurable(sequence) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Blocks the calling thread until the record is durable. Otherwise like ``durable()``.
  package func wait() throws(LogError) {
    let box = WaitBox()
    log.whenDurable(sequence) { box.put($0) }
    try box.take().get()
  }

  /// Like ``whenDurable(_:)``, with the sequence number of the last record that is durable by then.
  package func whenDurableUpTo(_ body: @escaping @Sendable (Result<Int, LogError>) -> Void) {
    let log = log
    log.whenDurable(sequence) { body($0.map { log.durableSequence }) }
  }

  /// Calls `body` when the record is durable or an attempt to write it has failed. If it is already
  /// durable, `body` runs before this returns; otherwise on a queue of the log, which it must not
  /// block.
  package func whenDurable(_ body: @escaping @Sendable (Result<Void, LogError>) -> Void) {
    log.whenDurable(sequence, body)
  }
}

/// Passes one result from a thread that produces it to a thread that waits for it.
final class WaitBox: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<Void, LogError>>(.success(()))

  func put(_ result: Result<Void, LogError>) {
    self.result.withLock { $0 = result }
    semaphore.signal()
  }

  func take() -> Result<Void, LogError> {
    semaphore.wait()
    return result.withLock { $0 }
  }
}
