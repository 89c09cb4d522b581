import Foundation

/// `chat serve` serves rooms; `chat join NAME` takes part.
@main
@MainActor
struct Chat {
  static let usage = """
    Rooms in which people write to each other, online or not.

    USAGE: chat serve [--port N] [--data FOLDER]
           chat join NAME [ROOM] [--server URL] [--data FOLDER]

    """

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    var words: [String] = []
    var options = ["--port": "8080", "--server": "ws://127.0.0.1:8080", "--data": "chat-data"]
    var rest = CommandLine.arguments.dropFirst()
    while let argument = rest.popFirst() {
      if options[argument] != nil {
        guard let value = rest.popFirst() else { fail("\(argument) needs a value") }
        options[argument] = value
      } else if argument.hasPrefix("-") {
        fail("there is no option \(argument)")
      } else {
        words.append(argument)
      }
    }
    let (port, server, data) = (options["--port"]!, options["--server"]!, options["--data"]!)
    do {
      switch words.count {
      case 1 where words[0] == "serve":
        guard let port = UInt16(port) else { fail("'\(port)' is no port") }
        try await serve(port: port, folder: "\(data)/server")
      case 2...3 where words[0] == "join":
        guard words.dropFirst().allSatisfy(isName) else {
          fail("names have up to 20 small letters, digits and hyphens")
        }
        let client = try ChatClient(
          user: words[1], room: words.count == 3 ? words[2] : "hall", server: server,
          folder: "\(data)/\(words[1])")
        let terminal = Terminal(client)
        try client.connect()
        await terminal.run()
      default: fail(usage)
      }
    } catch {
      fail("\(error)")
    }
  }

  /// Serves until the process is killed: whatever a client was told is in the logs.
  private static func serve(port: UInt16, folder: String) async throws {
    let server = ChatServer(folder: folder)
    let port = try await server.start(port: port)
    Terminal.say("Serving on ws://127.0.0.1:\(port)")
    while true { try await Task.sleep(for: .seconds(3600)) }
  }

  private static func fail(_ text: String) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("chat: \(text)\n".utf8))
    exit(2)
  }
}
