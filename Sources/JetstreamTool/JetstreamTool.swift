import Foundation

/// The `jetstream` command.
@main
struct JetstreamTool {
  /// The exit status of the command.
  enum Status: Int32 {
    case success = 0
    /// The log is damaged.
    case damaged = 1
    /// The command line is not valid.
    case usage = 2
    /// A file could not be read or written, or the output could not be written.
    case failed = 3
  }

  static let usage = """
    usage: jetstream <command>

    commands:
      serve --data DIRECTORY serves the scopes of any app
      bench URL              loads a server and prints throughput and latencies
      log verify DIRECTORY   checks everything in a fragment log
      log tail DIRECTORY     prints its last records, and those that come
      log dump DIRECTORY     prints its records, or a snapshot
      log blame DIRECTORY MODEL PROPERTY
                             prints who has written a property
      log show DIRECTORY     prints the scope as it was at any record
      log diff DIRECTORY     prints what is different between two records
      log new-epoch DIRECTORY
                             begins another history after a backup was put in place

    jetstream serve --help, jetstream bench --help and jetstream log --help say more.
    """

  static func main() async {
    var arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "log":
      arguments.removeFirst()
      await exit(LogCommand.run(arguments).rawValue)
    case "serve":
      arguments.removeFirst()
      await exit(ServeCommand.run(arguments).rawValue)
    case "bench": await exit(BenchCommand.run(Array(arguments.dropFirst())).rawValue)
    case "bench-worker": await exit(BenchWorker.run(Array(arguments.dropFirst())))
    case "--help", "-h", "help":
      Console.line(usage)
    case nil:
      Console.error(usage)
      exit(Status.usage.rawValue)
    case let name?:
      Console.error("jetstream: there is no command \"\(name)\".\n\n\(usage)")
      exit(Status.usage.rawValue)
    }
  }
}

/// The output of the process.
enum Console {
  /// Opens the streams that are closed. A file that is opened in the place of one would get what is printed, so a process
  /// that keeps files open calls this before it opens any.
  static func openClosedStreams() {
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
  }

  static func error(_ text: String) {
    // If this cannot be written either, the exit status still says it.
    try? FileHandle.standardError.write(contentsOf: Data((text.printable + "\n").utf8))
  }

  /// Prints a line at once, so that the reader of a pipe gets it. Ends the process if the line cannot be written. If
  /// the reader of a pipe has gone, the process ends without a message, as other commands do.
  static func line(_ text: String) {
    do {
      try FileHandle.standardOutput.write(contentsOf: Data((text.printable + "\n").utf8))
    } catch {
      self.error("jetstream: the output cannot be written: \(error.localizedDescription)")
      exit(JetstreamTool.Status.failed.rawValue)
    }
  }
}

extension String {
  /// The text with control characters as `\u001b`, as JSON has them, but for line feeds and tabs: peers and logs must not
  /// give commands to a terminal.
  fileprivate var printable: String { escaping { $0 != "\n" && $0 != "\t" } }

  /// The text with all control characters as `\u000a`, so that it is one line.
  var inOneLine: String { escaping { _ in true } }

  private func escaping(_ isEscaped: (Unicode.Scalar) -> Bool) -> String {
    func isControl(_ scalar: Unicode.Scalar) -> Bool {
      scalar.properties.generalCategory == .control && isEscaped(scalar)
    }
    guard unicodeScalars.contains(where: isControl) else { return self }
    return unicodeScalars.reduce(into: "") { text, scalar in
      if isControl(scalar) {
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
  }
}
