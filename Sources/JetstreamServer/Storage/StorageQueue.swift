import Foundation
import Jetstream

/// The threads on which files of histories are read: a few for the whole process, so that many scopes that are opened at
/// once do not take a thread each.
enum StorageQueue {
  private static let queue: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
    return queue
  }()

  /// Runs `body` there, and returns what it returns, which is handed over.
  static func run<Value>(
    _ body: @escaping @Sendable () throws -> sending Value
  ) async throws -> sending Value {
    try await withCheckedThrowingContinuation { done in
      queue.addOperation {
        do { done.resume(returning: try body()) } catch { done.resume(throwing: error) }
      }
    }
  }

  /// Like ``run(_:)``, for what fails with errors of logs.
  static func run<Value: Sendable>(
    _ body: @escaping @Sendable () throws(LogError) -> Value
  ) async throws(StorageError) -> Value {
    try await withCheckedContinuation { done in
      queue.addOperation {
        done.resume(returning: Result { () throws(LogError) in try body() })
      }
    }.mapError { StorageError($0) }.get()
  }
}
