import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// `swift run shapes` serves a drawing; `swift run shapes --join URL` takes part in one.
@main
@Studio
struct Shapes {
  nonisolated static func main() async {
    // Before the studio, and the log, open files.
    Console.openClosedStreams()
    await run()
  }

  private static func run() async {
    let options: Options
    do throws(Options.Problem) {
      options = try Options(CommandLine.arguments.dropFirst())
    } catch {
      Console.complain("\(error.text). Try --help.")
      exit(2)
    }
    switch options.task {
    case .help: Console.say(Options.usage)
    case .serve(let host, let port, let storage):
      await serve(host: host, port: port, folder: folder(of: storage))
    case .join(let url): await Participant(url: url, signals: StopSignals()).run()
    }
  }

  /// Offers a drawing until the process is asked to end. One that is in the folder already goes on.
  private static func serve(host: String, port: UInt16, folder: String?) async {
    let signals = await StopSignals()
    let canvas = Canvas.sample()
    let scope = Scope(name: "Canvas", root: canvas)
    let server = Server()
    do {
      if let folder {
        try await server.host(scope, log: FragmentLog(folder))
        Console.say("The drawing is kept in \(folder).")
      } else {
        server.host(scope)
      }
    } catch {
      Console.complain(
        "the drawing in \(folder ?? "memory") cannot be opened: \(error); "
          + "choose another folder with --log, or --memory")
      exit(1)
    }
    do throws(WebSocketError) {
      let port = try await server.listen(
        host: host, port: port, page: { await Page.respond(to: $0) })
      let address = "\(Self.name(ofHost: host)):\(port)"
      Console.say("The drawing is at http://\(address) - open it in several tabs.")
      Console.say("Take part from another terminal: swift run shapes --join ws://\(address)")
    } catch {
      Console.complain(explanation(error, host: host, port: port))
      exit(1)
    }
    let narrator = Narrator(canvas, say: Console.say)
    server.onDiagnostic.listen { Console.say("note: \($0)") }
    await signals.next()
    Console.say("Stopping; another signal ends it at once.")
    await server.stop()
    do {
      try await server.remove(scope)
    } catch {
      Console.complain("the last changes could not be kept: \(error)")
      exit(1)
    }
    withExtendedLifetime(narrator) {}
    Console.say("Stopped.")
  }

  /// The folder in which the drawing is kept; nil for none.
  private static func folder(of storage: Options.Storage) -> String? {
    switch storage {
    case .memory: nil
    case .folder(let path): path
    case .cache:
      FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?
        .appending(path: "jetstream-shapes").path
    }
  }

  /// Returns the host of a URL that can be opened on this machine, for an address to bind.
  private static func name(ofHost host: String) -> String {
    if ["0.0.0.0", "::"].contains(host) { return "localhost" }
    return host.contains(":") ? "[\(host)]" : host
  }

  private static func explanation(_ error: WebSocketError, host: String, port: UInt16) -> String {
    switch error {
    case .bindFailed(EADDRINUSE):
      "port \(port) on \(host) is taken by another process; choose another one with --port"
    default: "cannot listen on port \(port) of \(host): \(error)"
    }
  }
}

/// The actor on which the drawing and its server live: on an event loop, whose thread also reads and writes the server's
/// connections.
@globalActor
actor Studio {
  static let shared = Studio()

  private let loop = EventLoop.next()

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}
