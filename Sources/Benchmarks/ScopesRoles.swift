import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// The role of this program in a process that the suite `scopes` has started.
enum ScopesRole {
  case serve(folder: String, open: Int)
  case visit(port: UInt16, count: Int, task: String)

  /// The role that a command line names; nil if it names none.
  init?(_ arguments: [String]) {
    switch (arguments.first, arguments.count) {
    case ("--scopes", 3):
      guard let open = Int(arguments[2]) else { return nil }
      self = .serve(folder: arguments[1], open: open)
    case ("--visit", 4):
      guard let port = UInt16(arguments[1]), let count = Int(arguments[2]) else { return nil }
      self = .visit(port: port, count: count, task: arguments[3])
    default: return nil
    }
  }

  /// Plays the role until its end, or that of the process.
  func play() {
    RoleLines.raiseDescriptorLimit()
    Task {
      do {
        switch self {
        case .serve(let folder, let open): try await Shelf().run(folder, open)
        case .visit(let port, let count, let task):
          try await Visitors(port: port).run(count, task)
        }
      } catch {
        RoleLines.say("\(error)")
      }
      exit(0)
    }
    dispatchMain()
  }
}

/// The server, on an event loop.
private actor Shelf {
  private let loop = EventLoop.next()
  private var server: Server?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func run(_ folder: String, _ open: Int) async throws {
    var configuration = Server.Configuration()
    configuration.maximumOpenScopes = open
    configuration.idleScopeTime = .seconds(3_600)
    let server = Server(configuration: configuration)
    self.server = server
    var most = 0
    server.openScopes(in: try ScopeDirectory(folder)) { _ in .schemaOfClient }
    server.onDiagnostic.listen { [unowned server] _ in most = max(most, server.openScopeCount) }
    RoleLines.say("\(try await server.listen())")
    for await line in RoleLines.commands() {
      switch line {
      case "memory":
        ProcessMemory.trim()
        RoleLines.say("\(ProcessMemory.knownBytes) \(server.openScopeCount)")
      default: RoleLines.say("\(most)")
      }
    }
    await server.stop()
  }
}

/// The clients, which fetch the scopes `s1`, `s2` and so on.
@MainActor
private struct Visitors {
  let port: UInt16
  private static let clock = ContinuousClock()

  func run(_ count: Int, _ task: String) async throws {
    switch task {
    case "time":
      let client = try await connect()
      var times: [Double] = []
      for number in 1...count {
        let start = Self.clock.now
        let scope = try await fetch("s\(number)", by: client)
        times.append((Self.clock.now - start) / .milliseconds(1))
        _ = try client.leave(scope)
      }
      RoleLines.say(times.map { "\($0)" }.joined(separator: " "))
    case "churn":
      let start = Self.clock.now
      try await visit(count)
      RoleLines.say("\(Double(count) / ((Self.clock.now - start) / .seconds(1)))")
    case "make":
      let client = try await connect()
      let scope = try await fetch("s1", by: client)
      (scope.root as? Canvas)?.shapes.append(contentsOf: (0..<100).map { _ in Shape() })
      try await client.sync(scope)
      RoleLines.say("made")
    default:
      try await visit(count)
      RoleLines.say("there")
    }
  }

  /// Has 32 clients fetch scopes and leave them again.
  private func visit(_ count: Int) async throws {
    let tasks = (1...32).map { start in
      Task { try await visit(Array(stride(from: start, through: count, by: 32))) }
    }
    for task in tasks { try await task.value }
  }

  private func visit(_ numbers: [Int]) async throws {
    let client = try await connect()
    for number in numbers { _ = try await client.leave(fetch("s\(number)", by: client)) }
  }

  private func connect() async throws -> Client {
    let client = Client(url: "ws://127.0.0.1:\(port)")
    try await client.connect()
    return client
  }

  private func fetch(_ name: String, by client: Client) async throws -> Scope {
    let scope = Scope(name: name, root: Canvas())
    try await client.fetch(scope)
    return scope
  }
}
