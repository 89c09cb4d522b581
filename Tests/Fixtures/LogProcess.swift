import Foundation
import Pacing
import Synchronization

/// A process beside the tests, whose lines are read one after the other. It ends with this object.
final class LogProcess: Sendable {
  typealias End = (lines: [String], errors: String, status: Int32)

  private let process: ChildProcess
  private let input = ChildProcess.pipe()
  private let reading: FileHandle
  /// What was read behind the last line.
  private let rest = Mutex(Data())
  /// The text on its standard error.
  private let errors = ChildProcess.pipe()

  /// Starts an executable that is built into the same folder as the tests.
  ///
  /// - Parameter redirection: where its output goes instead, in the words of a shell.
  init(_ name: String, _ arguments: [String], redirection: String? = nil) throws {
    guard let executable = Self.folder?.appendingPathComponent(name) else {
      throw ProcessProblem(text: "The folder of the tests is not known.")
    }
    let output = ChildProcess.pipe()
    reading = output.fileHandleForReading
    if let redirection {
      process = try ChildProcess(
        URL(fileURLWithPath: "/bin/sh"),
        ["-c", "exec \"$0\" \"$@\" \(redirection)", executable.path] + arguments,
        input: input, output: output, errors: errors)
    } else {
      process = try ChildProcess(
        executable, arguments, input: input, output: output, errors: errors)
    }
  }

  static let folder: URL? = {
    var places = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }.map(\.bundleURL)
    if let own = Bundle.main.executableURL { places.append(own) }
    for argument in CommandLine.arguments {
      guard let end = argument.range(of: ".xctest") else { continue }
      places.append(URL(fileURLWithPath: String(argument[..<end.upperBound])))
    }
    return places.map { $0.deletingLastPathComponent() }.first {
      FileManager.default.isExecutableFile(atPath: $0.appendingPathComponent("LogWriter").path)
    }
  }()

  deinit { kill() }

  /// Runs calls that wait for the process on a thread of their own. When the test is cancelled, they end with the process.
  func beside<Value: Sendable>(
    _ calls: @escaping @Sendable (LogProcess) throws -> Value
  ) async throws -> Value {
    try await withTaskCancellationHandler {
      try await blocking { [self] in try calls(self) }
    } onCancel: {
      kill()
    }
  }

  /// Returns the next line, or nil when the process has said all.
  func line() async throws -> String? { try await beside { $0.waitForLine() } }

  /// Returns everything that it has still to say, and how it ended.
  func finish() async throws -> End { try await beside { $0.waitForEnd() } }

  /// Returns the next line like ``line()``, but blocks the thread.
  func waitForLine() -> String? {
    rest.withLock { rest in
      while true {
        if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          defer { rest.removeSubrange(rest.startIndex...end) }
          return String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
        }
        let more = reading.availableData
        guard !more.isEmpty else { return nil }
        rest.append(more)
      }
    }
  }

  /// Returns what ``finish()`` does, but blocks the thread.
  func waitForEnd() -> End {
    try? input.fileHandleForWriting.close()
    var lines: [String] = []
    while let line = waitForLine() { lines.append(line) }
    let said = errors.fileHandleForReading.readDataToEndOfFile()
    return (lines, String(decoding: said, as: UTF8.self), process.waitUntilExit())
  }

  /// Ends the process in the middle of whatever it does.
  func kill() { process.signal(SIGKILL) }

  /// Asks the process to end.
  func stop() { process.signal(SIGTERM) }

  /// Asks the process to end twice, by two signals that reach it at the same moment.
  func stopByTwoSignals() {
    process.freeze()
    for number in [SIGTERM, SIGINT, SIGCONT] { process.signal(number) }
  }

  func say(_ line: String) throws {
    try ChildProcess.write(Data((line + "\n").utf8), to: input.fileHandleForWriting)
  }
}

struct ProcessProblem: Error {
  let text: String
}
