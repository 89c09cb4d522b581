import Foundation

/// `chat serve` serves rooms; `chat join NAME` takes part.
@main
@MainActor
struct Chat {
  static let usage = """
    Rooms in which people write to each other, online or not.

    USAGE: chat serve [--port N] [--data FOLDER] [--moderator NAME]...
           chat join NAME [ROOM] [--server URL] [--data FOLDER]

    The server listens on port 8080 unless told otherwise. URL begins with ws:// or wss://, and the room is hall unless
    given. The server keeps its logs in FOLDER/server, and a client in FOLDER/clients/NAME. FOLDER is chat-data unless
    given.
    """

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    // A file that is opened where a stream was closed would get what is printed.
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
    var words: [String] = []
    var options = ["--port": "8080", "--server": "ws://127.0.0.1:8080", "--data": "chat-data"]
    var moderators: Set<String> = []
    var rest = CommandLine.arguments.dropFirst()
    while let argument = rest.popFirst() {
      if ["--help", "-h"].contains(argument) {
        for line in usage.split(separator: "\n", omittingEmptySubsequences: false) {
          Terminal.say(String(line))
        }
        exit(0)
      } else if options[argument] != nil {
        guard let value = rest.popFirst() else { fail("\(argument) needs a value") }
        options[argument] = value
      } else if argument == "--moderator" {
        guard let name = rest.popFirst(), isName(name) else { fail("\(argument) needs a name") }
        moderators.insert(name)
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
        let server = ChatServer(folder: "\(data)/server", moderators: moderators)
        try await serve(server, port: port)
      case 2...3 where words[0] == "join":
        guard words.dropFirst().allSatisfy(isName) else {
          fail("names have up to 20 small letters, digits and hyphens")
        }
        guard isAddress(server) else {
          fail("'\(server)' is no address: it must begin with ws:// or wss://")
        }
        let client = try ChatClient(
          user: words[1], room: words.count == 3 ? words[2] : "hall", server: server,
          folder: "\(data)/clients/\(words[1])")
        let terminal = Terminal(client)
        try client.connect()
        await terminal.run()
        try await client.close()
      default: fail("it needs serve, or join with a name\n\n\(usage)")
      }
    } catch {
      fail("\(error)")
    }
  }

  /// Serves until the process is killed: whatever a client was told is in the logs. Commands come from the standard
  /// input, if there is one.
  private static func serve(_ server: ChatServer, port: UInt16) async throws {
    signal(SIGTTIN, SIG_IGN)  // A server in the background has no terminal to read from.
    let port = try await server.start(port: port)
    Terminal.say("Serving on ws://127.0.0.1:\(port)")
    for await line in Terminal.lines() { await server.perform(line) }
    while true { try await Task.sleep(for: .seconds(3600)) }
  }

  private static func isAddress(_ text: String) -> Bool {
    ["ws://", "wss://"].contains { text.lowercased().hasPrefix($0) }
  }

  private static func fail(_ text: String) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("chat: \(text)\n".utf8))
    exit(2)
  }
}

/// The reason for which the command ends, in a sentence.
struct Problem: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
