#if JETSTREAM_TSAN
import Foundation

/// Stands in for the standard library's `Mutex` in builds made for the thread sanitizer.
///
/// On Linux the real one waits on futexes inside a library that is not instrumented, so that under
/// contention the sanitizer misses the lock and reports guarded accesses as races; a counter that
/// two threads add to under a `Mutex` shows as much. It does understand the lock used here. Such builds
/// are made by `.ci/sanitize`.
package struct SanitizerMutex<Value: ~Copyable>: ~Copyable, Sendable {
  /// Sendable because the value is only reached while the lock is held.
  private final class Box: @unchecked Sendable {
    let lock = NSLock()
    let value: UnsafeMutablePointer<Value>

    init(_ value: consuming sending Value) {
      self.value = .allocate(capacity: 1)
      self.value.initialize(to: value)
    }

    deinit {
      value.deinitialize(count: 1)
      value.deallocate()
    }
  }

  private let box: Box

  package init(_ value: consuming sending Value) {
    box = Box(value)
  }

  package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    // Sound for the same reason as the box: nothing else reaches the value until the unlock, and
    // the body may only replace it by something that nothing else reaches.
    nonisolated(unsafe) let value = box.value
    box.lock.lock()
    defer { box.lock.unlock() }
    return try body(&value.pointee)
  }
}
#endif
