import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// `swift run shapes` serves a drawing; `swift run shapes --join URL` takes part in one.
@main
@MainActor
struct Shapes {
  static func main() async {
    let options: Options
    do throws(Options.Problem) {
      options = try Options(CommandLine.arguments.dropFirst())
    } catch {
      Console.complain("\(error.text). Try --help.")
      exit(2)
    }
    switch options.task {
    case .help: Console.say(Options.usage)
    case .serve(let host, let port): await serve(host: host, port: port)
    case .join(let url): await Participant(url: url).run()
    }
  }

  /// Offers a drawing until the process is asked to end.
  private static func serve(host: String, port: UInt16) async {
    let signals = StopSignals()
    let canvas = Canvas.sample()
    let server = Server()
    server.host(Scope(name: "Canvas", root: canvas))
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
    server.onLog.listen { Console.say("note: \($0)") }
    await signals.next()
    await server.stop()
    withExtendedLifetime(narrator) {}
    Console.say("Stopped.")
  }

  /// How an address to bind is written in a URL that can be opened on this machine.
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
