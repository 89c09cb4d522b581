import Foundation

/// What the command line asks for.
enum Command: Equatable {
  case help
  case serve(ServeOptions)
  case join(JoinOptions)

  static let usage = """
    A catalogue of events and performances that several processes edit at the same time.

    catalogue serve [--file FILE] [--port PORT] [--edits COUNT] [--seed SEED] [--name NAME] [--wait]
    catalogue join --url URL [--edits COUNT] [--seed SEED] [--cut COUNT] [--name NAME] [--wait]

      --file FILE    the catalogue to serve; citm_catalog.json in $JETSTREAM_DATA, or in
                     ../shared/data, unless given
      --port PORT    where to listen; a free port unless given
      --url URL      where to join, as the server prints it
      --edits COUNT  how many random edits to make; none unless given
      --seed SEED    chooses the edits; 1 unless given
      --cut COUNT    how often to cut the own connection while editing; never unless given
      --name NAME    what to sign with; "server" or "client" with the seed unless given
      --wait         begin to edit when told to, instead of once there is somebody to edit with

    Both print "ready" when they have the catalogue and "edited COUNT" when the edits are made, and
    answer these lines:

      go             begin to edit; prints nothing
      quiet?         waits until all own edits are made and decided; prints "quiet PENDING"
      mark           leaves a mark behind the own edits and waits until it is decided; prints
                     "marked NAME"
      await NAME     waits for the mark of NAME; prints "seen NAME"
      print [FILE]   prints "canonical BYTES HASH" of the catalogue's canonical JSON, which it
                     writes to FILE if given
      notes          prints "notes" and the numbers of the edits that added a note to the own journal
      report         prints "report" and what else happened: cuts=N rejected=N models=N
      exit           ends; so does the end of the input

    Whoever is quiet and has seen the mark of everybody else who edits has all there is.
    """
}

struct ServeOptions: Equatable {
  var file: String?
  var port: UInt16 = 0
  var editing = EditOptions()

  /// The file to read: the one given, or where the data usually is.
  func path(environment: [String: String]) -> String {
    if let file { return file }
    return (environment["JETSTREAM_DATA"] ?? "../shared/data") + "/citm_catalog.json"
  }
}

struct JoinOptions: Equatable {
  var url = ""
  var cuts = 0
  var editing = EditOptions()
}

struct EditOptions: Equatable {
  var edits = 0
  var seed: UInt64 = 1
  var name: String?
  var waits = false
}

/// What is wrong with a command line.
struct UsageError: Error, Equatable {
  let message: String
}

extension Command {
  /// Reads the arguments after the program's name.
  init(arguments: [String]) throws(UsageError) {
    if arguments.contains("--help") || arguments.contains("-h") || arguments.first == "help" {
      self = .help
      return
    }
    guard let name = arguments.first else {
      throw UsageError(message: "say what to do: serve or join")
    }
    var rest = Arguments(arguments.dropFirst())
    switch name {
    case "serve":
      var options = ServeOptions()
      while let option = rest.next() {
        switch option {
        case "--file": options.file = try rest.value(of: option)
        case "--port": options.port = try rest.number(of: option)
        default: try options.editing.take(option, from: &rest)
        }
      }
      self = .serve(options)
    case "join":
      var options = JoinOptions()
      while let option = rest.next() {
        switch option {
        case "--url": options.url = try rest.value(of: option)
        case "--cut": options.cuts = try rest.count(of: option)
        default: try options.editing.take(option, from: &rest)
        }
      }
      guard !options.url.isEmpty else { throw UsageError(message: "join needs --url") }
      guard options.url.hasPrefix("ws://") || options.url.hasPrefix("wss://") else {
        throw UsageError(message: "--url should begin with ws:// or wss://, not '\(options.url)'")
      }
      self = .join(options)
    default: throw UsageError(message: "there is no command '\(name)': say serve or join")
    }
  }
}

extension EditOptions {
  fileprivate mutating func take(
    _ option: String, from rest: inout Arguments
  ) throws(UsageError) {
    switch option {
    case "--edits": edits = try rest.count(of: option)
    case "--seed": seed = try rest.number(of: option)
    case "--name":
      let value = try rest.value(of: option)
      guard !value.isEmpty, !value.contains(where: \.isWhitespace) else {
        throw UsageError(message: "--name should be one word, not '\(value)'")
      }
      name = value
    case "--wait": waits = true
    default: throw UsageError(message: "there is no option '\(option)' here")
    }
  }
}

/// The arguments that are left.
private struct Arguments {
  private var rest: ArraySlice<String>

  init(_ rest: ArraySlice<String>) { self.rest = rest }

  mutating func next() -> String? { rest.popFirst() }

  mutating func value(of option: String) throws(UsageError) -> String {
    guard let value = rest.popFirst() else {
      throw UsageError(message: "\(option) needs a value")
    }
    return value
  }

  mutating func number<Number: FixedWidthInteger>(
    of option: String
  ) throws(UsageError) -> Number {
    let text = try value(of: option)
    guard let number = Number(text) else {
      throw UsageError(
        message: "\(option) should be a number from \(Number.min) to \(Number.max), not '\(text)'")
    }
    return number
  }

  mutating func count(of option: String) throws(UsageError) -> Int {
    let number: UInt32 = try number(of: option)
    return Int(number)
  }
}
