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
  /// A service at the other end of a network: a call whose task is cancelled throws, although it may have had its effect.
  private final class Payments {
    var known: Set<UUID> = []
    var standing: Set<UUID> = []
    /// True while the service makes reservations, and its answers do not arrive.
    var isSilent = false

    /// Does nothing for an id that it knows, as the article demands.
    func reserve(_ id: UUID) async throws {
      if known.insert(id).inserted { standing.insert(id) }
      while isSilent {
        try Task.checkCancellation()
        await Task.yield()
      }
    }

    func cancel(_ id: UUID) async throws {
      try Task.checkCancellation()
      standing.remove(id)
    }
  }

  private func serve(
    _ server: Server, _ payments: Payments, beforeCommit: @escaping () async throws -> Void
  ) {
    server.procedure(Put.self) { put, request in
      do {
        try await payments.reserve(request.id)
        try await beforeCommit()
        try request.commit(put)
      } catch {
        if !request.comesAgain { try await Task { try await payments.cancel(request.id) }.value }
        throw error
      }
    }
  }

  /// A place in the handler at which a call takes too long.
  enum Place {
    case reservation, work
  }

  @Test(
    "A call that has taken too long leaves no payment", arguments: [Place.reservation, .work])
  func late(place: Place) async throws {
    let payments = Payments()
    var configuration = Server.Configuration()
    configuration.procedureTime = .milliseconds(1)
    let server = Server(configuration: configuration)
    let cupboard = Cupboard()
    server.host(Scope(name: "Cupboard", root: cupboard))
    payments.isSilent = place == .reservation
    var hasWorked = false
    serve(server, payments) {
      defer { hasWorked = true }
      while true {
        try Task.checkCancellation()
        await Task.yield()
      }
    }
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Cupboard", root: Cupboard())
    try await client.connect()
    try await client.fetch(scope)
    let call = try scope.call(Put(cup: UUID()))
    await #expect(throws: ChangeSetError.self) { try await call.output() }
    try await wait { !payments.known.isEmpty && payments.standing.isEmpty }
    #expect(cupboard.count == 0 && hasWorked == (place == .work))
    client.close()
    await server.stop()
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
    var attempts = 0
    serve(server, payments) {
      attempts += 1
      // The first time, the rights are taken away while the handler waits.
      while attempts == 1 {
        try Task.checkCancellation()
        await Task.yield()
      }
    }
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Cupboard", root: Cupboard())
    try await client.connect()
    try await client.fetch(scope)
    let call = try scope.call(Put(cup: UUID()))
    try await wait { attempts > 0 }
    isAllowed = false
    await server.updateAccess()
    isAllowed = true
    #expect(try await call.output() == 1)
    #expect(attempts == 2 && cupboard.count == 1)
    #expect(payments.known.count == 1 && payments.standing == payments.known)
    client.close()
    await server.stop()
  }
}
