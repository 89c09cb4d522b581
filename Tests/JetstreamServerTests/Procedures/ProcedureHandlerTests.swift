import Foundation
import Jetstream
import JetstreamServer
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
