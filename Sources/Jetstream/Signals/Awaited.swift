import Synchronization

/// A value that one task waits for, and that comes once, from anywhere. What comes later is dropped.
final class Awaited<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case over(Value)
  }

  private let state = Mutex(State.open)
  /// What a task gets that is cancelled while it waits.
  private let cancelled: Value

  init(cancelled: Value) { self.cancelled = cancelled }

  func put(_ value: Value) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
      if case .over = state { return nil }
      defer { state = .over(value) }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume(returning: value)
  }

  /// Waits; at most until the task is cancelled.
  var value: Value {
    get async {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let value = state.withLock { state -> Value? in
            if case .over(let value) = state { return value }
            state = .waiting(continuation)
            return nil
          }
          if let value { continuation.resume(returning: value) }
        }
      } onCancel: {
        put(cancelled)
      }
    }
  }
}
