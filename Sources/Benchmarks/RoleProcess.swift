import Foundation

struct RoleProblem: Error, CustomStringConvertible {
  let text: String
  var description: String { text }
}

/// A process that runs this program in another role.
final class RoleProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var rest = Data()

  init(_ arguments: [String]) throws {
    process.executableURL = Bundle.main.executableURL
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  func say(_ line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
  }

  func line() throws -> String {
    while true {
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        defer { rest = Data(rest[rest.index(after: end)...]) }
        return String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { throw RoleProblem(text: "a process that was started has ended") }
      rest += more
    }
  }

  func end() {
    process.terminate()
    process.waitUntilExit()
  }

  /// Ends the input of the process, which lets it end what it has started, and then itself. Kills it if that takes more
  /// than five seconds.
  func finish() {
    try? input.fileHandleForWriting.close()
    for _ in 0..<500 where process.isRunning { Thread.sleep(forTimeInterval: 0.01) }
    kill()
  }

  /// Ends the process without any warning.
  func kill() {
    guard process.isRunning else { return }
    _ = Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

/// The lines between a role and the process that has started it: commands and answers.
enum RoleLines {
  static func say(_ line: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
  }

  /// Leaves the processors to others. Call it before threads are started.
  static func lowerPriority() {
    #if os(Linux)
    var parameters = sched_param()
    _ = sched_setscheduler(0, 5, &parameters)  // SCHED_IDLE
    #else
    _ = setpriority(PRIO_PROCESS, 0, 19)
    #endif
  }

  /// The lines that the process that has started this one says.
  static func commands() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }

  /// Lets the process have as many sockets as the system permits.
  static func raiseDescriptorLimit() {
    var limit = rlimit()
    #if canImport(Darwin)
    let descriptors = RLIMIT_NOFILE
    #else
    let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #endif
    guard getrlimit(descriptors, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(descriptors, &limit)
  }
}
