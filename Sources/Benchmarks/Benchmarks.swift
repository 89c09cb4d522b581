/// The command: reads its arguments, runs the suites that they name and prints the results.
@main
struct Benchmarks {
  static func suites(_ options: Options = Options()) -> [Suite] {
    [
      modelSuite, fragmentSuite, querySuite, logSuite, syncSuite, serverSuite, scopesSuite,
      attackSuite,
    ] + fanoutSuites + [soakSuite(minutes: options.minutes, seed: options.seed)]
  }

  static func main() {
    if let role = AttackRole(Array(CommandLine.arguments.dropFirst())) { return role.play() }
    if let role = ScopesRole(Array(CommandLine.arguments.dropFirst())) { return role.play() }
    if let role = ServerRole(Array(CommandLine.arguments.dropFirst())) { return role.play() }
    if let role = SoakRole(Array(CommandLine.arguments.dropFirst())) { return role.play() }
    #if os(Linux)
    if let role = FanoutRole(Array(CommandLine.arguments.dropFirst())) { return role.play() }
    #endif
    let options: Options
    switch Options.parse(CommandLine.arguments.dropFirst(), suites: suites().map(\.name)) {
    case .success(let parsed): options = parsed
    case .failure(let problem):
      Console.error("benchmarks: \(problem.text)\n\n\(usage)")
      Console.exit(2)
    }
    if options.isHelp {
      print(usage)
      return
    }
    for suite in suites(options) where options.includes(suite) {
      var report = Report(suite: suite.name, isJSON: options.isJSON)
      for row in suite.rows() where options.only.map({ row.name.contains($0) }) ?? true {
        report.add(row, row.measure(rounds: options.rounds))
      }
      report.finish()
    }
    Sink.close()
  }

  static var usage: String {
    """
    usage: swift run -c release benchmarks [options] [suite ...]

    Measures Jetstream beside what one would use without it, and prints medians and ranges.

    suites (all unless some are named):
    \(suites().map { "  \($0.name): \($0.summary)" }.joined(separator: "\n"))

    options:
      --json         one JSON object a line instead of a table
      --rounds <n>   rounds of each row, ours and the peer taking turns (default: the row's own)
      --only <text>  only rows whose name contains the text
      --minutes <n>  the length of the soak (default: 10)
      --seed <n>     the seed of the soak (default: any; it is printed)
      --help         this text
    """
  }
}

/// The options of the command line.
struct Options {
  var suites: [String] = []
  var isJSON = false
  var isHelp = false
  var rounds: Int?
  var only: String?
  /// The length of the soak.
  var minutes = 10.0
  /// The seed of the soak; nil for any.
  var seed: UInt64?

  /// Returns true if the suite is to run.
  func includes(_ suite: Suite) -> Bool {
    suites.isEmpty ? !suite.isOnDemand : suites.contains(suite.name)
  }

  /// The description of an error in the command line.
  struct Problem: Error {
    let text: String
  }

  static func parse(
    _ arguments: some Sequence<String>, suites: [String]
  ) -> Result<Options, Problem> {
    var options = Options()
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--json": options.isJSON = true
      case "--help", "-h": options.isHelp = true
      case "--rounds":
        guard let rounds = rest.next().flatMap({ Int($0) }), rounds > 0 else {
          return .failure(Problem(text: "--rounds needs a number of at least 1."))
        }
        options.rounds = rounds
      case "--minutes":
        guard let minutes = rest.next().flatMap({ Double($0) }), minutes >= 0.5, minutes <= 1_440
        else { return .failure(Problem(text: "--minutes needs a number from 0.5 to 1440.")) }
        options.minutes = minutes
      case "--seed":
        guard let seed = rest.next().flatMap({ UInt64($0) }) else {
          return .failure(Problem(text: "--seed needs a number of at least 0."))
        }
        options.seed = seed
      case "--only":
        guard let text = rest.next() else {
          return .failure(Problem(text: "--only needs a text."))
        }
        options.only = text
      case let name where suites.contains(name): options.suites.append(name)
      case let name where name.hasPrefix("-"):
        return .failure(Problem(text: "there is no option \(name)."))
      case let name:
        return .failure(
          Problem(
            text: "there is no suite \"\(name)\"; there are \(suites.joined(separator: ", "))."))
      }
    }
    return .success(options)
  }
}
