import Foundation

/// `checkout serve` sells; `checkout buy NAME ITEM` buys.
@main
@MainActor
struct Command {
  static let usage = """
    A shop that sells each piece once.

    USAGE: checkout serve [--port N] [--data FOLDER] [--stock N]
           checkout buy NAME ITEM [COUNT] [--server URL] [--data FOLDER]

    The server listens on port 8080 and sells ten pieces of each item, unless told otherwise. URL begins with ws:// or
    wss://. Both keep what they know in FOLDER, which is checkout-data unless given.
    """

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    // A file that is opened where a stream was closed would get what is printed.
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
    var words: [String] = []
    var options = [
      "--port": "8080", "--server": "ws://127.0.0.1:8080", "--data": "checkout-data",
      "--stock": "10",
    ]
    var rest = CommandLine.arguments.dropFirst()
    while let argument = rest.popFirst() {
      if ["--help", "-h"].contains(argument) {
        for line in usage.split(separator: "\n", omittingEmptySubsequences: false) {
          say(String(line))
        }
        exit(0)
      } else if options[argument] != nil {
        guard let value = rest.popFirst() else { fail("\(argument) needs a value") }
        options[argument] = value
      } else if argument.hasPrefix("--") {
        fail("there is no option \(argument)")
      } else {
        words.append(argument)
      }
    }
    do {
      switch words.count {
      case 1 where words[0] == "serve":
        try await serve(options)
      case 3...4 where words[0] == "buy":
        guard isName(words[1]) else {
          fail("names have up to 20 small letters, digits and hyphens")
        }
        guard let count = Int(words.count == 4 ? words[3] : "1"), (1...1_000).contains(count) else {
          fail("'\(words[3])' is no number of pieces")
        }
        // Before the purchase is in the log, from which another address would not take it away.
        let server = options["--server"]!
        guard isAddress(server) else {
          fail("'\(server)' is no address: it must begin with ws:// or wss://")
        }
        let buyer = try Buyer(words[1], server: server, folder: options["--data"]!)
        buyer.connect { fail("\($0)") }
        exit(try await buyer.buy(words[2], count: count) ? 0 : 1)
      default: fail("it needs serve, or buy with a name and an item\n\n\(usage)")
      }
    } catch {
      fail("\(error)")
    }
  }

  /// Serves until the process is killed: whatever a client was told is in the log.
  private static func serve(_ options: [String: String]) async throws {
    guard let port = UInt16(options["--port"]!) else { fail("'\(options["--port"]!)' is no port") }
    guard let stock = Int(options["--stock"]!), (0...1_000_000).contains(stock) else {
      fail("'\(options["--stock"]!)' is no stock")
    }
    let server = try ShopServer(folder: options["--data"]!)
    say("Serving on ws://127.0.0.1:\(try await server.start(port: port, stock: stock))")
    while true { try await Task.sleep(for: .seconds(3600)) }
  }

  /// Writes a line at once, although the output may be a pipe. Control characters in what peers have sent give no
  /// commands to a terminal.
  nonisolated static func say(_ line: String) {
    let shown = line.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
    }
    try? FileHandle.standardOutput.write(
      contentsOf: Data("\(String(String.UnicodeScalarView(shown)))\n".utf8))
  }

  private static func isAddress(_ text: String) -> Bool {
    ["ws://", "wss://"].contains { text.lowercased().hasPrefix($0) }
  }

  private static func fail(_ text: String) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("checkout: \(text)\n".utf8))
    exit(2)
  }
}

/// The reason for which the command ends, in a sentence.
struct Problem: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
