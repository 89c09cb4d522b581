import Jetstream

/// The records of a history as an asynchronous sequence; see ``ScopeStorage/follow(_:after:)``.
package struct StoredRecords: AsyncSequence, Sendable {
  package typealias Element = LogRecord
  package typealias Failure = StorageError

  /// Returns the next record once it is durable; nil when the sequence has ended.
  package typealias Next = () async throws(StorageError) -> LogRecord?

  private let makeNext: @Sendable () -> Next

  /// Makes a sequence of what the functions return that `makeNext` makes, one for each iterator.
  package init(_ makeNext: @escaping @Sendable () -> Next) { self.makeNext = makeNext }

  package func makeAsyncIterator() -> Iterator { Iterator(advance: makeNext()) }

  /// Iterates over the records.
  package struct Iterator: AsyncIteratorProtocol {
    let advance: Next

    /// Waits until the next record is durable, and returns it. Returns nil when the task is cancelled.
    package mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async throws(StorageError) -> LogRecord? {
      try await advance()
    }

    /// Like `next(isolation:)`, in the caller's isolation domain.
    package mutating func next() async throws(StorageError) -> LogRecord? {
      try await next(isolation: #isolation)
    }
  }
}
