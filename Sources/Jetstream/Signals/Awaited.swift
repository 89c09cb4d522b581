import Synchronization

/// A value that arrives once, from any thread, and that one task waits for. Later values are
/// dropped.
final class Awaited<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case over(Value)
  }

  private let state = Mutex(State.open)
  /// The value returned to a task that is cancelled while it waits.
  private let cancelled: Value

  init(cancelled: Value) { self.cancelled = cancelled }

  /// True once the value has arrived, or the task that waits is cancelled.
  var isOver: Bool {
    state.withLock { if case .over = $0 { true } else { false } }
  }

  func put(_ value: Value) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
      if case .over = state { return nil }
      defer { state = .over(value) }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume(returning: value)
  }

  /// Waits for the value, or until the task is cancelled.
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
