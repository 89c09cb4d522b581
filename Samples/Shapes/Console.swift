import Dispatch
import Foundation

/// Writes whole lines at once, so that whoever reads a pipe sees them when they are written.
enum Console {
  static func say(_ line: String) { write(line, to: .standardOutput) }

  static func complain(_ line: String) { write("shapes: \(line)", to: .standardError) }

  private static func write(_ line: String, to file: FileHandle) {
    // A reader that has gone is no reason to stop.
    try? file.write(contentsOf: Data("\(line)\n".utf8))
  }
}

/// Waits for the signals by which a process is asked to end.
@MainActor
final class StopSignals {
  private let sources: [any DispatchSourceSignal]
  private let received: AsyncStream<Void>
  private let impatience = Impatience()

  /// Whether another signal ends the process at once. Lives on the main queue.
  private final class Impatience {
    var isOver = false
  }

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    received = stream
    let impatience = impatience
    sources = [SIGINT, SIGTERM].map { number in
      // Without this the signal ends the process before the source can tell.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
      source.setEventHandler {
        // The status that a shell gives a process which a signal has ended.
        if impatience.isOver { exit(128 + number) }
        continuation.yield()
      }
      source.activate()
      return source
    }
    signal(SIGPIPE, SIG_IGN)
  }

  /// From now on a signal ends the process at once: whoever sends another one does not want to wait.
  func exitAtNext() { impatience.isOver = true }

  /// Returns when one of the signals has come.
  func next() async {
    for await _ in received { return }
  }
}
