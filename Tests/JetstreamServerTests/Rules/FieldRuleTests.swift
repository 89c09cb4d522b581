import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Rules of properties at the server", .paced)
struct FieldRuleTests {
  @Test(
    "A value that breaks a rule is rejected alone, with a sentence and the type",
    arguments: RuleHosting.allCases)
  func values(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (world.product(), world.product())
    let replies = world.submit([
      world.change(one, ["quantity": 120]), world.change(two, ["quantity": 100]),
      world.change(two, ["text": ""]), world.change(one, ["slug": "No Slug"]),
      world.change(one, ["text": "longer than ten", "quantity": 5]),
    ])
    #expect(
      replies.map { $0?.message } == [
        "quantity has to be from 0 to 100, not 120 (Product \(one.wireText))", nil,
        "text has to have 1 to 10 characters, not 0 (Product \(two.wireText))",
        "slug has to match [a-z0-9-]+, which \"No Slug\" does not (Product \(one.wireText))",
        "text has to have 1 to 10 characters, not 15 (Product \(one.wireText))",
      ])
    #expect(replies.compactMap { $0?.type } == Array(repeating: "field-rule", count: 4))
    #expect(world.value("quantity", of: one) == 1 && world.value("quantity", of: two) == 100)
    #expect(world.value("text", of: two) == "new")
  }

  @Test("A kept model of an unknown class is judged by the class that a known property expects")
  func standIns() throws {
    let world = try RuleWorld(.classes)
    world.host.policy.unknown = .keep
    let offer = UUID()
    let kept = [
      world.add(offer, ["quantity": 9999], "Offer"),
      world.change(world.root, ["offers": .models(offer)]),
    ]
    #expect(world.submit(kept) == [nil, nil])
    let problem = WireError(
      message: "quantity has to be from 0 to 100, not 9999 (Shop \(world.root.wireText))",
      type: "field-rule")
    #expect(world.submit([world.insert(offer)]) == [problem])
    let value = world.change(world.root, ["chosen": .string(offer.wireText)])
    #expect(world.submit([value], version: 1) == [problem])
    #expect(world.models("products") == .models() && world.host.content.model(offer) == nil)
    // The state after the change set counts.
    let change = SyncFragment(
      .change, uuid: offer, className: "Offer", properties: ["quantity": 99])
    #expect(world.submit([change, world.insert(offer), value]) == [nil, nil, nil])
    #expect(world.value("quantity", of: offer) == 99)
  }

  @Test("A value of another type is told as before", arguments: RuleHosting.allCases)
  func types(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let replies = world.submit([world.change(world.product(), ["quantity": "many"])])
    #expect(replies[0]?.message.hasPrefix("Not valid type at 'quantity'") == true)
    #expect(replies[0]?.type == nil)
  }

  @Test(
    "An addition is judged with the defaults of the properties that it leaves out",
    arguments: RuleHosting.allCases)
  func additions(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (empty, full) = (UUID(), UUID())
    let problem = "text has to have 1 to 500 characters, not 0 (Remark \(empty.wireText))"
    for properties: JSONObject in [[:], ["text": ""]] {
      let replies = world.submit([
        world.add(empty, properties, "Remark"), world.insert(empty, into: "notes"),
      ])
      #expect(replies[0]?.message == problem && replies[1] != nil)
    }
    // An old peer names every property, with null where it has no value.
    let old = world.submit(
      [
        world.add(empty, ["text": .null], "Remark"),
        world.change(world.root, ["notes": .models(empty)]),
      ],
      version: 1)
    #expect(old[0]?.message == problem && old[1] != nil)
    // A later value in the change set is judged besides.
    let replies = world.submit([
      world.add(full, ["text": "a"], "Remark"), world.insert(full, into: "notes"),
    ])
    #expect(replies == [nil, nil])
    #expect(world.models("notes") == .models(full))
  }

  @Test("One broken rule rejects an atomic change set", arguments: RuleHosting.allCases)
  func atomic(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product()
    for version in [1, 2] {
      let replies = world.submit(
        [world.change(product, ["text": "ok"]), world.change(product, ["quantity": -1])],
        isAtomic: true, version: version)
      #expect(replies[0]?.message.contains("quantity has to be from 0 to 100, not -1") == true)
      #expect(replies[1]?.type == "field-rule")
      #expect(world.value("text", of: product) == "new")
    }
  }

  @Test("Of a counter, the number after all increments is judged", arguments: RuleHosting.allCases)
  func counters(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    func add(_ steps: Int64...) -> SyncFragment {
      world.change(world.root, [:], ["visits": steps.map { .add($0) }])
    }
    #expect(world.submit([add(60)]) == [nil])
    #expect(
      world.submit([add(41)])[0]?.message
        == "visits has to be from 0 to 100, not 101 (Shop \(world.root.wireText))")
    #expect(world.submit([add(41, -20)]) == [nil])
    // The second increment is only too much behind the first.
    let replies = world.submit([add(15), add(10)])
    #expect(replies.map { $0 == nil } == [true, false])
    // The rejected fragment before it does not count.
    #expect(world.submit([add(-1000), add(4)]).map { $0 == nil } == [false, true])
    #expect(world.value("visits", of: world.root) == 100)
    #expect(world.submit([world.change(world.root, ["visits": 101])])[0]?.type == "field-rule")
  }

  @Test("Of a merged value, the result is judged, too", arguments: RuleHosting.allCases)
  func merging(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product(["tags": ["a", "b"]])
    #expect(world.submit([world.change(product, ["tags": ["a", "b", "c"]])]) == [nil])
    let late = world.change(product, ["tags": ["a", "b", "d"]], bases: ["tags": ["a", "b"]])
    #expect(
      world.submit([late])[0]?.message
        == "tags has to have at most 3 elements, not 4 (Product \(product.wireText))")
    let other = world.change(product, ["tags": ["b", "d"]], bases: ["tags": ["a", "b"]])
    #expect(world.submit([other]) == [nil])
    #expect(world.value("tags", of: product) == ["b", "c", "d"])
    // The value that the client has written is judged even if another one wins.
    #expect(world.submit([world.change(product, ["best": 9])]) == [nil])
    let best = world.change(product, ["best": 11], bases: ["best": 0])
    #expect(world.submit([best])[0]?.message.hasPrefix("best has to be at most 10") == true)
  }

  @Test(
    "An old peer's addition is judged by its own values, whatever it claims to have known",
    arguments: RuleHosting.allCases)
  func knownValues(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product(["author": "Ada", "sku": "a"])
    _ = world.product(["sku": "b"])
    for values: JSONObject in [["author": "Eve"], ["quantity": 500], ["sku": "b"]] {
      var addition = world.add(product, values)
      addition.bases = values
      #expect(world.submit([addition], version: 1)[0]?.type == "field-rule")
    }
    #expect(world.value("author", of: product) == "Ada")
    #expect(world.value("quantity", of: product) == 1 && world.value("sku", of: product) == "a")
    // One that comes back is no other matter.
    #expect(world.submit([world.remove(product)]) == [nil])
    var back = world.add(product, ["author": "Eve"])
    back.bases = ["author": "Eve"]
    let whole = world.change(world.root, ["products": .models(product)])
    #expect(world.submit([back, whole], version: 1)[0]?.type == "field-rule")
  }

  @Test(
    "A value is judged as merged with the state before the change set",
    arguments: RuleHosting.allCases)
  func mergingTwice(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product(["tags": ["a", "b", "c"]])
    let twice = [
      world.change(product, ["tags": []], bases: ["tags": ["a", "b", "c"]]),
      world.change(product, ["tags": ["d"]], bases: ["tags": []]),
    ]
    #expect(world.submit(twice)[1]?.type == "field-rule")
    #expect(world.submit([world.change(world.root, ["visits": 50])]) == [nil])
    var additions = [world.add(world.root, ["visits": 0], "Shop")]
    additions.append(world.add(world.root, ["visits": 100], "Shop"))
    additions[0].bases = ["visits": 50]
    additions[1].bases = ["visits": 0]
    #expect(world.submit(additions)[1]?.type == "field-rule")
    #expect(world.value("visits", of: world.root) == 0)
  }

  @Test("Null is no value", arguments: RuleHosting.allCases)
  func null(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product(["sku": "a"])
    #expect(world.submit([world.change(product, ["sku": .null])]) == [nil])
  }

  @Test("The server's own app is not judged, and what it has written does not stand in the way")
  func ownWrites() throws {
    let world = try RuleWorld(.classes)
    let shop = try #require(world.shop)
    let product = Product()
    product.quantity = 500
    product.author = "Ada"
    shop.products.append(product)
    #expect(world.submit([world.change(product.uuid, ["text": "ok"])]) == [nil])
    // An old peer may name what it has not changed.
    let same: JSONObject = ["quantity": 500, "author": "Ada", "text": "more"]
    #expect(world.submit([world.change(product.uuid, same)], version: 1) == [nil])
    #expect(world.submit([world.change(product.uuid, ["quantity": 501])])[0] != nil)
    product.author = "Bob"
    product.quantity = 1_000
    #expect(
      product.problem(with: \.quantity) == "quantity has to be from 0 to 100, not 1000")
    #expect(world.submit([world.change(product.uuid, ["author": "Bob"])]) == [nil])
  }

  @Test("A property without rules is judged by no rule")
  func without() throws {
    #expect(ModelSchema.of(Canvas.self).data.ruled == nil)
    #expect(ModelSchema.of(Shop.self).data.ruled?.map(\.wireName) == ["name", "owner", "visits"])
    #expect(
      !ModelSchema.of(Shop.self).data.hasUnique && ModelSchema.of(Product.self).data.hasUnique)
  }
}

