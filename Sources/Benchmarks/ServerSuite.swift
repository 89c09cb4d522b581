import Foundation

let serverSuite = Suite(
  name: "server", summary: "a server on an event loop, its load made by another process"
) {
  let crowds: [(writers: Int, scopes: Int)] = [(1, 1), (16, 1), (256, 1), (256, 256)]
  return loggedRows
    + crowds.map { writers, scopes in
      Row(
        name: "edits of \(writers) writers on \(scopes) scopes, 16 in flight each", unit: "/s",
        rounds: 3
      ) {
        Probes(ours: {
          ServerStage(scopes: scopes, models: 256).measure(.writers(writers, scopes: scopes))
        })
      }
    } + [
      Row(
        name: "edits of 64 writers on 16 scopes of a schema, over 2 loops", unit: "/s",
        peerName: "all on 1 loop", rounds: 3
      ) {
        func measure(_ loops: Int) -> Double {
          ServerStage(scopes: 16, models: 256, loops: loops).measure(.writers(64, scopes: 16))
        }
        return Probes(ours: { measure(2) }, peer: { measure(0) })
      },
      Row(
        name: "memory of a connection without a session, of 5,000", unit: "bytes",
        bar: .most(8192), rounds: 1
      ) { Probes(ours: { ServerStage(scopes: 1, models: 10).memory(.idle(5_000)) / 5_000 }) },
      Row(name: "memory of a session with a scope, of 5,000", unit: "bytes", rounds: 1) {
        Probes(ours: { ServerStage(scopes: 1, models: 10).memory(.sessions(5_000)) / 5_000 })
      },
      Row(
        name: "20 clients that stop reading while 100 changes of 1 MiB are made, memory each",
        unit: "MiB", bar: .most(1), rounds: 1
      ) {
        Probes(ours: {
          ServerStage(scopes: 1, models: 10).memory(.stoppedReaders(20)) / 20 / Double(1 << 20)
        })
      },
      Row(
        name: "1,000 sessions that resume, until each has the 100 edits it has missed", unit: "ms",
        rounds: 3
      ) { Probes(ours: { ServerStage(scopes: 1, models: 1_000).measure(.returning(1_000)) }) },
      Row(name: "1,000 new clients, until each has 1,000 models", unit: "ms", rounds: 3) {
        Probes(ours: { ServerStage(scopes: 1, models: 1_000).measure(.newcomers(1_000)) })
      },
      Row(
        name: "an edit, p99, while another client is sent 64 MiB of state", unit: "ms",
        bar: .most(10),
        rounds: 3
      ) {
        Probes(ours: { ServerStage(scopes: 2, models: 290_000).measure(.editor, beside: .reader) })
      },
      snapshotRow,
    ]
}

/// A server and its load, each in a process of its own.
struct ServerStage {
  /// The number of scopes.
  let scopes: Int
  /// The number of models of the first scope; the others have 256.
  let models: Int
  /// The folder with the logs of the scopes; nil for none.
  var folder: String?
  /// The number of loops over which the scopes are spread; nil if they are made of classes.
  var loops: Int?

  /// Returns the figure that the load reports.
  ///
  /// - Parameter other: more load, from a third process.
  func measure(_ load: Load, beside other: Load? = nil) -> Double {
    run(load, beside: other) { _, load in
      let line = try load.line()
      guard let figure = Double(line) else { throw RoleProblem(text: line) }
      return figure
    }
  }

  /// Returns the bytes by which the server's memory grows while the load is there.
  func memory(_ load: Load) -> Double {
    run(load) { server, load in
      func bytes() throws -> Double {
        try server.say("memory")
        return Double(try server.line()) ?? .nan
      }
      let line = try load.line()
      guard line == "ready" else { throw RoleProblem(text: line) }
      let before = try bytes()
      try load.say("go")
      guard try load.line() == "there" else { throw RoleProblem(text: "the load is not there") }
      return try bytes() - before
    }
  }

  private func run(
    _ load: Load, beside other: Load? = nil, _ body: (RoleProcess, RoleProcess) throws -> Double
  ) -> Double {
    do {
      let server = try RoleProcess(
        loops.map { ["--spread", "\(scopes)", "\($0)"] } ?? ["--host", "\(scopes)", "\(models)"]
          + (folder.map { [$0] } ?? []))
      defer { server.end() }
      let port = try server.line()
      let neighbour = try other.map { try RoleProcess(["--load"] + $0.arguments + [port]) }
      defer { neighbour?.end() }
      if let line = try neighbour?.line(), line != "there" { throw RoleProblem(text: line) }
      let peer = try RoleProcess(["--load"] + load.arguments + [port])
      defer { peer.end() }
      return try body(server, peer)
    } catch {
      return Row.failed("\(error)")
    }
  }
}

/// The load of a server.
enum Load: Sendable {
  /// Clients that edit as fast as they are answered, for two seconds.
  case writers(Int, scopes: Int)
  /// One client that does the same with 64 edits in flight.
  case eagerWriter
  /// Connections without a session.
  case idle(Int)
  /// Connections that never complete the handshake.
  case halfOpen(Int)
  /// Sessions that have fetched a scope.
  case sessions(Int)
  /// Sessions that read nothing while a client makes 100 changes of 1 MiB.
  case stoppedReaders(Int)
  /// Sessions that lose their connections and resume at once.
  case returning(Int)
  /// Clients that fetch the whole scope at once.
  case newcomers(Int)
  /// A client that edits a small scope now and then.
  case editor
  /// A client that fetches a large scope again and again. It leaves the processors to others: with two of them, its own
  /// work would hold up an editor more than the server does.
  case reader
  /// One client that edits a large scope, with 256 edits in flight, until its process ends.
  case restlessWriter

  var arguments: [String] {
    switch self {
    case .writers(let count, let scopes): ["writers", "\(count)", "\(scopes)"]
    case .eagerWriter: ["eagerWriter", "1", "1"]
    case .idle(let count): ["idle", "\(count)", "1"]
    case .halfOpen(let count): ["halfOpen", "\(count)", "1"]
    case .sessions(let count): ["sessions", "\(count)", "1"]
    case .stoppedReaders(let count): ["stoppedReaders", "\(count)", "1"]
    case .returning(let count): ["returning", "\(count)", "1"]
    case .newcomers(let count): ["newcomers", "\(count)", "1"]
    case .editor: ["editor", "1", "1"]
    case .reader: ["reader", "1", "1"]
    case .restlessWriter: ["restlessWriter", "1", "1"]
    }
  }

  init?(_ name: String, _ count: Int, _ scopes: Int) {
    switch name {
    case "writers": self = .writers(count, scopes: scopes)
    case "eagerWriter": self = .eagerWriter
    case "idle": self = .idle(count)
    case "halfOpen": self = .halfOpen(count)
    case "sessions": self = .sessions(count)
    case "stoppedReaders": self = .stoppedReaders(count)
    case "returning": self = .returning(count)
    case "newcomers": self = .newcomers(count)
    case "editor": self = .editor
    case "reader": self = .reader
    case "restlessWriter": self = .restlessWriter
    default: return nil
    }
  }
}
