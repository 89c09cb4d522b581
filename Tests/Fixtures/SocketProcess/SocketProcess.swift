import Foundation
import JetstreamWebSocket

/// Holds sockets in a process of its own, whose descriptors can be counted and limited without harm to the tests.
///
///     SocketProcess listener MILLISECONDS
///     SocketProcess crowd PORT
///
/// Each role does what the lines of its input say, and answers every one of them with a line: see ``Listener`` and
/// ``Crowd``. It ends with its input.
@main
struct SocketProcess {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let number = Int(arguments[2]) else { fail("wrong arguments") }
    Descriptors.raiseLimit()
    // A write to a connection that the other end has reset is only an error.
    signal(SIGPIPE, SIG_IGN)
    do {
      switch arguments[1] {
      case "listener":
        let listener = try await Listener(handshakeTimeout: .milliseconds(number))
        say("\(listener.port)")
        obey { listener.answer(to: $0) }
      case "crowd":
        let crowd = Crowd(port: UInt16(number))
        obey { crowd.answer(to: $0) }
      default: fail("there is no such role")
      }
    } catch {
      fail("\(error)")
    }
  }

  private static func obey(_ answer: (String) -> String) {
    while let line = readLine() { say(answer(line)) }
  }

  static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

  /// Ends the process, but not as a crash, for which the runtime would write a backtrace.
  static func fail(_ problem: String) -> Never {
    FileHandle.standardError.write(Data("SocketProcess: \(problem)\n".utf8))
    exit(1)
  }
}
