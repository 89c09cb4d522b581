import Foundation
import Jetstream

/// Buys some pieces of an item: the only way for a client to change the stock, and to get an order.
///
/// It runs on the client, whose user sees at once what it takes, and again on the server, on the stock that is there when
/// the call comes to its turn.
struct CheckOut: Procedure {
  static let name = "Shop.checkOut"

  /// The UUID of the order, so that client and server make the same one.
  let order: UUID
  /// The name of the buyer. The server refuses any other than that of the session.
  let buyer: String
  /// The UUID of the item.
  let item: UUID
  let count: Int

  struct Receipt: Codable, Equatable {
    let total: Int
    /// The number of pieces that are left.
    let left: Int
  }

  enum Failure: Error, Codable, Equatable {
    case soldOut(left: Int)
    /// The shop does not have the item, or the order cannot have this count or this UUID.
    case impossible
    /// The charge of this call was voided before.
    case voided
    /// The price is no longer the one that was charged.
    case priceChanged
  }

  func run(on shop: Shop) throws(Failure) -> Receipt {
    let (item, total) = try bill(in: shop)
    guard item.stock >= count else { throw .soldOut(left: item.stock) }
    item.stock -= count
    let made = Order(uuid: order)
    (made.buyer, made.item, made.count, made.total) = (buyer, item.name, count, total)
    shop.orders.append(made)
    return Receipt(total: total, left: item.stock)
  }

  /// Returns the item and what the buyer pays, whatever the stock is.
  ///
  /// Arguments may come from a client that was written to do harm: a negative count would add to the stock, and an order
  /// with the UUID of another model would not get into the shop.
  func bill(in shop: Shop) throws(Failure) -> (item: Item, total: Int) {
    guard (1...1_000).contains(count), shop.scope?.model(order) == nil,
      let item = shop.items.first(where: { $0.uuid == item })
    else { throw .impossible }
    return (item, item.price * count)
  }
}

extension CheckOut.Failure: LocalizedError {
  var errorDescription: String? {
    switch self {
    case .soldOut(let left): "Sold out: only \(left) left"
    case .impossible: "This cannot be bought"
    case .voided: "The payment was given back: buy again"
    case .priceChanged: "The price has changed: buy again"
    }
  }
}
