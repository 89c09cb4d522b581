import Foundation
import Jetstream
import JetstreamServer

final class Item: ModelObject {
  @Property var stock = 0
  @Property var price = 0
}

final class Shop: ModelObject {
  @Property var items: ModelArray<Item> = []
}

final class Cart: ModelObject {
  @Property var isOrdered = false
  @Property var number = 0
}

struct Sell: Procedure {
  static let name = "Shop.sell"
  let item: UUID
  let count: Int

  enum Failure: Error, Codable { case soldOut(left: Int) }

  func run(on shop: Shop) throws(Failure) -> Int { 0 }
}

struct Payments: Sendable {
  func reserve(_ call: UUID, for buyer: String) async throws {}
  func cancel(_ call: UUID) async throws {}
}

@MainActor
final class Store {
  let payments = Payments()

  func run(_ scope: Scope, _ server: Server, _ item: Item) async throws {
    let payments = payments
    func nextNumber() -> Int { 1 }
    do {
      // listing
    }
  }
}
