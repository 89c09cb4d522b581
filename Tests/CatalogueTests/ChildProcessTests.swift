import Foundation
import Pacing
import Testing

@Suite("Processes beside the tests")
struct ChildProcessTests {
  @Test("A process receives a signal, although the threads that run tests block it")
  func signals() async throws {
    let process = try ChildProcess(
      URL(fileURLWithPath: "/bin/sh"), ["-c", "trap 'exit 7' TERM; kill -TERM $$; exit 3"])
    #expect(await process.exitCode() == 7)
  }

  @Test("A process that is asked to end ends by that signal")
  func terminate() async throws {
    let input = ChildProcess.pipe()
    let process = try ChildProcess(URL(fileURLWithPath: "/bin/cat"), [], input: input)
    process.terminate()
    // A process in which the signal is blocked ends here, by the end of its input.
    try input.fileHandleForWriting.close()
    #expect(await process.exitCode() == SIGTERM)
  }

  @Test("Writing to a process that has ended throws, on a thread that does not block signals, too")
  @MainActor
  func brokenPipe() async throws {
    let input = ChildProcess.pipe()
    let process = try ChildProcess(
      URL(fileURLWithPath: "/bin/sh"), ["-c", "exit 0"], input: input)
    await process.exitCode()
    for _ in 0..<2 {
      #expect(throws: (any Error).self) {
        try ChildProcess.write(Data("late".utf8), to: input.fileHandleForWriting)
      }
    }
  }

  @Test("A port stays free although processes are started while it is looked for")
  func ports() async throws {
    async let processes = Task.detached {
      try (0..<100).map { _ in
        let input = ChildProcess.pipe()
        return (
          try ChildProcess(URL(fileURLWithPath: "/bin/cat"), [], input: input),
          input.fileHandleForWriting
        )
      }
    }.value
    let ports = await Task.detached { (0..<500).map { _ in keptPort() } }.value
    let started = try await processes
    #expect(ports.filter { !isFree($0) } == [])
    for (process, input) in started {
      try input.close()
      #expect(await process.exitCode() == 0)
    }
  }
}
