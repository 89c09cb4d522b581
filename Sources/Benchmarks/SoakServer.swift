import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Synchronization

/// The state of the server of a soak, as the server says it in a line.
struct SoakFigures {
  /// The resident memory of the server's process, in bytes.
  var memory = 0
  /// The bytes of its heap that are in use.
  var heap = 0
  var sessions = 0
  var connections = 0
  /// The change sets that were accepted.
  var accepted = 0
  /// The sessions that have begun.
  var begun = 0
  /// The sessions that have ended since their credentials had expired.
  var expired = 0
  /// The sessions and scopes that were refused, and the changes that a rule has denied.
  var denied = 0

  var line: String {
    [memory, heap, sessions, connections, accepted, begun, expired, denied].map { "\($0)" }
      .joined(separator: " ")
  }

  init() {}

  init(line: String) throws {
    let numbers = line.split(separator: " ").compactMap { Int($0) }
    guard numbers.count == 8 else { throw RoleProblem(text: line) }
    (memory, heap, sessions, connections) = (numbers[0], numbers[1], numbers[2], numbers[3])
    (accepted, begun, expired, denied) = (numbers[4], numbers[5], numbers[6], numbers[7])
  }
}

/// The server of a soak, on an event loop: scopes with logs, rules and rights, and credentials that expire.
actor SoakServer {
  private static let rooms = 6
  static let shapes = 240

  /// Returns the names of the scopes that a user uses now and then: few, so that the clients that a scope knows are
  /// soon as many as they ever are.
  static func rooms(of user: Int) -> [String] {
    [0, 1, 3].map { "Room \((user + $0) % rooms)" }
  }

  private let loop = EventLoop.next()
  private let denials = Denials()
  private var server: Server?
  private var scopes: [Scope] = []
  private var logs: [FragmentLog] = []
  private var ended = 0
  private var expired = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func run(_ folder: String, seed: UInt64) async throws {
    let server = Server(configuration: configuration)
    self.server = server
    server.authenticate = Self.authentication(denials, SharedDice(seed: seed))
    server.access = Self.access(denials)
    server.onSessionEnd.listen(self) { me, session in
      me.assumeIsolated { $0.noteEnd(of: session) }
    }
    for number in 0..<Self.rooms {
      let scope = Scope(name: "Room \(number)", root: Shape.canvas(of: Self.shapes).0)
      let log = try FragmentLog("\(folder)/\(number)")
      try await server.host(scope, log: log, snapshotEvery: 250)
      scopes.append(scope)
      logs.append(log)
    }
    RoleLines.say("\(try await server.listen())")
    for await line in RoleLines.commands() {
      switch line {
      case "figures": RoleLines.say(figures.line)
      default:
        RoleLines.say(
          scopes.map { SoakDigest($0.canonicalJSON).description }.joined(separator: " "))
      }
    }
    await server.stop()
  }

  private var figures: SoakFigures {
    var result = SoakFigures()
    result.memory = ProcessMemory.knownBytes
    result.heap = ProcessMemory.heapBytes
    result.sessions = server?.sessionCount ?? 0
    result.connections = server?.connectionCount ?? 0
    result.accepted = logs.reduce(0) { $0 + $1.lastSequence }
    result.begun = ended + result.sessions
    result.expired = expired
    result.denied = denials.count
    return result
  }

  private func noteEnd(of session: SessionInfo) {
    ended += 1
    if let expiry = session.principal?.expiry, expiry <= Date() { expired += 1 }
  }

  private var configuration: Server.Configuration {
    var result = Server.Configuration.forOneAddress
    // A client says something every 10 seconds.
    result.sessionExpiry = .seconds(15)
    // The server has to keep as much for clients that are gone as it ever does within the first minutes.
    result.rememberedClients = 200
    let rules = Self.rules(denials)
    result.rules = { _ in rules }
    return result
  }

  private static func rules(_ denials: Denials) -> ScopeRules {
    var rules = ScopeRules()
    rules.update(\Shape.color, "Only painters paint") { session, _, _ in
      denials.note(unless: session.principal?.claims["role"] == "painter")
    }
    rules.delete(Shape.self, "Shapes of the highest level stay") { _, shape in
      denials.note(unless: shape.level < SoakVisitor.levels - 1)
    }
    return rules
  }

  /// Returns a check of credentials, which takes some time and refuses those that are stale.
  private static func authentication(
    _ denials: Denials, _ dice: SharedDice
  ) -> (SessionInfo) async throws -> Principal? {
    { session in
      try await Task.sleep(for: .milliseconds(dice.seconds(0...20)))
      guard let user = session.user, case .object(let params) = session.params else {
        throw WireError.rejected("There is no user")
      }
      guard denials.note(unless: params["isStale"] != true) else {
        throw WireError.notYou("The credentials are stale")
      }
      return Principal(
        "user\(user)", claims: ["role": user % 2 == 0 ? "painter" : "reader"],
        expiry: Date() + dice.seconds(5...60))
    }
  }

  /// Returns the rights: each eighth user may only read one of the scopes, and each sixteenth one does not see another.
  private static func access(
    _ denials: Denials
  ) -> (SessionInfo, String) async throws -> ScopeAccess {
    { session, scope in
      guard let user = session.user else { throw WireError.notYou("There is no user") }
      guard denials.note(unless: user % 16 != 15 || scope != rooms(of: user)[0])
      else { throw WireError.notThere("There is no \(scope)") }
      return user % 8 == 7 && scope == rooms(of: user)[1] ? .readOnly : .readWrite
    }
  }

  /// The number of denials.
  private final class Denials: Sendable {
    private let total = Mutex(0)

    var count: Int { total.withLock { $0 } }

    /// Counts a denial unless a condition is met, and returns the condition.
    func note(unless condition: Bool) -> Bool {
      if !condition { total.withLock { $0 += 1 } }
      return condition
    }
  }
}

extension SessionInfo {
  /// The number of the user that the client has named.
  fileprivate var user: Int? {
    guard case .object(let params) = params, case .integer(let user)? = params["user"] else {
      return nil
    }
    return Int(user)
  }
}
