import Foundation
import Jetstream

/// The scope `shop`, which all buyers share. Clients change nothing in it: they call ``CheckOut``.
final class Shop: ModelObject {
  @Property var items: ModelArray<Item> = []
  @Property var orders: ModelArray<Order> = []

  /// Returns the item with a name; nil if the shop does not have it.
  func item(named name: String) -> Item? { items.first { $0.name == name } }
}

final class Item: ModelObject {
  @Property var name = ""
  /// The price of one piece, in cents.
  @Property var price = 0
  /// The number of pieces. It is a counter: while a buyer waits for an answer, what others buy meanwhile is taken from
  /// what that buyer sees, too.
  @Property(.counter) var stock = 0
}

/// The purchase of some pieces of one item. Its UUID is chosen by the buyer.
final class Order: ModelObject {
  @Property var buyer = ""
  @Property var item = ""
  @Property var count = 0
  /// The price of all pieces, in cents.
  @Property var total = 0
  /// The call whose charge has paid for it. Only the server sets it: nil is an order that it has not made yet.
  @Property var payment: UUID?
}

/// Returns an amount of money for the screen.
func money(_ cents: Int) -> String {
  "\(cents / 100)." + (cents % 100 < 10 ? "0" : "") + "\(cents % 100)"
}

/// Names of buyers are names of folders, too.
func isName(_ text: some StringProtocol) -> Bool {
  (1...20).contains(text.count)
    && text.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "-") }
}
