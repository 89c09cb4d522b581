import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

/// Real servers, whose handlers wait for another actor.
@Suite("Handlers of procedures")
@MainActor
struct ProcedureHandlerTests {
  private static let isMain = DispatchSpecificKey<Bool>()
  private let elsewhere = Elsewhere()

  private actor Elsewhere {
    func work() {}
  }

  private struct Oops: Error {}

  init() { DispatchQueue.main.setSpecific(key: Self.isMain, value: true) }

  @Test("What a handler throws after it has waited is handled on the server's actor")
  func throwsOnActor() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Tray()))
    server.procedure(Wait.self) { [elsewhere] _, _ in
      await elsewhere.work()
      throw Oops()
    }
    var places: [Bool] = []
    let token = server.onDiagnostic.listen { diagnostic in
      if "\(diagnostic)".contains("Oops") {
        places.append(DispatchQueue.getSpecific(key: Self.isMain) == true)
      }
    }
    defer { token.cancel() }
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Canvas", root: Tray())
    try await client.connect()
    try await client.fetch(scope)
    for _ in 0..<20 {
      await #expect(throws: ChangeSetError.self) { try await scope.call(Wait()).output() }
    }
    #expect(places == Array(repeating: true, count: 20))
    client.close()
    await server.stop()
  }

  @Test("A handler that never returns keeps no server alive, and answers nothing any more")
  func keepsNoServer() async throws {
    var server: Server? = Server()
    weak var kept: Server?
    kept = server
    var waiting: CheckedContinuation<Void, Never>?
    var hasReturned = false
    server?.host(Scope(name: "Canvas", root: Tray()))
    server?.procedure(Wait.self) { _, request in
      await withCheckedContinuation { waiting = $0 }
      #expect(throws: CancellationError.self) { try request.commit(Wait()) }
      hasReturned = true
    }
    let client = Client(transport: try #require(server?.makeTransport()))
    let scope = Scope(name: "Canvas", root: Tray())
    try await client.connect()
    try await client.fetch(scope)
    _ = try scope.call(Wait())
    scope.flush()
    try await wait { waiting != nil }
    client.close()
    await server?.stop()
    server = nil
    do {
      try await wait { kept == nil }
    } catch {
      waiting?.resume()
      throw error
    }
    waiting?.resume()
    try await wait { hasReturned }
  }
}

final class Tray: ModelObject {
  @Property var count = 0
}

struct Wait: Procedure {
  static let name = "Tray.wait"

  func run(on tray: Tray) -> Int {
    tray.count += 1
    return tray.count
  }
}
