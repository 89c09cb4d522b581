import Foundation
import Synchronization

/// Writes lines to a file from a thread of its own, so that a reader who does not read stops no other thread.
///
/// A line is queued by ``write(_:)``, which never waits. The thread takes all that is queued at once, writes it, and
/// takes what has been queued meanwhile. While a full pipe holds it up, the queue grows up to its limit, and further
/// lines are left out and counted. The thread takes the lines and the count together: the lines that were left out
/// belong behind all that it takes, and there it says how many they were.
final class LineWriter: Sendable {
  private struct State {
    var lines: [String] = []
    var bytes = 0
    /// The number of lines that were left out behind `lines`.
    var omitted = 0
    /// True while the thread waits for a line.
    var isIdle = false
    var isFinished = false
  }

  /// The number of bytes that may wait, in lines.
  private let limit: Int
  private let state = Mutex(State())
  /// Signalled when an idle thread has something to do.
  private let work = DispatchSemaphore(value: 0)
  /// Signalled when the thread has written everything after ``finish(within:)``.
  private let done = DispatchSemaphore(value: 0)

  /// Starts a thread that writes to a file.
  init(_ file: FileHandle, limit: Int = 1 << 20) {
    self.limit = limit
    Thread.detachNewThread { [self] in
      while let text = next() {
        // A reader that has gone is no reason to stop.
        try? file.write(contentsOf: Data(text.utf8))
      }
      done.signal()
    }
  }

  /// Queues a line, unless too much waits.
  func write(_ line: String) {
    let wakes = state.withLock { state in
      if state.bytes + line.utf8.count > limit || state.omitted > 0 {
        state.omitted += 1
      } else {
        state.lines.append(line)
        state.bytes += line.utf8.count + 1
      }
      defer { state.isIdle = false }
      return state.isIdle
    }
    if wakes { work.signal() }
  }

  /// Waits until all lines are written, at most for so long.
  func finish(within limit: Duration) {
    let wakes = state.withLock { state in
      state.isFinished = true
      defer { state.isIdle = false }
      return state.isIdle
    }
    if wakes { work.signal() }
    _ = done.wait(timeout: .now() + limit / .seconds(1))
  }

  /// Waits for lines and returns them; nil after the end.
  private func next() -> String? {
    while true {
      let text: String? = state.withLock { state in
        var lines = state.lines
        if state.omitted > 0 { lines.append(Self.note(state.omitted)) }
        (state.lines, state.bytes, state.omitted) = ([], 0, 0)
        if lines.isEmpty, !state.isFinished {
          state.isIdle = true
          return nil
        }
        return lines.map { $0 + "\n" }.joined()
      }
      guard let text else {
        work.wait()
        continue
      }
      return text.isEmpty ? nil : text
    }
  }

  /// Returns the line that stands in the place of lines that were left out.
  static func note(_ omitted: Int) -> String {
    let lines = omitted == 1 ? "1 line is" : "\(omitted) lines are"
    return "(\(lines) left out here: the output was not read fast enough.)"
  }
}
