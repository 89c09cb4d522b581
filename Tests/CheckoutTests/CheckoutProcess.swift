import Foundation
import Pacing
import Testing

/// The built program, running, with its output line by line.
final class CheckoutProcess: Sendable {
  private let process: ChildProcess
  private let output: AsyncStream<String>
  private let errors: AsyncStream<String>
  private let exit: AsyncStream<Int32>

  /// The program stands where the build put this test bundle.
  private static var executable: URL {
    get throws {
      let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
      let places = bundles + [URL(fileURLWithPath: CommandLine.arguments[0])]
      let found = places.map { $0.deletingLastPathComponent().appending(path: "checkout") }
        .first { FileManager.default.isExecutableFile(atPath: $0.path) }
      return try #require(found, "The program is not built beside the tests.")
    }
  }

  /// - Parameter redirection: where its streams go instead, in the words of a shell.
  init(_ arguments: [String], redirection: String = "") throws {
    let (pipe, errorPipe) = (ChildProcess.pipe(), ChildProcess.pipe())
    let (exit, ending) = AsyncStream.makeStream(of: Int32.self)
    self.exit = exit
    process = try ChildProcess(
      URL(filePath: "/bin/sh"),
      ["-c", "exec \"$0\" \"$@\" \(redirection)", try Self.executable.path] + arguments,
      output: pipe, errors: errorPipe
    ) {
      ending.yield($0)
      ending.finish()
    }
    output = Self.lines(of: pipe.fileHandleForReading)
    errors = Self.lines(of: errorPipe.fileHandleForReading)
  }

  deinit { process.signal(SIGKILL) }

  /// Reads lines until one contains a text.
  @discardableResult
  func expect(
    _ text: String, at location: SourceLocation = #_sourceLocation
  ) async throws -> String {
    for await line in output where line.contains(text) { return line }
    return try #require(nil, "The output ended without \(text).", sourceLocation: location)
  }

  /// Returns all lines that are left, once it has ended.
  func rest() async -> [String] { await output.reduce(into: []) { $0.append($1) } }

  /// Returns what it has written to its standard error, once it has ended.
  func complaints() async -> String {
    await errors.reduce(into: []) { $0.append($1) }.joined(separator: "\n")
  }

  /// Waits for the end, and returns the exit code.
  func exitCode() async -> Int32? {
    for await code in exit { return code }
    return nil
  }

  /// Ends it as a crash would, and waits for its end.
  func crash() async {
    process.signal(SIGKILL)
    _ = await exitCode()
  }

  private static func lines(of reader: FileHandle) -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        var rest = Data()
        while true {
          let more = reader.availableData
          if more.isEmpty { break }
          rest += more
          while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            continuation.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
            rest = Data(rest[rest.index(after: end)...])
          }
        }
        continuation.finish()
      }
    }
  }
}
