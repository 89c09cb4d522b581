import Foundation
import Jetstream
import JetstreamServer
import Testing

/// The classes of clients that were built before there were rules.
private enum Unruled {
  final class Shop: ModelObject {
    @Property var products: ModelArray<Product> = []
  }

  final class Product: ModelObject {
    @Property var quantity = 1
    @Property var author = ""
    @Property var sku: String?
  }
}

@Suite("Rules of properties, from a client to the server and back", .paced)
struct FieldRuleSyncTests {
  private let world = InMemoryWorld()
  private let shop = Shop()
  private let product = Product()
  private let scope: Scope

  init() {
    scope = Scope(name: "Canvas", root: shop, ticker: world.serverTicker)
    world.replaced = scope
    shop.products.append(product)
    scope.flush()
  }

  private func join(_ root: ModelObject = Shop(), version: Int = 2) -> WorldClient {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = version
    let client = world.addClient(configuration: configuration, root: root)
    client.join()
    world.settle()
    return client
  }

  @Test(
    "A form shows the problem, the change is sent, and the server's value comes back",
    arguments: [1, 2])
  func rejected(version: Int) throws {
    let client = join(version: version)
    let mine = try #require((client.scope.root as? Shop)?.products.first)
    mine.quantity = 120
    #expect(mine.problem(with: \.quantity) == "quantity has to be from 0 to 100, not 120")
    #expect(mine.quantity == 120)
    world.settle()
    #expect(mine.quantity == 1 && mine.problems == [] && product.quantity == 1)
    #expect(
      client.rejections == [
        "Product: quantity has to be from 0 to 100, not 120 (Product \(product.uuid.wireText))"
      ])
    #expect(client.scope.canonicalJSON == scope.canonicalJSON)
  }

  @Test("The rejection is in the ledger, and can be retried when it fits")
  func ledger() throws {
    let client = join()
    let mine = try #require((client.scope.root as? Shop)?.products.first)
    client.scope.modify { mine.quantity = 120 }
    world.settle()
    let conflict = try #require(client.scope.conflicts.items.first)
    guard case .rejected(let error) = conflict.reason else {
      Issue.record("\(conflict.reason)")
      return
    }
    #expect(error.type == "field-rule" && conflict.property == "quantity")
    #expect(conflict.mine == .value(120))
    mine.quantity = 100
    world.settle()
    #expect(client.scope.conflicts.items.isEmpty && product.quantity == 100)
  }

  @Test("An atomic change set that breaks a rule is rejected as a whole")
  func atomic() throws {
    let client = join()
    let mine = try #require((client.scope.root as? Shop)?.products.first)
    let handle = client.scope.modifyAtomically {
      mine.text = "ok"
      mine.author = "Ada"
    }
    world.settle()
    #expect(handle.state == .rejected && mine.text == "new" && product.author == "")
  }

  @Test("A client without the rules is in step, and its writes are judged like all others")
  func unruled() throws {
    let client = join(Unruled.Shop())
    let mine = try #require((client.scope.root as? Unruled.Shop)?.products.first)
    #expect(mine.problems == [])
    mine.quantity = 120
    world.settle()
    mine.author = "Bob"
    world.settle()
    mine.sku = "a"
    world.settle()
    #expect(product.quantity == 1 && product.author == "" && product.sku == "a")
    #expect(mine.quantity == 1 && client.rejections.count == 2)
  }

  @Test("Two clients that add the same value at the same time: the first one has it")
  func race() throws {
    let clients = [join(), join()]
    for client in clients {
      let new = Product()
      new.sku = "a"
      (client.scope.root as? Shop)?.products.append(new)
      #expect(new.problem(with: \.sku) == nil)
    }
    world.settle()
    #expect(shop.products.map(\.sku) == [nil, "a"])
    #expect(clients.map { $0.scope.conflicts.items.count }.sorted() == [0, 1])
    #expect(clients.allSatisfy { $0.scope.canonicalJSON == scope.canonicalJSON })
  }

  @Test("Removing a model and taking that back is no change of its immutable properties")
  func undo() throws {
    let client = join()
    let root = try #require(client.scope.root as? Shop)
    let new = Product()
    new.author = "Ada"
    new.sku = "a"
    root.products.append(new)
    world.settle()
    let history = UndoHistory(of: client.scope)
    root.products.remove(new)
    world.settle()
    #expect(shop.products.count == 1)
    history.undo()
    world.settle()
    #expect(shop.products.map(\.author) == ["", "Ada"] && client.rejections == [])
  }
}
