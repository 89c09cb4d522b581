import Jetstream
import JetstreamServer

/// The rules for changes of clients: there are none that they may make. Rules play no part in procedures, so that these are
/// the only way.
enum ShopRules {
  static let all: ScopeRules = {
    var rules = ScopeRules(otherwise: .deny)
    rules.update(\Item.stock, "Only a purchase changes the stock") { _, _, _ in false }
    rules.update(Item.self, "Only the shop changes its items") { _, _, _ in false }
    rules.create(Order.self, "Only a purchase makes an order") { _, _ in false }
    rules.update(Order.self, "An order stays as it is") { _, _, _ in false }
    rules.delete(Order.self, "An order stays as it is") { _, _ in false }
    rules.insert(into: \Shop.orders, "Only a purchase makes an order") { _, _, _ in false }
    rules.remove(from: \Shop.orders, "An order stays as it is") { _, _, _ in false }
    return rules
  }()
}
