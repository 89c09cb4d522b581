import Dispatch
import Foundation

/// Writes whole lines without a buffer, so that the reader of a pipe sees them at once. Control characters in what
/// peers have sent give no commands to a terminal.
enum Console {
  static func say(_ line: String) { write(line, to: .standardOutput) }

  static func complain(_ line: String) { write("shapes: \(line)", to: .standardError) }

  private static func write(_ line: String, to file: FileHandle) {
    let shown = line.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control && scalar != "\n" ? "\u{FFFD}" : scalar
    }
    // A reader that has gone is no reason to stop.
    try? file.write(contentsOf: Data("\(String(String.UnicodeScalarView(shown)))\n".utf8))
  }
}

/// Waits for the signals by which a process is asked to end.
@MainActor
final class StopSignals {
  private let sources: [any DispatchSourceSignal]
  private let received: AsyncStream<Void>
  private let mode = Mode()

  /// What a signal does. Used on the main queue only.
  private final class Mode {
    var exitsAtOnce = false
  }

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    received = stream
    let mode = mode
    sources = [SIGINT, SIGTERM].map { number in
      // Without this the signal ends the process before the source can tell.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
      source.setEventHandler {
        // The status that a shell gives a process which a signal has ended.
        if mode.exitsAtOnce { exit(128 + number) }
        continuation.yield()
      }
      source.activate()
      return source
    }
    signal(SIGPIPE, SIG_IGN)
  }

  /// Makes every further signal end the process at once.
  func exitAtNext() { mode.exitsAtOnce = true }

  /// Returns when one of the signals has come.
  func next() async {
    for await _ in received { return }
  }
}
