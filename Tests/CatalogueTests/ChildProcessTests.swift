import Foundation
import Pacing
import Testing

@Suite("Processes beside the tests")
struct ChildProcessTests {
  @Test("A process receives a signal, although the threads that run tests block it")
  func signals() async throws {
    let process = try ChildProcess(
      URL(fileURLWithPath: "/bin/sh"), ["-c", "trap 'exit 7' TERM; kill -TERM $$; exit 3"])
    #expect(process.waitUntilExit() == 7)
  }

  @Test("A process that is asked to end ends by that signal")
  func terminate() async throws {
    let input = ChildProcess.pipe()
    let process = try ChildProcess(URL(fileURLWithPath: "/bin/cat"), [], input: input)
    process.terminate()
    // A process in which the signal is blocked ends here, by the end of its input.
    try input.fileHandleForWriting.close()
    #expect(process.waitUntilExit() == SIGTERM)
  }
}
