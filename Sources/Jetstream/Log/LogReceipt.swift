import Dispatch
import Synchronization

/// What one gets for an append: the number of the record, and a way to learn when it is durable.
///
/// Durable means what ``LogConfiguration/durability`` says: on stable storage, unless that is
/// ``LogDurability/none``.
package struct LogReceipt: Sendable {
  let log: RecordLog
  /// The number of the record; of the last one if a batch was appended.
  package let sequence: Int

  /// Whether the record is durable by now.
  package var isDurable: Bool { log.durableSequence >= sequence }

  /// Returns when the record is durable.
  ///
  /// - Throws: ``LogError/file(_:)`` when an attempt to write it has failed, and ``LogError/moved(path:)`` when the log is
  ///   not in its place any more. The record is still in the
  ///   log and will be written before anything later: calling this again is a new attempt, and so is the
  ///   next append.
  package func durable() async throws(LogError) {
    try await withCheckedContinuation { continuation in
      log.whenDurable(sequence) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Blocks the thread until the record is durable. Otherwise like ``durable()``.
  package func wait() throws(LogError) {
    let box = WaitBox()
    log.whenDurable(sequence) { box.put($0) }
    try box.take().get()
  }

  /// Calls `body` when the record is durable, or when an attempt to write it has failed: at once if it is
  /// durable already, otherwise on a queue of the log, which it must not hold up.
  package func whenDurable(_ body: @escaping @Sendable (Result<Void, LogError>) -> Void) {
    log.whenDurable(sequence, body)
  }
}

/// Where one thread waits for what another one finds out.
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
