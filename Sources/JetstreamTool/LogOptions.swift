import Foundation
import Jetstream

/// The options of the `jetstream log` command line.
struct LogOptions {
  enum Action: String {
    case verify, tail, dump, blame, show, diff
    case newEpoch = "new-epoch"
  }

  /// The description of an error in the command line.
  struct Problem: Error {
    let text: String
  }

  var action = Action.verify
  var directory = ""
  var isHelp = false
  var isJSON = false
  var follows = false
  var count = 10
  var first: Int?
  var last = Int.max
  var kind: String?
  var wantsSnapshot = false
  var acceptsLoss = false
  var at: Int?
  var model = UUID()
  var property = ""

  init(_ arguments: [String]) throws(Problem) {
    if arguments.contains("--help") || arguments.contains("-h") {
      isHelp = true
      return
    }
    guard let name = arguments.first else {
      throw Problem(text: "it needs verify, tail, dump, blame, show, diff or new-epoch.")
    }
    guard let action = Action(rawValue: name) else {
      throw Problem(
        text:
          "there is no \"\(name)\"; there are verify, tail, dump, blame, show, diff and new-epoch."
      )
    }
    self.action = action
    var directory: String?
    var place: [String] = []
    var rest = arguments.dropFirst()
    while let argument = rest.popFirst() {
      switch (action, argument) {
      case (.verify, "--json"), (.show, "--json"), (.diff, "--json"): isJSON = true
      case (.tail, "-f"), (.tail, "--follow"): follows = true
      case (.tail, "-n"): count = try Self.number(argument, rest.popFirst(), least: 0)
      case (.dump, "--from"): first = try Self.number(argument, rest.popFirst(), least: 1)
      case (.dump, "--to"): last = try Self.number(argument, rest.popFirst(), least: 0)
      case (.dump, "--kind"):
        guard let text = rest.popFirst() else { throw Problem(text: "--kind needs a kind.") }
        kind = text
      case (.dump, "--snapshot"): wantsSnapshot = true
      case (.newEpoch, "--accept-loss"): acceptsLoss = true
      case (.show, "--at"): at = try Self.number(argument, rest.popFirst(), least: 0)
      case (.diff, "--from"): first = try Self.number(argument, rest.popFirst(), least: 0)
      case (.diff, "--to"): last = try Self.number(argument, rest.popFirst(), least: 0)
      case (_, let option) where option.hasPrefix("-"):
        throw Problem(text: "\(name) has no option \(option).")
      case (.blame, let word) where directory != nil && place.count < 2: place.append(word)
      case (_, let path):
        guard directory == nil else { throw Problem(text: "there is more than one directory.") }
        directory = path
      }
    }
    if wantsSnapshot, first != nil {
      throw Problem(text: "--snapshot prints all of a snapshot, so --from cannot be given with it.")
    }
    if action == .dump, let first, first > last {
      throw Problem(text: "--from \(first) is behind --to \(last).")
    }
    if action == .diff, first == nil { throw Problem(text: "diff needs --from and a number.") }
    guard let directory else { throw Problem(text: "\(name) needs the directory of a log.") }
    self.directory = directory
    guard action == .blame else { return }
    guard place.count == 2 else {
      throw Problem(text: "blame needs a model's UUID and a property.")
    }
    guard let model = UUID(uuidString: place[0]) else {
      throw Problem(text: "\"\(place[0])\" should be the UUID of a model.")
    }
    (self.model, property) = (model, place[1])
  }

  private static func number(
    _ option: String, _ text: String?, least: Int
  ) throws(Problem) -> Int {
    guard let number = text.flatMap({ Int($0) }), number >= least else {
      throw Problem(text: "\(option) needs a number of at least \(least).")
    }
    return number
  }
}

extension LogOptions {
  /// Returns true if a record is of the kind that was asked for.
  func isWanted(_ record: LogRecord) -> Bool { kind == nil || kind == record.kind.rawValue }
}
