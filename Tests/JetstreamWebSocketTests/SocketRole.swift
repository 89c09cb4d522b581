import Foundation
import Pacing
import Testing

/// A role of the program `SocketProcess`, in a process of its own that ends with this object.
final class SocketRole: Sendable {
  private let process: ChildProcess
  private let input = ChildProcess.pipe()
  private let output: AsyncStream<String>

  init(_ arguments: String...) throws {
    let folder = try #require(LogProcess.folder, "The folder of the tests is not known.")
    let pipe = ChildProcess.pipe()
    process = try ChildProcess(
      folder.appendingPathComponent("SocketProcess"), arguments, input: input, output: pipe)
    output = AsyncStream { continuation in
      Thread.detachNewThread {
        var rest = Data()
        while true {
          let more = pipe.fileHandleForReading.availableData
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

  deinit { process.signal(SIGKILL) }

  /// Returns the next line that it says. Throws when it has ended.
  func line() async throws -> String {
    for await line in output { return line }
    throw ProcessProblem(text: "The process has ended.")
  }

  /// Returns the answer to a command, past the refusals that a listener has still said.
  func ask(_ command: String) async throws -> String {
    try ChildProcess.write(Data((command + "\n").utf8), to: input.fileHandleForWriting)
    while true {
      let line = try await line()
      if !line.hasPrefix("refused ") { return line }
    }
  }

  /// Asks until the answer is this one, for a minute.
  func ask(_ command: String, until answer: String) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while true {
      let last = try await ask(command)
      if last == answer { return }
      try #require(.now < end, "'\(command)' is still answered with \(last), not \(answer).")
    }
  }

  /// A listener that sends back what comes, with its port.
  static func listener(handshakeTimeout: Duration) async throws -> (SocketRole, port: UInt16) {
    let role = try SocketRole("listener", "\(Int(handshakeTimeout / .milliseconds(1)))")
    return (role, try #require(UInt16(try await role.line())))
  }
}
