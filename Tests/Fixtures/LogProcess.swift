import Foundation
import Pacing

/// A process beside the tests, whose lines are read one after the other.
final class LogProcess {
  private let process: ChildProcess
  private let input = ChildProcess.pipe()
  private let reading: FileHandle
  private var rest = Data()
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

  /// The next line, waiting for it; nil when the process has said all.
  func line() -> String? {
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

  /// Ends the process in the middle of whatever it does.
  func kill() { process.signal(SIGKILL) }

  /// Asks the process to end.
  func stop() { process.signal(SIGTERM) }

  /// Asks the process to end, as a terminal does.
  func interrupt() { process.signal(SIGINT) }

  func say(_ line: String) { input.fileHandleForWriting.write(Data((line + "\n").utf8)) }

  /// Everything that it has still to say, and how it ended.
  func finish() -> (lines: [String], errors: String, status: Int32) {
    try? input.fileHandleForWriting.close()
    var lines: [String] = []
    while let line = line() { lines.append(line) }
    let said = errors.fileHandleForReading.readDataToEndOfFile()
    return (lines, String(decoding: said, as: UTF8.self), process.waitUntilExit())
  }
}

struct ProcessProblem: Error {
  let text: String
}
