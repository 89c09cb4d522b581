import Foundation

/// What the command line asks for.
enum Command: Equatable {
  case help
  case serve(ServeOptions)
  case join(JoinOptions)
  case record(RecordOptions)
  case replay(ReplayOptions)
  case schema

  static let usage = """
    A catalogue of events and performances that several processes edit at the same time.

    catalogue serve [--room NAME]... [--file FILE] [--log FOLDER] [--snapshot-every COUNT] [--port PORT]
                    [--on-demand] [EDITING]
    catalogue join --url URL [--room NAME]... [--log FOLDER] [--snapshot-every COUNT] [--cut COUNT]
                   [EDITING]
    catalogue record --log FOLDER [--file FILE] [--edits COUNT] [--seed SEED] [--name NAME]
    catalogue replay --log FOLDER [--at SEQUENCE] [--undo] [--check STEP]
    catalogue schema

    EDITING is [--edits COUNT] [--seed SEED] [--name NAME] [--pause MS] [--wait] [--tell]

      --file FILE    the catalogue to serve or to record; unless given, citm_catalog.json in the folder
                     $JETSTREAM_DATA, or in the current one. The file is part of the nativejson-benchmark
                     collection: https://github.com/miloyip/nativejson-benchmark
      --room NAME    serves or joins the catalogue of a room, and can be given several times. Each room has a
                     catalogue of its own and a log of its own, in FOLDER/NAME. All lines of a room then begin
                     with its name, those that are read and those that are printed.
      --port PORT    where to listen; a free port unless given
      --on-demand    open the catalogue when the first client fetches it; clients are refused for now
                     until it is open
      --url URL      where to join, as the server prints it
      --edits COUNT  how many random edits to make; none unless given
      --seed SEED    chooses the edits; 1 unless given
      --cut COUNT    how often to cut the own connection while editing; never unless given
      --name NAME    what to sign with; "server", "recorder", or "client" with the seed unless given
      --pause MS     how many milliseconds to wait between edits; as few as possible unless given
      --tell         print "shown NUMBER SECONDS" after each edit, with the time since 1970, and
                     "sealed NUMBER" when the change set of all edits up to this one is pending
      --wait         begin to edit when told to, instead of once there is somebody to edit with

      --log FOLDER   the fragment log that record makes and replay reads, which needs no permission to
                     write; what serve and join keep, and go on from when they are started again
      --snapshot-every COUNT
                     after how many records of the log serve and join make a snapshot; 10,000 unless
                     given, never if it is 0
      --at SEQUENCE  the change set up to which is replayed; the last one unless given
      --undo         take back one change set after the other, to the first
      --check STEP   open every STEPth sequence number by itself, and compare it with what replaying
                     all change sets one after the other has come to

    record imports the catalogue, edits it and writes each change set to the log. Both print
    "canonical BYTES HASH": record of the import and of the end, replay of what it has come to. They
    end then. schema prints the classes of the catalogue as JSON, from which a server can host it that does not have
    them.

    serve and join print "ready" when they have all catalogues and "edited COUNT" when the edits are made, and
    answer these lines:

      go             begin to edit; prints nothing
      stop           edit no more; prints nothing
      cut            cuts the own connection; prints nothing
      kept?          waits until the log has all edits made so far; prints "kept COUNT"
      quiet?         waits until all own edits are made and decided; prints "quiet PENDING"
      mark           leaves a mark behind the own edits and waits until it is decided; prints
                     "marked NAME"
      await NAME     waits for the mark of NAME; prints "seen NAME"
      print [FILE]   prints "canonical BYTES HASH" of the catalogue's canonical JSON, which it
                     writes to FILE if given
      notes          prints "notes" and the numbers of the edits that added a note to the own journal
      last NAME      prints "last NUMBER": the last edit of NAME that the catalogue has
      report         prints "report" and what else happened: cuts=N rejected=N models=N
      exit           ends; so does the end of the input

    Whoever is quiet and has seen the mark of everybody else who edits has all there is.
    """
}

struct ServeOptions: Equatable {
  var rooms = RoomNames()
  var file: String?
  var log: String?
  var snapshotEvery = 10_000
  var port: UInt16 = 0
  var isOnDemand = false
  var editing = EditOptions()

  /// The file to read: the one given, or the one in the folder of the data, which is the current folder unless named.
  func path(environment: [String: String]) -> String {
    if let file { return file }
    let name = "citm_catalog.json"
    return environment["JETSTREAM_DATA"].map { "\($0)/\(name)" } ?? name
  }
}

