import Synchronization

/// The outcome of opening a connection, which the first of several settles: a callback of the system, the time that is
/// given for it, or the cancellation of the task that waits.
///
/// `URLSessionWebSocket` waits for it. The timeout of a `URLRequest` is no limit of the whole: it begins anew with each
/// byte that comes, and a proxy, or a server that sends its answer slowly, would be waited for without end.
final class OpeningRace: Sendable {
  private struct State {
    var outcome: Result<Void, WebSocketError>?
    var continuation: CheckedContinuation<Result<Void, WebSocketError>, Never>?
  }

  private let state = Mutex(State())

  /// Settles the outcome. Returns false if it is settled already.
  @discardableResult
  func settle(_ outcome: Result<Void, WebSocketError>) -> Bool {
    let (isFirst, waiting) = state.withLock { state in
      guard state.outcome == nil else {
        return (false, nil as CheckedContinuation<Result<Void, WebSocketError>, Never>?)
      }
      state.outcome = outcome
      defer { state.continuation = nil }
      return (true, state.continuation)
    }
    waiting?.resume(returning: outcome)
    return isFirst
  }

  /// Waits for the outcome, once.
  ///
  /// - Parameters:
  ///   - limit: The time after which it is ``WebSocketError/timedOut``.
  ///   - sleep: Returns after a time, or throws when it is cancelled.
  ///   - giveUp: Ends opening. Called if that has taken too long or the task was cancelled.
  func outcome(
    within limit: Duration,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    orGiveUp giveUp: @escaping @Sendable () -> Void
  ) async -> Result<Void, WebSocketError> {
    let timer = Task { [self] in
      guard (try? await sleep(limit)) != nil else { return }
      if settle(.failure(.timedOut)) { giveUp() }
    }
    defer { timer.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      if settle(.failure(.cancelled)) { giveUp() }
    }
  }
}
