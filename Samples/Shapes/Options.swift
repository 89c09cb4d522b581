/// What was asked for on the command line.
struct Options: Equatable {
  /// What the process is to do.
  enum Task: Equatable {
    /// Offer a drawing to browsers and other processes.
    case serve(host: String, port: UInt16, storage: Storage)
    /// Take part in the drawing of a server.
    case join(url: String)
    /// Explain the options.
    case help
  }

  /// The place that keeps the drawing.
  enum Storage: Equatable {
    /// In a folder of the user's cache folder.
    case cache
    /// In this folder.
    case folder(String)
    /// Nowhere: it ends with the process.
    case memory
  }

  /// Why the command line cannot be understood, in words.
  struct Problem: Error, Equatable {
    let text: String
  }

  var task: Task

  static let usage = """
    A drawing that browsers and processes share.

    USAGE: shapes [--host H] [--port N] [--log DIRECTORY | --memory]
           shapes --join URL

    OPTIONS:
      --host H    The address to serve on (default: 127.0.0.1, this machine only;
                  0.0.0.0 or :: for the whole network).
      --port N    The port to serve on (default: 8080; 0 has the system choose one).
      --log D     The folder in which the drawing is kept (default: jetstream-shapes
                  in your cache folder).
      --memory    Keep the drawing in memory only.
      --join URL  Take part in the drawing at URL, such as ws://127.0.0.1:8080,
                  instead of serving one.
      --help      Show this text.

    """

  /// Reads the arguments behind the program's name. The last of several equal options counts.
  init(_ arguments: some Sequence<String>) throws(Problem) {
    var host: String?
    var port: UInt16?
    var url: String?
    var wantsHelp = false
    var storage: Storage?
    var rest = Array(arguments)[...]
    while let argument = rest.popFirst() {
      let (name, attached) = Self.split(argument)
      switch name {
      case "--help", "-h":
        if attached != nil { throw Problem(text: "\(name) takes no value") }
        wantsHelp = true
      case "--host": host = try Self.value(of: name, attached, &rest)
      case "--port":
        let text = try Self.value(of: name, attached, &rest)
        guard let number = UInt16(text) else {
          throw Problem(text: "'\(text)' is no port: it has to be a number from 0 to 65535")
        }
        port = number
      case "--log":
        if storage == .memory { throw Problem(text: "--log and --memory contradict each other") }
        storage = .folder(try Self.value(of: name, attached, &rest))
      case "--memory":
        if attached != nil { throw Problem(text: "\(name) takes no value") }
        if case .folder? = storage {
          throw Problem(text: "--log and --memory contradict each other")
        }
        storage = .memory
      case "--join":
        let text = try Self.value(of: name, attached, &rest)
        guard ["ws://", "wss://"].contains(where: { text.lowercased().hasPrefix($0) }) else {
          throw Problem(text: "'\(text)' is no address to join: it must begin with ws:// or wss://")
        }
        url = text
      default: throw Problem(text: "Unknown option '\(argument)'")
      }
    }
    if wantsHelp {
      task = .help
    } else if let url {
      if host != nil || port != nil {
        throw Problem(text: "--join names the server, so --host and --port cannot be given with it")
      }
      if storage != nil {
        throw Problem(
          text: "with --join the server keeps the drawing, so --log and --memory do not fit")
      }
      task = .join(url: url)
    } else {
      task = .serve(host: host ?? "127.0.0.1", port: port ?? 8080, storage: storage ?? .cache)
    }
  }

  /// `--name=value` in its two parts.
  private static func split(_ argument: String) -> (name: String, value: String?) {
    guard argument.hasPrefix("--"), let at = argument.firstIndex(of: "=") else {
      return (argument, nil)
    }
    return (String(argument[..<at]), String(argument[argument.index(after: at)...]))
  }

  private static func value(
    of name: String, _ attached: String?, _ rest: inout ArraySlice<String>
  ) throws(Problem) -> String {
    guard let value = attached ?? rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else {
      throw Problem(text: "\(name) needs a value")
    }
    return value
  }
}