@Suite("Immutable properties at the server", .paced)
struct ImmutableRuleTests {
  @Test(
    "It is set in the change set that adds the model, and never again",
    arguments: RuleHosting.allCases)
  func setOnce(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = UUID()
    let replies = world.submit([
      world.add(product, ["author": "Ada"]), world.insert(product),
      world.change(product, ["author": "Eve"]),
    ])
    #expect(replies == [nil, nil, nil])
    #expect(world.value("author", of: product) == "Eve")
    for version in [1, 2] {
      let late = world.submit([world.change(product, ["author": "Bob"])], version: version)
      #expect(
        late[0]
          == WireError(
            message:
              "author can only be set when the Product is added (Product \(product.wireText))",
            type: "field-rule"))
    }
    #expect(world.submit([world.change(product, ["author": "Eve", "text": "ok"])]) == [nil])
    #expect(world.value("author", of: product) == "Eve")
  }

  @Test(
    "Removing the model and adding it again does not change it",
    arguments: RuleHosting.allCases)
  func addedAgain(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let product = world.product(["author": "Ada"])
    func add(_ author: JSONValue) -> SyncFragment { world.add(product, ["author": author]) }
    // While the scope has the model, and after it has left.
    #expect(world.submit([add("Bob")])[0]?.type == "field-rule")
    #expect(world.submit([world.remove(product)]) == [nil])
    #expect(world.submit([add("Bob"), world.insert(product)])[0]?.type == "field-rule")
    let change = world.change(product, ["author": "Bob"])
    #expect(
      world.submit([add("Ada"), world.insert(product), change]).map { $0 == nil }
        == [true, true, false])
    #expect(world.value("author", of: product) == "Ada")
  }

  @Test("The root has it set once, by the first client", arguments: RuleHosting.allCases)
  func root(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    #expect(world.submit([world.change(world.root, ["owner": "Ada"])]) == [nil])
    #expect(world.submit([world.change(world.root, ["owner": "Bob"])])[0]?.type == "field-rule")
    #expect(world.value("owner", of: world.root) == "Ada")
  }
}
