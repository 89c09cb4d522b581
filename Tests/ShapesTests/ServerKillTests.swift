import Foundation
import Jetstream
import Pacing
import Testing

@testable import shapes

/// A server with a log, on an event loop, that is killed again and again while clients write.
@Suite("A server that is killed under load", .live, .timeLimit(.minutes(5)))
@MainActor
struct ServerKillTests {
  /// A client that appends numbered shapes.
  @MainActor
  private final class Writer {
    let number: Int
    let client: Client
    let scope: Scope
    /// The number of shapes that it has made.
    private(set) var made = 0

    init(_ number: Int, url: String) {
      self.number = number
      scope = Scope(name: "Canvas", root: Canvas())
      client = Client(
        url: url, backoff: Backoff(first: .milliseconds(20), limit: .milliseconds(80)))
    }

    var canvas: Canvas { scope.root as! Canvas }

    /// Appends shapes, each in a change set of its own.
    func write(_ count: Int) -> [ChangeSetHandle] {
      (0..<count).map { _ in
        defer { made += 1 }
        return scope.modify {
          canvas.shapes.append(Shape(x: Float(number), y: Float(made), color: .teal))
        }
      }
    }
  }

  /// The number of times that the server is killed: from the environment, or ten.
  private static let kills =
    ProcessInfo.processInfo.environment["JETSTREAM_KILLS"].flatMap { Int($0) } ?? 10

  @Test("Nothing that was acknowledged is lost, and nothing is there twice")
  func kills() async throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path + "/drawing"
    let port = "\(keptPort())"
    var server = try ShapesProcess("--port", port, "--log", folder)
    _ = try await server.port()
    let writers = (0..<3).map { Writer($0, url: "ws://127.0.0.1:\(port)") }
    for writer in writers {
      try await writer.client.connect()
      try await writer.client.fetch(writer.scope)
    }
    for kill in 0..<Self.kills {
      let handles = writers.map { $0.write(12) }
      // Some of what is under way is acknowledged, and most of it is not: another part each time.
      for (at, handles) in handles.enumerated() where at == kill % writers.count {
        try await handles[kill * 7 % 12].finished()
      }
      server.signal(SIGKILL)
      _ = await server.exitCode()
      server = try ShapesProcess("--port", port, "--log", folder)
      _ = try await server.port()
    }
    for writer in writers { try await writer.client.waitForUpload(of: writer.scope) }
    let last = Writer(9, url: "ws://127.0.0.1:\(port)")
    try await last.client.connect()
    try await last.client.fetch(last.scope)
    for writer in writers {
      let numbers = last.canvas.shapes.filter { $0.x == Float(writer.number) }.map { Int($0.y) }
      #expect(numbers == Array(0..<writer.made), "writer \(writer.number)")
      #expect(writer.scope.conflicts.items.isEmpty)
    }
    #expect(last.canvas.shapes.count == 5 + writers.reduce(0) { $0 + $1.made })
    for writer in writers + [last] { writer.client.close() }
    server.terminate()
    #expect(await server.exitCode() == 0)
  }
}
