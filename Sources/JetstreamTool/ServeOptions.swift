import Foundation
import Jetstream
import JetstreamServer

/// The options of the `jetstream serve` command line.
struct ServeOptions: Equatable {
  /// The description of an error in the command line.
  struct Problem: Error, Equatable {
    let text: String
  }

  var isHelp = false
  var host = "127.0.0.1"
  var port: UInt16 = 8080
  var directory = ""
  var durability = LogDurability.everyChangeSet
  var history = LogHistory.all
  /// The file with the schema of all scopes; nil to take that of each scope's first client.
  var schema: String?
  /// The file with the keys of the users; nil to let everyone in.
  var keys: String?
  /// The addresses of proxies that are believed when they name the address of a client.
  var proxies: Set<String> = []
  /// The largest number of open scopes; nil for as many as the file descriptors allow.
  var open: Int?
  var idleTime: Duration = .seconds(60)
  var origins: Set<String> = []
  var hosts: Set<String> = []
  var level = Diagnostic.Level.warning

  static let usage = """
    usage: jetstream serve --data DIRECTORY [options]

    Serves the scopes of any app. A scope is opened when a client fetches it, with its history in a log in the directory,
    and closed when no client has had it for a while. The first client of a new scope brings the schema of its classes,
    which is kept beside the log. Without --keys, anyone who can connect can read and write every scope.

      --data DIRECTORY      where the scopes are; one process at a time uses it
      --host ADDRESS        the address to serve on (default 127.0.0.1, this machine only; :: for the whole network)
      --port N              the port (default 8080; 0 has the system choose one)
      --durability each|none|SECONDS
                            when a change set is accepted and others see it: once it is synced to the disk (each, the
                            default); with the next sync, of which there is one in so many seconds, at most 10; or once it
                            is written (none), so that a power failure may take back what was seen
      --history all|none|N  what a log keeps behind a snapshot: everything (the default), nothing, or N records
      --schema FILE         serves scopes of the classes of this schema only, which ScopeSchema.json writes
      --keys FILE           lets in only clients that send a key of this file. It has a line for each user: the key, of at
                            least 16 characters, the name, and read-only for one who may not change anything, and gets
                            a scope once a client that may change it has fetched it. A client sends its key in the
                            URL, as ?x-jetstream-key=KEY, or as the parameter key of its session
      --trusted-proxy A     believes a proxy at this address when it names a client's address; may be repeated
      --open N              at most N scopes are open at a time (default: what the open files allow)
      --idle SECONDS        closes a scope that no client has had for so long (default 60)
      --allow-origin O      lets pages of this origin in, such as https://app.example.org; null for pages without one, * for
                            all; may be repeated
      --allow-host NAME     serves requests for this name, as a proxy on this machine passes it on; may be repeated
      --log-level L         prints events from this level on: debug, info, warning (the default) or error

    After a backup was put in place of the directory, or if a log has lost its end, jetstream log new-epoch DIRECTORY
    tells clients that it is another history.

    SIGTERM and SIGINT write everything and end the process; clients come back by themselves. A second one ends it at once,
    if it comes at least half a second after the first.

    exit status: 0 stopped by a signal, 2 wrong usage, 3 it cannot serve, or could not close each scope when it stopped, 128 + N
    ended by a second signal N
    """

  init() {}

  /// Reads the arguments behind `serve`.
  init(_ arguments: [String]) throws(Problem) {
    if arguments.contains("--help") || arguments.contains("-h") {
      isHelp = true
      return
    }
    var rest = arguments[...]
    while let option = rest.popFirst() {
      switch option {
      case "--data": directory = try Self.value(of: option, &rest)
      case "--host": host = try Self.value(of: option, &rest)
      case "--port":
        let text = try Self.value(of: option, &rest)
        guard let number = UInt16(text) else {
          throw Problem(text: "--port needs a number from 0 to 65535, not \"\(text)\".")
        }
        port = number
      case "--durability": durability = try Self.durability(Self.value(of: option, &rest))
      case "--history": history = try Self.history(Self.value(of: option, &rest))
      case "--schema": schema = try Self.value(of: option, &rest)
      case "--keys": keys = try Self.value(of: option, &rest)
      case "--trusted-proxy":
        let proxy = try Self.value(of: option, &rest)
        guard TrustedProxies.canTrust(proxy) else {
          throw Problem(text: "--trusted-proxy needs a numeric address, not \"\(proxy)\".")
        }
        proxies.insert(proxy)
      case "--open": open = try Self.number(option, &rest, least: 1)
      case "--idle": idleTime = .seconds(try Self.number(option, &rest, least: 0))
      case "--allow-origin": origins.insert(try Self.origin(Self.value(of: option, &rest)))
      case "--allow-host": hosts.insert(try Self.host(Self.value(of: option, &rest)))
      case "--log-level": level = try Self.level(Self.value(of: option, &rest))
      case let other: throw Problem(text: "there is no option \(other).")
      }
    }
    if directory.isEmpty { throw Problem(text: "it needs --data and a directory.") }
  }

  private static func value(
    of option: String, _ rest: inout ArraySlice<String>
  ) throws(Problem) -> String {
    guard let text = rest.popFirst(), !text.isEmpty else {
      throw Problem(text: "\(option) needs a value.")
    }
    return text
  }

  private static func number(
    _ option: String, _ rest: inout ArraySlice<String>, least: Int
  ) throws(Problem) -> Int {
    let text = try value(of: option, &rest)
    guard let number = Int(text), (least...1_000_000).contains(number) else {
      throw Problem(text: "\(option) needs a number from \(least) to 1000000, not \"\(text)\".")
    }
    return number
  }

  private static func durability(_ text: String) throws(Problem) -> LogDurability {
    switch text {
    case "each": return .everyChangeSet
    case "none": return .none
    default:
      let need =
        "--durability needs each, none or up to \(longestInterval) seconds, not \"\(text)\""
      guard let seconds = Double(text), seconds > 0 else { throw Problem(text: "\(need).") }
      guard seconds <= Double(longestInterval) else {
        throw Problem(
          text: "\(need): clients are told after the sync, and would wait for so long.")
      }
      return .interval(.seconds(seconds))
    }
  }

  /// The largest number of seconds between two syncs.
  private static let longestInterval = 10

  private static func history(_ text: String) throws(Problem) -> LogHistory {
    switch text {
    case "all": return .all
    case "none": return .nothing
    default:
      guard let count = Int(text), count > 0 else {
        throw Problem(text: "--history needs all, none or a number of records, not \"\(text)\".")
      }
      return .last(count)
    }
  }

  private static func level(_ text: String) throws(Problem) -> Diagnostic.Level {
    switch text {
    case "debug": .debug
    case "info": .info
    case "warning": .warning
    case "error": .error
    default:
      throw Problem(text: "--log-level needs debug, info, warning or error, not \"\(text)\".")
    }
  }
}
