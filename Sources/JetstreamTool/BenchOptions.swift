import Foundation

/// The options of the `jetstream bench` command line.
struct BenchOptions: Codable, Hashable, Sendable {
  /// The description of an error in the command line.
  struct Problem: Error {
    let text: String
  }

  /// The part that one client takes in the bench.
  struct Part: Codable, Hashable, Sendable {
    /// The number of the client's scope, from 1.
    let scope: Int
    let isWriter: Bool
  }

  /// The address of the server.
  var url = ""
  /// The number of worker processes.
  var processes = 2
  /// The number of clients, in all processes and scopes.
  var clients = 10
  var scopes = 1
  /// The number of writers in each scope.
  var writers = 1
  /// The number of change sets of a writer that the server has not decided. No limit with ``rate``.
  var inFlight = 1
  /// The number of change sets that a writer makes in a second, accepted or not; nil for as many as are accepted.
  var rate: Double?
  /// The time for which writers make change sets.
  var seconds = 10
  /// The number of bytes of the text that each change set carries.
  var size = 64
  /// The time that connecting and fetching may take, in seconds; nil for one that depends on the number of clients.
  var patience: Int?
  var isJSON = false
  var isHelp = false

  /// The smallest size of a text: it has to hold the run and the time of the edit.
  static let leastSize = 32

  init() {}

  init(_ arguments: [String]) throws(Problem) {
    if arguments.contains("--help") || arguments.contains("-h") {
      isHelp = true
      return
    }
    var (url, clients, inFlight): (String?, Int?, Int?)
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--processes": processes = try Self.number(argument, rest.popFirst())
      case "--clients": clients = try Self.number(argument, rest.popFirst())
      case "--scopes": scopes = try Self.number(argument, rest.popFirst())
      case "--writers": writers = try Self.number(argument, rest.popFirst())
      case "--in-flight": inFlight = try Self.number(argument, rest.popFirst())
      case "--rate": rate = try Self.rate(rest.popFirst())
      case "--seconds": seconds = try Self.number(argument, rest.popFirst(), most: 86_400)
      case "--size":
        size = try Self.number(argument, rest.popFirst(), least: Self.leastSize)
      case "--patience": patience = try Self.number(argument, rest.popFirst(), most: 3_600)
      case "--json": isJSON = true
      case let option where option.hasPrefix("-"):
        throw Problem(text: "there is no option \(option).")
      case let word:
        guard url == nil else { throw Problem(text: "there is more than one address.") }
        url = word
      }
    }
    guard let url else { throw Problem(text: "it needs the address of a server.") }
    let scheme = url.lowercased()
    guard scheme.hasPrefix("ws://") || scheme.hasPrefix("wss://") else {
      throw Problem(text: "\"\(url)\" should begin with ws:// or wss://.")
    }
    guard rate == nil || inFlight == nil else {
      throw Problem(text: "--rate and --in-flight exclude each other.")
    }
    self.url = url
    self.inFlight = inFlight ?? 1
    let needed = scopes * writers
    guard needed <= Self.most else {
      throw Problem(
        text: "\(scopes) × \(writers) writers need \(needed) clients; \(Self.most) are the most.")
    }
    // By default each scope has a client that only watches, if that is possible.
    self.clients = clients ?? min(max(10, scopes + needed), Self.most)
    guard self.clients >= needed else {
      throw Problem(text: "\(scopes) × \(writers) writers need at least \(needed) clients.")
    }
    processes = min(processes, self.clients)
  }

  /// The largest number that an option takes.
  private static let most = 100_000

  private static func number(
    _ option: String, _ text: String?, least: Int = 1, most: Int = most
  ) throws(Problem) -> Int {
    guard let number = text.flatMap({ Int($0) }), (least...most).contains(number) else {
      throw Problem(text: "\(option) needs a number from \(least) to \(most).")
    }
    return number
  }

  private static func rate(_ text: String?) throws(Problem) -> Double {
    guard let rate = text.flatMap({ Double($0) }), (0.01...1_000_000).contains(rate) else {
      throw Problem(text: "--rate needs a number from 0.01 to 1000000.")
    }
    return rate
  }

  /// Returns the parts of the clients that a process runs.
  ///
  /// The numbers of clients of two processes differ by one at most. The clients of each scope are spread over the
  /// processes, and so are the writers of all scopes.
  ///
  /// - Parameter process: The number of the process, from 1.
  func parts(of process: Int) -> [Part] {
    (0..<clients).compactMap { client in
      let (place, scope) = client.quotientAndRemainder(dividingBy: scopes)
      // Rotates the scopes in each round of clients: otherwise all clients of a scope would run in one process when the
      // number of scopes is a multiple of that of the processes. The last round is not rotated if it lacks scopes.
      let isWhole = (place + 1) * scopes <= clients
      let rank = isWhole ? place * scopes + (scope + place) % scopes : client
      guard rank % processes == process - 1 else { return nil }
      return Part(scope: scope + 1, isWriter: place < writers)
    }
  }

  /// The time that connecting and fetching may take, in seconds.
  var connectLimit: Int { patience ?? 10 + clients / 50 }
}
