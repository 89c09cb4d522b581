import Foundation
import Observation
import Testing

@testable import Jetstream

private final class Shop: ModelObject, Observable {
  @Property(.immutable) var owner = ""
  @Property var products: ModelArray<Product> = []
  @Property var shelf: ModelDictionary<String, Product> = [:]
  @Property var chosen: Product?
}

private final class Product: ModelObject, Observable {
  @Property([.range(0...100), .wireName("qty")]) var quantity = 1
  @Property([.length(1...5), .pattern("[a-z]*")]) var text = "new"
  @Property(.immutable) var author = ""
  @Property(.unique) var sku: String?
  @Property([.local, .length(...3)]) var draft = ""
  @Property var free = 0
  var total: Int { quantity * 2 }
}

/// The rules that the values of a model break, before the server is asked.
@Suite(.paced) struct ProblemTests {
  private let shop = Shop()
  private let product = Product()

  @Test("A property has a problem while its value breaks a rule")
  func values() {
    #expect(product.problems == [])
    product.quantity = 120
    product.text = ""
    product.draft = "long"
    #expect(product.problem(with: \.quantity) == "quantity has to be from 0 to 100, not 120")
    #expect(product.problem(with: \.text) == "text has to have 1 to 5 characters, not 0")
    #expect(product.problem(with: \.free) == nil)
    #expect(
      product.problems == [
        "quantity has to be from 0 to 100, not 120",
        "text has to have 1 to 5 characters, not 0",
        "draft has to have at most 3 characters, not 4",
      ])
    #expect(product.quantity == 120)
    product.text = "A"
    #expect(product.problem(with: \.text) == "text has to match [a-z]*, which \"A\" does not")
    (product.quantity, product.text, product.draft) = (100, "a", "")
    #expect(product.problems == [])
  }

  @Test("A change that breaks a rule is a change like any other")
  func notBlocked() {
    shop.products.append(product)
    let scope = Scope(name: "Shop", root: shop, ticker: .manual())
    let handle = scope.modify { product.quantity = 120 }
    #expect(handle.changeSet.fragments.map(\.properties) == [["qty": 120]])
    #expect(product.quantity == 120)
  }

  @Test("An immutable property has a problem from the change until it is sent")
  func immutable() {
    let scope = Scope(name: "Shop", root: shop, ticker: .manual())
    // Before a model is in a scope, and in the change set that adds it.
    product.author = "Ada"
    #expect(product.problems == [])
    shop.products.append(product)
    product.author = "Bob"
    #expect(product.problems == [])
    scope.flush()
    product.author = "Eve"
    #expect(product.problem(with: \.author) == "author can only be set when the Product is added")
    product.author = "Bob"
    #expect(product.problems == [])
    // The root has it set once.
    shop.owner = "Ada"
    #expect(shop.problems == [])
    scope.flush()
    shop.owner = "Bob"
    #expect(shop.problem(with: \.owner) == "owner can only be set when the Shop is added")
  }

  @Test("A unique property has a problem in each collection that has another model with its value")
  func unique() {
    let other = Product()
    shop.products = [product, other]
    (product.sku, other.sku) = ("a", "b")
    #expect(product.problems + other.problems == [])
    other.sku = "a"
    let sentence = "sku has to be unique in products, where another model has \"a\""
    #expect(product.problem(with: \.sku) == sentence && other.problem(with: \.sku) == sentence)
    shop.products.remove(other)
    shop.chosen = other
    #expect(product.problems + other.problems == [])
    shop.shelf["x"] = other
    shop.shelf["y"] = product
    #expect(
      product.problem(with: \.sku)
        == "sku has to be unique in shelf, where another model has \"a\"")
    (product.sku, other.sku) = (nil, nil)
    #expect(product.problems + other.problems == [])
  }

  @Test("A tracking of a problem follows everything that it depends on")
  func tracking() {
    final class Count: @unchecked Sendable { var value = 0 }
    let other = Product()
    other.sku = "b"
    shop.products = [product, other]
    product.sku = "a"
    let count = Count()
    func track() {
      withObservationTracking {
        _ = product.problem(with: \.sku)
      } onChange: {
        count.value += 1
      }
    }
    let steps: [() -> Void] = [
      { product.sku = "c" }, { other.sku = "c" }, { shop.products.remove(other) },
      // In no collection, and in one again.
      { shop.products.remove(product) }, { shop.products.append(product) },
      { shop.shelf["x"] = product },
    ]
    for (step, change) in steps.enumerated() {
      track()
      change()
      #expect(count.value == step + 1)
    }
    track()
    product.quantity = 7
    #expect(count.value == steps.count)
  }

  @Test("A key path to something else traps with a sentence")
  func computed() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Product().problem(with: \.total)
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("is not a @Property of Product, and has no rules."))
  }

  @Test("A constraint demands that a value meets rules")
  func constraint() {
    let rules: PropertyOptions = [.range(1...10), .immutable]
    let uuid = UUID()
    func isMet(
      _ options: PropertyOptions, _ properties: JSONObject, _ kind: SyncFragment.Kind = .change,
      _ operations: PropertyOperations = [:], bases: JSONObject = [:]
    ) -> Bool {
      Constraint(kind, "Cart", ["count": .meets(options)]).isMet(
        by: SyncFragment(
          kind, uuid: uuid, className: "Cart", properties: properties, operations: operations),
        bases: bases)
    }
    #expect(isMet(.range(1...10), ["count": 10]) && !isMet(.range(1...10), ["count": 11]))
    #expect(isMet(.range(1...10), ["count": .null]) && !isMet(.range(1...10), [:]))
    #expect(isMet(rules, ["count": 10], .add) && !isMet(rules, ["count": 10]))
    #expect(isMet(.pattern("a+"), ["count": "aa"]) && !isMet(.pattern("a+"), ["count": 1]))
    let more: PropertyOperations = ["count": [.add(3)]]
    #expect(isMet(.range(1...10), [:], .change, more, bases: ["count": 7]))
    #expect(!isMet(.range(1...10), [:], .change, more, bases: ["count": 8]))
    #expect(!isMet(.range(1...10), [:], .change, more))
  }
}
