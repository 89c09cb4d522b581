import Dispatch
import Foundation

/// Writes whole lines without a buffer, so that the reader of a pipe sees them at once. Control characters in what
/// peers have sent give no commands to a terminal.
enum Console {
  /// Opens the streams that are closed: a file that is opened in the place of one would get what is printed.
  static func openClosedStreams() {
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
  }

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

/// The requests to end a process, in the order in which they come.
///
/// One request may come as several signals: `swift run` passes on what a terminal has sent to all of the group; GNU
/// `timeout` signals the process, and then its group. So a signal right behind the first one is the same request.
struct StopRequests {
  /// The reaction to a signal.
  enum Step: Hashable {
    /// Begin to stop.
    case stop
    /// End at once.
    case exit
  }

  private var first: ContinuousClock.Instant?

  /// Takes a signal. Returns nil if there is nothing to do.
  mutating func take(at now: ContinuousClock.Instant) -> Step? {
    if let first { return now - first >= .milliseconds(500) ? .exit : nil }
    first = now
    return .stop
  }
}

/// Waits for the signals by which a process is asked to end. Another one than the first ends the process at once.
@MainActor
final class StopSignals {
  private let sources: [any DispatchSourceSignal]
  private let received: AsyncStream<Void>

  /// The requests until now. Used on the main queue only.
  private final class Requests {
    var state = StopRequests()
  }

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    received = stream
    let requests = Requests()
    sources = [SIGINT, SIGTERM].map { number in
      // Without this the signal ends the process before the source can tell.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
      source.setEventHandler {
        switch requests.state.take(at: .now) {
        case .stop: continuation.yield()
        // The status that a shell gives a process which a signal has ended.
        case .exit: exit(128 + number)
        case nil: break
        }
      }
      source.activate()
      return source
    }
    signal(SIGPIPE, SIG_IGN)
  }

  /// Returns when the first of the signals has come.
  func next() async {
    for await _ in received { return }
  }
}