struct JoinOptions: Equatable {
  var url = ""
  var rooms = RoomNames()
  var log: String?
  var snapshotEvery = 10_000
  var cuts = 0
  var editing = EditOptions()
}

/// The rooms that are served or joined: those that were named, or the only one, which needs no name.
struct RoomNames: Equatable {
  /// The name of the only room.
  static let only = "Catalogue"

  private(set) var named: [String] = []

  /// The names of the scopes.
  var all: [String] { named.isEmpty ? [Self.only] : named }

  /// What the lines of a room begin with.
  func prefix(of room: String) -> String { named.isEmpty ? "" : room + " " }

  /// Where the log of a room is, below the folder that was given.
  func log(of room: String, in folder: String) -> String {
    named.isEmpty ? folder : folder + "/" + room
  }

  fileprivate mutating func add(_ name: String) throws(UsageError) {
    guard name.first?.isLetter == true, name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "-" })
    else { throw UsageError(message: "--room should be letters and digits, not '\(name)'") }
    guard !named.contains(name) else {
      throw UsageError(message: "--room '\(name)' is given twice")
    }
    named.append(name)
  }
}

struct RecordOptions: Equatable {
  var log = ""
  var source = ServeOptions()
}

struct ReplayOptions: Equatable {
  var log = ""
  var sequence: Int?
  var undoes = false
  var step: Int?
}

struct EditOptions: Equatable {
  var edits = 0
  var seed: UInt64 = 1
  var name: String?
  var pause: Duration?
  var waits = false
  var tells = false
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
      throw UsageError(message: "say what to do: serve, join, record, replay or schema")
    }
    var rest = Arguments(arguments.dropFirst())
    switch name {
    case "serve":
      var options = ServeOptions()
      while let option = rest.next() {
        switch option {
        case "--room": try options.rooms.add(try rest.value(of: option))
        case "--file": options.file = try rest.value(of: option)
        case "--log": options.log = try rest.value(of: option)
        case "--snapshot-every": options.snapshotEvery = try rest.count(of: option)
        case "--port": options.port = try rest.number(of: option)
        case "--on-demand": options.isOnDemand = true
        default: try options.editing.take(option, from: &rest)
        }
      }
      self = .serve(options)
    case "join":
      var options = JoinOptions()
      while let option = rest.next() {
        switch option {
        case "--url": options.url = try rest.value(of: option)
        case "--room": try options.rooms.add(try rest.value(of: option))
        case "--log": options.log = try rest.value(of: option)
        case "--snapshot-every": options.snapshotEvery = try rest.count(of: option)
        case "--cut": options.cuts = try rest.count(of: option)
        default: try options.editing.take(option, from: &rest)
        }
      }
      guard !options.url.isEmpty else { throw UsageError(message: "join needs --url") }
      guard options.url.hasPrefix("ws://") || options.url.hasPrefix("wss://") else {
        throw UsageError(message: "--url should begin with ws:// or wss://, not '\(options.url)'")
      }
      self = .join(options)
    case "record":
      var options = RecordOptions()
      while let option = rest.next() {
        switch option {
        case "--log": options.log = try rest.value(of: option)
        case "--file": options.source.file = try rest.value(of: option)
        default: try options.source.editing.takeEdits(option, from: &rest)
        }
      }
      guard !options.log.isEmpty else { throw UsageError(message: "record needs --log") }
      self = .record(options)
    case "schema":
      if let option = rest.next() { throw UsageError(message: "schema takes no '\(option)'") }
      self = .schema
    case "replay":
      var options = ReplayOptions()
      while let option = rest.next() {
        switch option {
        case "--log": options.log = try rest.value(of: option)
        case "--at": options.sequence = try rest.count(of: option)
        case "--undo": options.undoes = true
        case "--check":
          let step = try rest.count(of: option)
          guard step > 0 else { throw UsageError(message: "--check should be 1 or more") }
          options.step = step
        default: throw UsageError(message: "there is no option '\(option)' here")
        }
      }
      guard !options.log.isEmpty else { throw UsageError(message: "replay needs --log") }
      self = .replay(options)
    default:
      throw UsageError(
        message: "there is no command '\(name)': say serve, join, record, replay or schema")
    }
  }
}

extension EditOptions {
  /// Takes an option that says how to edit for other processes.
  fileprivate mutating func take(
    _ option: String, from rest: inout Arguments
  ) throws(UsageError) {
    switch option {
    case "--pause": pause = .milliseconds(try rest.count(of: option))
    case "--wait": waits = true
    case "--tell": tells = true
    default: try takeEdits(option, from: &rest)
    }
  }

  /// Takes an option that says what to edit.
  fileprivate mutating func takeEdits(
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
