import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

/// The pattern of the article on procedures, with payments that know ids: a call that ends undecided and is sent again.
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

@Suite("The article's pattern for payments")
@MainActor
struct PaymentPatternTests {
  private final class Payments {
    var known: Set<UUID> = []
    var standing: Set<UUID> = []
    /// Does nothing for an id that it knows, as the article demands.
    func reserve(_ id: UUID) { if known.insert(id).inserted { standing.insert(id) } }
    func cancel(_ id: UUID) { standing.remove(id) }
  }

  @Test("A call that ended undecided, and is made again, is paid for")
  func again() async throws {
    let (payments, cupboard) = (Payments(), Cupboard())
    let server = Server()
    var isAllowed = true
    server.access = { _, _ in
      guard isAllowed else { throw WireError.notNow("Wait", retryAfter: .milliseconds(20)) }
      return .readWrite
    }
    server.host(Scope(name: "Cupboard", root: cupboard))
    var attempts: [UUID] = []
    server.procedure(Put.self) { put, request in
      attempts.append(request.id)
      payments.reserve(request.id)
      do {
        // The first time, the rights are taken away while the handler waits.
        while attempts.count == 1 {
          try Task.checkCancellation()
          await Task.yield()
        }
        try request.commit(put)
      } catch {
        if !request.comesAgain { payments.cancel(request.id) }
        throw error
      }
    }
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Cupboard", root: Cupboard())
    try await client.connect()
    try await client.fetch(scope)
    let call = try scope.call(Put(cup: UUID()))
    try await wait { !attempts.isEmpty }
    isAllowed = false
    await server.updateAccess()
    isAllowed = true
    #expect(try await call.output() == 1)
    #expect(Set(attempts).count == 1 && attempts.count == 2)
    #expect(cupboard.count == 1 && payments.standing == Set(attempts))
    client.close()
    await server.stop()
  }
}
