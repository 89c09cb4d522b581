import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

final class Message: ModelObject {
  @Property var text = ""
  @Property var author = ""
}

final class Room: ModelObject {
  @Property var isClosed = false
  @Property var messages: ModelArray<Message> = []
}

final class Board: ModelObject {
  @Property var title = ""
}

final class Document: ModelObject {
  @Property var title = ""
}

final class Cart: ModelObject {
  @Property var isOrdered = false
  @Property var number = 0
}

final class Shop: ModelObject {
  @Property var stock = 0

  func price(of items: [UUID]) -> Int { 0 }
}

struct Sell: Procedure {
  static let name = "Shop.sell"

  func run(on shop: Shop) -> Int { 0 }
}

struct CheckOut: Procedure {
  static let name = "Shop.checkOut"
  let items: [UUID]

  func run(on shop: Shop) -> Int { 0 }
}

struct Payments: Sendable {
  func charge(_ call: UUID, _ price: Int) async throws {}
  func reserve(_ call: UUID, for buyer: String) async throws {}
  func cancel(_ call: UUID) async throws {}
}

struct Account: Sendable {
  let id = ""
  let name = ""
  let tokenExpiry = Date.distantFuture
}

struct Accounts: Sendable {
  func find(_ token: String) async throws -> Account? { nil }
}

struct Members: Sendable {
  enum Role { case writer, reader }

  func role(of user: String?, in scope: String) async throws -> Role? { nil }
  func remove(_ user: String, from scope: String) {}
}

struct Documents: Sendable {
  func contains(_ name: String) async throws -> Bool { false }
}

struct Numbers: Sendable {
  func next() -> Int { 0 }
}

struct Token {
  let expiry = Date.distantFuture
}

func censored(_ text: String) -> String { text }

@MainActor
final class Listing {
  var configuration = Server.Configuration()
  var rules = ScopeRules()

  func run(
    _ scope: Scope, _ server: Server, _ token: Token, _ target: String, _ address: String,
    _ headers: [(String, String)], _ socket: some AcceptedWebSocket
  ) async throws {
    let (payments, accounts, members) = (Payments(), Accounts(), Members())
    let (documents, numbers) = (Documents(), Numbers())
    do {
      // listing
    }
  }
}
