import Foundation
import Jetstream
import JetstreamWebSocket
import Pacing
import Testing

@testable import shapes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The program", .live, .timeLimit(.minutes(3)))
@MainActor
struct ShapesTests {
  @Test("--help names the options")
  func help() async throws {
    let process = try ShapesProcess("--help")
    let (output, errors) = await process.rest()
    #expect(await process.exitCode() == 0)
    for option in ["--host", "--port", "--join", "--help"] {
      #expect(output.contains { $0.contains(option) })
    }
    #expect(errors.isEmpty)
  }

  @Test("What cannot be understood ends with 2 and a sentence")
  func badOption() async throws {
    for arguments in ["--colour", "--port=many", "--join=nowhere"] {
      let process = try ShapesProcess(arguments)
      let (output, errors) = await process.rest()
      #expect(await process.exitCode() == 2)
      #expect(output.isEmpty)
      #expect(errors.count == 1 && errors[0].hasPrefix("shapes: "))
    }
  }

  @Test("A taken port ends with 1 and names the port")
  func takenPort() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let port = try await server.port()
    let second = try ShapesProcess("--port", port, "--memory")
    let (_, errors) = await second.rest()
    #expect(await second.exitCode() == 1)
    #expect(errors.contains { $0.contains("port \(port)") && $0.contains("taken") })
    server.terminate()
    #expect(await server.exitCode() == 0)
  }

  @Test("It serves its page and nothing else")
  func servesPage() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let root = try await "http://127.0.0.1:\(server.port())"
    let page = try await Self.get("\(root)/")
    #expect(page.status == 200)
    #expect(page.text.contains("<title>Shapes</title>"))
    for name in ["style.css", "drawing.js"] {
      #expect(page.text.contains(name))
    }
    for name in ["style.css", "drawing.js", "replica.js", "session.js"] {
      #expect(try await Self.get("\(root)/\(name)").status == 200)
    }
    #expect(try await Self.get("\(root)/../Package.swift").status == 404)
    server.terminate()
    #expect(await server.exitCode() == 0)
  }

  @Test("Everybody's observers fire, and a participant takes its shape along")
  func joins() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let url = try await "ws://127.0.0.1:\(server.port())"
    let participant = try ShapesProcess("--join", url)
    await participant.expect("status: online")
    await participant.expect("joined")
    await server.expect("added shape")

    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let client = Client(url: url)
    try await client.connect()
    try await client.fetch(scope)
    #expect(canvas.shapes.count == 6)

    canvas.shapes[0].x = 17
    canvas.shapes[0].y = 34.5
    canvas.shapes[1].color = .white
    canvas.name = "Evening"
    scope.flush()
    await participant.expect("to 17.0, 34.5")
    canvas.shapes.append(Shape(x: 1, y: 2, color: .green))
    scope.flush()
    await participant.expect("added shape")
    canvas.shapes.remove(at: 0)
    scope.flush()
    await participant.expect("removed shape")
    await server.expect("named the drawing \"Evening\"")
    await server.expect("removed shape")

    participant.terminate()
    #expect(await participant.exitCode() == 0)
    await server.expect("removed shape")
    client.close()
    server.terminate()
    await server.expect("Stopped.")
    #expect(await server.exitCode() == 0)
  }

  @Test("A participant waits for its server, and brings its shape to a new one")
  func outlivesServer() async throws {
    let first = try ShapesProcess("--port", "\(keptPort())", "--memory")
    let port = try await first.port()
    let participant = try ShapesProcess("--join", "ws://127.0.0.1:\(port)")
    await first.expect("added shape")
    first.terminate()
    #expect(await first.exitCode() == 0)
    await participant.expect("status: waiting")

    let second = try ShapesProcess("--port", port, "--memory")
    await participant.expect("status: online")
    await second.expect("added shape")
    second.terminate()
    #expect(await second.exitCode() == 0)
    await participant.expect("status: waiting")
    participant.terminate()
    #expect(await participant.exitCode() == 0)
  }

  @Test("The drawing goes on where the last process has left it")
  func keepsDrawing() async throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path + "/drawing"
    func serve() async throws -> (ShapesProcess, Canvas, Scope, Client) {
      let server = try ShapesProcess("--port", "0", "--log", folder)
      let url = try await "ws://127.0.0.1:\(server.port())"
      let (client, scope) = (Client(url: url), Scope(name: "Canvas", root: Canvas()))
      try await client.connect()
      try await client.fetch(scope)
      return (server, try #require(scope.root as? Canvas), scope, client)
    }
    let (first, canvas, scope, client) = try await serve()
    canvas.name = "kept"
    canvas.shapes[0].x = 321
    try await client.waitForUpload(of: scope)
    // Nobody else may have the folder meanwhile.
    let other = try ShapesProcess("--port", "0", "--log", folder)
    #expect(await other.rest().errors.contains { $0.contains(folder) && $0.contains("--memory") })
    #expect(await other.exitCode() == 1)
    first.terminate()
    #expect(await first.exitCode() == 0)
    client.close()
    let (second, again, _, next) = try await serve()
    #expect(again.name == "kept" && again.shapes[0].x == 321 && again.uuid == canvas.uuid)
    second.signal(SIGKILL)
    _ = await second.exitCode()
    next.close()
    let (third, last, _, end) = try await serve()
    #expect(last.name == "kept")
    end.close()
    third.terminate()
    #expect(await third.exitCode() == 0)
  }

  @Test("A page of another origin is refused")
  func foreignPage() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let port = try await server.port()
    for (origin, isAllowed) in [("http://127.0.0.1:\(port)", true), ("https://a.example", false)] {
      let headers = [("Origin", origin)]
      do {
        try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)", headers: headers).abort()
        #expect(isAllowed)
      } catch {
        #expect(!isAllowed && error == .handshakeRefused(status: 403))
      }
    }
    server.terminate()
    #expect(await server.exitCode() == 0)
  }

  @Test("A second signal ends it although a client does not answer the close")
  func secondSignal() async throws {
    let server = try ShapesProcess(["--port", "0", "--memory"], terminatingAgainAt: "Stopping")
    let url = try await "ws://127.0.0.1:\(server.port())"
    let silent = try ShapesProcess("--join", url)
    await silent.expect("joined")
    silent.freeze()
    server.terminate()
    #expect(await server.exitCode() == 128 + SIGTERM)
    silent.signal(SIGKILL)
  }

  @Test("One request to stop that comes as two signals is one request")
  func requestOfTwoSignals() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    _ = try await server.port()
    server.freeze()
    // Both reach it at the same moment.
    for number in [SIGTERM, SIGINT, SIGCONT] { server.signal(number) }
    #expect(await server.exitCode() == 0)
    #expect(await server.rest().output.last == "Stopped.")
  }

  @Test("A second signal ends a participant although its server decides nothing")
  func secondSignalToParticipant() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let url = try await "ws://127.0.0.1:\(server.port())"
    let participant = try ShapesProcess(["--join", url], terminatingAgainAt: "Leaving")
    await participant.expect("joined")
    server.freeze()
    participant.terminate()
    #expect(await participant.exitCode() == 128 + SIGTERM)
    server.signal(SIGKILL)
  }

  @Test("A peer's text gives no commands to the terminal")
  func controlCharacters() async throws {
    let server = try ShapesProcess("--port", "0", "--memory")
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let client = Client(url: try await "ws://127.0.0.1:\(server.port())")
    try await client.connect()
    try await client.fetch(scope)
    canvas.name = "\u{1B}]0;mine\u{7}\u{9B}2J"
    scope.flush()
    await server.expect("named the drawing \"\u{FFFD}]0;mine\u{FFFD}\u{FFFD}2J\"")
    client.close()
    server.terminate()
    #expect(await server.exitCode() == 0)
  }

  @Test("A participant that has not reached its server yet can be stopped")
  func stopsWhileConnecting() async throws {
    // Nobody serves there.
    let participant = try ShapesProcess("--join", "ws://127.0.0.1:1")
    await participant.expect("status: waiting")
    participant.terminate()
    #expect(await participant.exitCode() == 0)
    #expect(await participant.rest().errors.isEmpty)
  }

  private static func get(_ address: String) async throws -> (status: Int, text: String) {
    let url = try #require(URL(string: address))
    let (data, response) = try await URLSession.shared.data(from: url)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    return (status, String(decoding: data, as: UTF8.self))
  }
}

extension ShapesProcess {
  /// The port that a server says it has.
  func port() async throws -> String {
    let line = try #require(await line { $0.contains("http://") })
    let match = try #require(line.firstMatch(of: #/:([0-9]+) /#))
    return String(match.1)
  }
}
