import Foundation
import Pacing

/// The catalogue's executable, and the real data, if that is there.
enum Place {
  /// The real data, in `JETSTREAM_DATA` or beside the package; nil if it is not there.
  static let realData: String? = {
    let package = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let folder =
      ProcessInfo.processInfo.environment["JETSTREAM_DATA"].map { URL(fileURLWithPath: $0) }
      ?? package.deletingLastPathComponent().appendingPathComponent("shared/data")
    let file = folder.appendingPathComponent("citm_catalog.json").path
    return FileManager.default.isReadableFile(atPath: file) ? file : nil
  }()

  /// Makes a folder for a test and writes a sample catalogue into it.
  static func folder(
    performances count: Int
  ) throws -> (folder: URL, data: String) {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("catalogue-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("catalogue.json")
    try SampleCatalogue.json(performances: count).write(to: file)
    return (folder, file.path)
  }

  /// An executable, which is built into the same folder as the tests.
  static func executable(_ name: String) throws -> URL {
    var places = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }.map(\.bundleURL)
    if let own = Bundle.main.executableURL { places.append(own) }
    // A runner elsewhere is told where the tests are.
    for argument in CommandLine.arguments {
      guard let end = argument.range(of: ".xctest") else { continue }
      places.append(URL(fileURLWithPath: String(argument[..<end.upperBound])))
    }
    let found = places.map { $0.deletingLastPathComponent().appendingPathComponent(name) }
    guard let place = found.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) })
    else { throw ProcessError(description: "The executable '\(name)' is not beside the tests.") }
    return place
  }
}

/// What went wrong with a process.
struct ProcessError: Error, CustomStringConvertible {
  let description: String
}

/// The output of a process that has ended.
typealias ProcessEnd = (lines: [String], errors: String, status: Int32)

/// Runs the catalogue to its end.
func runCatalogue(_ arguments: [String]) async throws -> ProcessEnd {
  try await run("catalogue", arguments)
}

/// Runs an executable to its end, or until the test is cancelled.
func run(_ name: String, _ arguments: [String]) async throws -> ProcessEnd {
  let executable = try Place.executable(name)
  let (output, errors) = (ChildProcess.pipe(), ChildProcess.pipe())
  let process = try ChildProcess(executable, arguments, output: output, errors: errors)
  return await withTaskCancellationHandler {
    await blocking {
      // Both are short enough for a pipe.
      let said = [output, errors].map {
        String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      }
      let lines = said[0].split(separator: "\n").map(String.init)
      return (lines, said[1], process.waitUntilExit())
    }
  } onCancel: {
    process.signal(SIGKILL)
  }
}

/// A process of the catalogue: lines go in, lines come out.
final class CatalogueProcess {
  private let process: ChildProcess
  private let input = ChildProcess.pipe()
  private var lines: AsyncStream<String>.Iterator
  /// What lines begin with that come at any time, if not with the name of a room; they are put into ``asides``.
  var asideWords: Set<String> = []
  /// The lines of that kind that have come and were not taken.
  private var asides: [String] = []

  /// - Parameter filter: a command of the shell that reads what it prints first.
  init(
    _ arguments: [String], of name: String = "catalogue", through filter: String? = nil
  ) throws {
    let executable = try Place.executable(name)
    let output = ChildProcess.pipe()
    if let filter {
      process = try ChildProcess(
        URL(fileURLWithPath: "/bin/sh"),
        ["-c", "\"$0\" \"$@\" | \(filter)", executable.path] + arguments,
        input: input, output: output)
    } else {
      process = try ChildProcess(executable, arguments, input: input, output: output)
    }
    let (stream, continuation) = AsyncStream.makeStream(of: String.self)
    lines = stream.makeAsyncIterator()
    let reading = output.fileHandleForReading
    Thread.detachNewThread {
      var rest = Data()
      while case let data = reading.availableData, !data.isEmpty {
        rest.append(data)
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          continuation.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
          rest.removeSubrange(rest.startIndex...end)
        }
      }
      continuation.finish()
    }
  }

  /// Asks the process to end, without waiting for it.
  func terminate() { process.terminate() }

  /// Ends the process at once, without giving it a chance to do anything, and waits until it is gone.
  func kill() async {
    abandon()
    await process.exitCode()
  }

  /// Ends the process at once, without waiting for it.
  func abandon() { process.signal(SIGKILL) }

  func say(_ line: String) throws {
    try ChildProcess.write(Data((line + "\n").utf8), to: input.fileHandleForWriting)
  }

  /// The rest of the next line, which has to begin with `word`. Ends with an error when the process
  /// does, or when the test is cancelled because its time is over.
  func expect(_ word: String) async throws -> String {
    var next = await lines.next(isolation: #isolation)
    while let line = next, isAside(line) {
      asides.append(line)
      next = await lines.next(isolation: #isolation)
    }
    guard let line = next else {
      throw ProcessError(description: "There was no line to begin with '\(word)'.")
    }
    guard line == word || line.hasPrefix(word + " ") else {
      throw ProcessError(description: "A line should begin with '\(word)': \(line)")
    }
    return String(line.dropFirst(word.count + 1))
  }

  private func isAside(_ line: String) -> Bool {
    line.split(separator: " ", maxSplits: 2).prefix(2).contains { asideWords.contains(String($0)) }
  }

  /// Waits until so many lines more have come that are put aside; fewer if the process ends.
  func awaitAsides(_ count: Int) async throws {
    for _ in 0..<count {
      guard let line = await lines.next(isolation: #isolation) else { return }
      guard isAside(line) else {
        throw ProcessError(description: "A line should be one that is put aside: \(line)")
      }
      asides.append(line)
    }
  }

  /// All that a process that has ended has put aside.
  func takeAsides() async -> [String] {
    while let line = await lines.next(isolation: #isolation) { asides.append(line) }
    defer { asides = [] }
    return asides
  }

  func ask(_ line: String, for word: String) async throws -> String {
    try say(line)
    return try await expect(word)
  }
}
