import Foundation

/// The `jetstream` command.
@main
struct JetstreamTool {
  /// How the command ends.
  enum Status: Int32 {
    case success = 0
    /// What was looked at is damaged.
    case damaged = 1
    /// The command line makes no sense.
    case usage = 2
    /// Something could not be read.
    case failed = 3
  }

  static let usage = """
    usage: jetstream <command>

    commands:
      log verify DIRECTORY   checks everything in a fragment log
      log tail DIRECTORY     prints its last records, and those that come
      log dump DIRECTORY     prints its records, or a snapshot
      log blame DIRECTORY MODEL PROPERTY
                             prints who has written a property
      log show DIRECTORY     prints the scope as it was at any record
      log diff DIRECTORY     prints what is different between two records

    jetstream log --help says more.
    """

  static func main() async {
    var arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "log":
      arguments.removeFirst()
      await exit(LogCommand.run(arguments).rawValue)
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

/// What goes to the streams of the process.
enum Console {
  static func error(_ text: String) {
    // If nobody can be told, the exit status says it.
    try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
  }

  /// Prints a line at once, so that a pipe has it. Ends the process if the line cannot be written; a pipe that nobody
  /// reads any more ends it without a word, as other commands.
  static func line(_ bytes: some Sequence<UInt8>) {
    var data = Data(bytes)
    data.append(UInt8(ascii: "\n"))
    do {
      try FileHandle.standardOutput.write(contentsOf: data)
    } catch {
      self.error("jetstream: the output cannot be written: \(error.localizedDescription)")
      exit(JetstreamTool.Status.failed.rawValue)
    }
  }

  static func line(_ text: String) { line(text.utf8) }
}
