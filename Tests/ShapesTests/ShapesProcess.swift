import Foundation
import Pacing
import Testing

/// The built program, running, with its output line by line.
final class ShapesProcess: Sendable {
  private let process: ChildProcess
  private let output: AsyncStream<String>
  private let errors: AsyncStream<String>
  private let exit: AsyncStream<Int32>

  /// The program stands where the build put this test bundle.
  private static var executable: URL {
    get throws {
      let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
      let places = bundles + [URL(fileURLWithPath: CommandLine.arguments[0])]
      let found = places.map { $0.deletingLastPathComponent().appending(path: "shapes") }
        .first { FileManager.default.isExecutableFile(atPath: $0.path) }
      return try #require(found, "The program is not built beside the tests.")
    }
  }

  convenience init(_ arguments: String...) throws { try self.init(arguments) }

  /// - Parameter hint: when this comes, it is asked to end again and again, however busy the tests are.
  init(_ arguments: [String], terminatingAgainAt hint: String? = nil) throws {
    let (outputPipe, errorPipe) = (ChildProcess.pipe(), ChildProcess.pipe())
    let (exit, ending) = AsyncStream.makeStream(of: Int32.self)
    self.exit = exit
    let ended = DispatchSemaphore(value: 0)
    // Somewhere else, because the program must not depend on where it is started.
    let process = try ChildProcess(
      try Self.executable, arguments, in: FileManager.default.temporaryDirectory,
      output: outputPipe, errors: errorPipe
    ) { code in
      ended.signal()
      ending.yield(code)
      ending.finish()
    }
    self.process = process
    output = Self.lines(of: outputPipe) { line in
      guard let hint, line.contains(hint) else { return }
      // Right behind the first signal, others are the same request.
      while ended.wait(timeout: .now() + 0.1) == .timedOut { process.terminate() }
    }
    errors = Self.lines(of: errorPipe)
  }

  deinit { process.terminate() }

  /// Reads lines until one satisfies `condition`, and gives it; nil when the output has ended.
  func line(where condition: (String) -> Bool) async -> String? {
    for await line in output where condition(line) { return line }
    return nil
  }

  /// Reads lines until one contains `text`.
  func expect(_ text: String, at location: SourceLocation = #_sourceLocation) async {
    let line = await line { $0.contains(text) }
    #expect(line != nil, "The output ended without '\(text)'.", sourceLocation: location)
  }

  /// Everything that it still has to say, once it has ended.
  func rest() async -> (output: [String], errors: [String]) {
    var result: (output: [String], errors: [String]) = ([], [])
    for await line in output { result.output.append(line) }
    for await line in errors { result.errors.append(line) }
    return result
  }

  func terminate() { process.terminate() }

  func freeze() { process.freeze() }

  func signal(_ number: Int32) { process.signal(number) }

  /// Waits for its end and gives its exit code.
  func exitCode() async -> Int32? {
    for await code in exit { return code }
    return nil
  }

  private static func lines(
    of pipe: Pipe, onLine: @escaping @Sendable (String) -> Void = { _ in }
  ) -> AsyncStream<String> {
    AsyncStream { continuation in
      let reader = pipe.fileHandleForReading
      Thread.detachNewThread {
        var rest = Data()
        while true {
          let more = reader.availableData
          if more.isEmpty { break }
          rest += more
          while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
            onLine(line)
            continuation.yield(line)
            rest = Data(rest[rest.index(after: end)...])
          }
        }
        if !rest.isEmpty { continuation.yield(String(decoding: rest, as: UTF8.self)) }
        continuation.finish()
      }
    }
  }
}
