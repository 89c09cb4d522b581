import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Real servers, whose procedures make changes that the scope refuses.
@Suite("Procedures whose changes the scope refuses")
@MainActor
struct RefusedProcedureTests {
  @Test("A procedure that adds a model with a UUID that the scope has fails, and changes nothing")
  func duplicate() async throws {
    let (server, cupboard) = (Server(), Cupboard())
    server.host(Scope(name: "Cupboard", root: cupboard))
    server.procedure(Put.self)
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Cupboard", root: Cupboard())
    try await client.connect()
    try await client.fetch(scope)
    // A client that was written to do harm names the root.
    let call = try scope.call(Put(cup: cupboard.uuid))
    await #expect(throws: (any Error).self) { try await call.output() }
    #expect(cupboard.cups.isEmpty && cupboard.count == 0)
    client.close()
    await server.stop()
  }
}

final class Cup: ModelObject {
  @Property var name = ""
}

final class Cupboard: ModelObject {
  @Property var count = 0
  @Property var cups: ModelArray<Cup> = []
}

/// Adds a cup, and counts it in the same step.
struct Put: Procedure {
  static let name = "Cupboard.put"
  let cup: UUID

  func run(on cupboard: Cupboard) -> Int {
    cupboard.count += 1
    cupboard.cups.append(Cup(uuid: cup))
    return cupboard.count
  }
}
